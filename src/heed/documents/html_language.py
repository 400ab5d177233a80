"""Languages of the elements of HTML: those in another language than the one that is translated stay as they are."""

from __future__ import annotations

import re
from collections.abc import Mapping

from heed.text.language.codes import code_of

_TAG = re.compile(r"[A-Za-z]{2,20}(?:[-_][\w-]*)?")
"""A language tag; what a template fills in is none."""
_NO_LANGUAGE = frozenset(("und", "mul"))
"""Tags that do not say which language it is."""
_MACROLANGUAGES = {"nb": "no", "nn": "no", "iw": "he", "in": "id", "ji": "yi", "sh": "sr"}
"""Languages that count as one, and codes that were replaced."""
_PAGE = frozenset(("html", "body"))


def language_of(attributes: Mapping[str, str]) -> str:
    """The code of the language that an element declares; empty if it declares none."""
    return _code(attributes.get("lang", attributes.get("xml:lang", "")))


def _code(tag: str) -> str:
    """The code of a language without its region: `en` for `en-GB` and `eng`."""
    tag = tag.strip()
    code = code_of(tag) or re.split("[-_]", tag.lower())[0]
    return "" if code in _NO_LANGUAGE or not _TAG.fullmatch(tag) else _MACROLANGUAGES.get(code, code)


class SourceLanguage:
    """The language that is translated: the model's, or if that is unknown, the one that the page declares.

    If the page declares none either, all elements are translated. A page whose `<html>` or `<body>` declares another
    language than the model's is translated as well: somebody asked for that, and templates often leave a wrong one.
    """

    def __init__(self, language: str = "") -> None:
        self._code = _code(language)

    def excludes(self, tag: str, attributes: Mapping[str, str]) -> bool:
        """Whether an element is in another language. The elements of a page have to come in order."""
        declared = language_of(attributes)
        if tag in _PAGE:
            self._code = self._code or declared
            return False
        return bool(declared and self._code) and declared != self._code

    def is_declared_by(self, tag: str, attributes: Mapping[str, str]) -> bool:
        """Whether an element that is translated declares its language, which then is another one."""
        return bool(language_of(attributes)) and (tag in _PAGE or bool(self._code))
