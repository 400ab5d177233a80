"""HTML files: translates the text and the texts in attributes, and sets the language of what it has translated.

The text with its inline tags is read by `html_spans.py`, as that of a request is. Texts in attributes are `alt`,
`title`, `placeholder` and `aria-label`, and the `content` of `<meta name="description">` and its kin.
"""

from __future__ import annotations

import html
from dataclasses import replace

from heed.documents.file_format import FileContext, TextFormat
from heed.documents.html_encoding import encoding_of
from heed.documents.html_language import SourceLanguage
from heed.documents.html_spans import parse
from heed.documents.html_tokens import HtmlToken
from heed.documents.nested_texts import NestedTexts
from heed.documents.spans import PartsBuilder, escape
from heed.documents.templates import TEMPLATE
from heed.documents.text_translator import TextTranslator

_TEXTS = ("alt", "title", "placeholder", "aria-label")
_DESCRIPTIONS = ("description", "og:title", "og:description", "twitter:title", "twitter:description")


def translate_html(text: str, translator: TextTranslator, context: FileContext) -> str:
    """The translated page."""
    language = SourceLanguage(context.sides.src_lang)
    attributes = _Attributes(language, context.sides.tgt_lang)
    parts = parse(text.replace("\0", "\ufffd"), translator.searcher.check, attributes.written, language)
    return attributes.nested.translated([parts], translator)[0]


HTML = TextFormat(is_markup=True, write=translate_html, declared=encoding_of)


class _Attributes:
    """Opening tags as they are written, with marks in place of the texts in their attributes."""

    def __init__(self, language: SourceLanguage, target: str) -> None:
        self.nested = NestedTexts()
        self._language = language
        self._target = target

    def written(self, token: HtmlToken) -> str:
        """An opening tag."""
        values = token.attributes()
        if self._target and (token.tag == "html" or self._language.is_declared_by(token.tag, values)):
            token = self._with_language(token, values)
        names = [name for name in _TEXTS if TEMPLATE.sub("", values.get(name, "")).strip()]
        if token.tag == "meta" and values.get("name", values.get("property", "")).lower() in _DESCRIPTIONS:
            names = ["content"]
        text = token.text
        places = sorted((place, name) for name in names if (place := token.place_of(name)))
        for (begin, end), name in reversed(places):
            text = text[:begin] + self._quoted(text[begin:end], values[name]) + text[end:]
        return text

    def _quoted(self, written: str, value: str) -> str:
        """A text in quotes, those that it has or new ones. A template's tag would need the right new ones."""
        if written[0] not in "\"'" and TEMPLATE.search(value):
            return written
        quote = written[0] if written[0] in "\"'" else '"'
        entity = {'"': "&quot;", "'": "&#39;"}[quote]
        builder = PartsBuilder(keeps_space=True, escape=lambda text: escape(text).replace(quote, entity))
        done = 0
        for template in TEMPLATE.finditer(value):
            builder.add_text(html.unescape(value[done : template.start()]))
            builder.single_tag(template[0])
            done = template.end()
        builder.add_text(html.unescape(value[done:]))
        builder.add_markup("")
        return quote + self.nested.mark(builder.parts()) + quote

    def _with_language(self, token: HtmlToken, values: dict[str, str]) -> HtmlToken:
        """A tag that declares the target language."""
        text, language = token.text, f'"{html.escape(self._target)}"'
        if not {"lang", "xml:lang"} & values.keys():
            return replace(token, text=f"{text[:5]} lang={language}{text[5:]}")
        for name in ("lang", "xml:lang"):
            if place := token.place_of(name):
                text = text[: place[0]] + language + text[place[1] :]
                token = replace(token, text=text)
        return token
