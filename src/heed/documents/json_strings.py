"""JSON of strings, as programs keep their messages: i18next, Chrome's `messages.json`, Flutter's ARB, and the like.

Every string that is a value or an element is translated, except codes (`codes.py`), what describes a message and is not
shown (`@key` of ARB, `description` and `placeholders` next to `message`), and strings that are not Unicode text. Keys
stay, plural suffixes such as `_one` too. `@@locale` of ARB becomes the target language.

Strings are replaced where they are in the text, so that all else stays byte by byte: order, indentation, numbers,
duplicate keys. The standard library reads the file first and refuses what is not JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from heed.core.errors import DataError
from heed.core.json_text import parse_json
from heed.documents.codes import has_words
from heed.documents.file_format import FileContext, TextFormat
from heed.documents.messages import translate_messages
from heed.documents.text_translator import TextTranslator
from heed.text.language.codes import same_tag

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]')
_LANGUAGE = "@@locale"
"""The key of ARB that names the language of the file."""
_NOT_SHOWN = ("description", "placeholders")


@dataclass
class _Open:
    """An open object or array, the one around it, and the key that it has there."""

    around: _Open | None
    own_key: str | None
    is_object: bool
    key: str | None = None
    """The current key of an object."""
    has_message: bool = False

    def is_shown(self, key: str | None) -> bool:
        """Whether the value of a key is seen by readers, and does not describe a message."""
        if key and (key.startswith("@") or (self.has_message and key in _NOT_SHOWN)):
            return False
        return self.around is None or self.around.is_shown(self.own_key)


@dataclass(frozen=True)
class _String:
    """A string that is a value, its place in the text, what it is in, and its key there."""

    begin: int
    end: int
    value: str
    around: _Open
    key: str | None


def translate_json(text: str, translator: TextTranslator, context: FileContext) -> str:
    """The file with its strings translated. Raises DataError for what is not JSON."""
    try:
        parse_json(text)
    except ValueError as error:
        raise DataError(f"{context.name}: not JSON ({error}).") from error
    values = [*translator.checked(_values(text))]
    strings = [each for each in values if has_words(each.value) and each.around.is_shown(each.key)]
    sides = context.sides
    named = sides.src_lang and sides.tgt_lang
    languages = [each for each in values if named and each.key == _LANGUAGE and same_tag(sides.src_lang, each.value)]
    outputs = translate_messages([each.value for each in strings], translator)
    edits = [*zip(strings, outputs, strict=True), *((each, sides.tgt_lang) for each in languages)]
    is_ascii = "\\u" in text and text.isascii()
    has_slashes = "\\/" in text
    out, done = [], 0
    for each, output in sorted(edits, key=lambda edit: edit[0].begin):
        if output != each.value:
            written = json.dumps(output, ensure_ascii=is_ascii)
            out += [text[done : each.begin], written.replace("/", "\\/") if has_slashes else written]
            done = each.end
    context.notify(f"{len(strings):,} strings")
    return "".join([*out, text[done:]])


JSON = TextFormat(write=translate_json)


def _values(text: str) -> Iterator[_String]:
    """The strings that are values or elements."""
    around = _Open(None, None, is_object=False)
    last = ""
    for token in _TOKEN.finditer(text):
        sign = token[0]
        if sign in "{[":
            around = _Open(around, around.key, sign == "{")
        elif sign in "}]":
            assert around.around is not None
            around = around.around
        elif sign[0] == '"':
            value = parse_json(sign)
            if around.is_object and last in "{,":
                around.key = value
                around.has_message |= value == "message"
            else:
                yield _String(token.start(), token.end(), value, around, around.key)
        last = sign[0]
