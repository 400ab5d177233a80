"""Texts of a workbook that something else in it refers to."""

from __future__ import annotations

import html
import re
from collections.abc import Callable

from heed.documents.messages import is_code
from heed.documents.zip_package import ZipPackage

_QUOTED = re.compile(r'"((?:[^"]|"")*)"')
_FORMULA = re.compile(r"<(?:\w+:)?(?:f|formula[12]?)(?:\s[^<>]*)?>([^<]*)<")
_NAMED = re.compile(r"""<(?:\w+:)?(?:tableColumn|cacheField|filter|customFilter|cfRule|s)\s[^<>]*""")
_VALUE = re.compile(r"""\s(?:name|val|v|text)=(?:"([^"]*)"|'([^']*)')""")
_WITH_REFERENCES = re.compile(r"xl/(?:worksheets|tables|pivotCache)/[^/]+\.xml")


def referred(package: ZipPackage) -> Callable[[str], bool]:
    """Whether a text of a workbook stays: a code, or a text that formulas, tables, lists of choices or filters name."""
    texts: set[str] = set()
    for name in package.names:
        if _WITH_REFERENCES.fullmatch(name):
            content = package.read(name).decode("utf-8", "replace")
            for formula in _FORMULA.findall(content):
                for literal in _QUOTED.findall(html.unescape(formula)):
                    texts.update((literal, *literal.split(",")))
            for element in _NAMED.findall(content):
                texts.update(html.unescape(a or b) for a, b in _VALUE.findall(element))
    texts = {text.strip().casefold() for text in texts}
    return lambda text: is_code(text) or text.strip().casefold() in texts
