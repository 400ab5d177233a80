"""Texts of a workbook that something else in it refers to: their cells stay, as the workbook would stop working.

| where a text is written | the cells that stay |
| --- | --- |
| in a formula, a table's heading, a filter, a list of choices | those with this text |
| as a criterion: `COUNTIF(A:A,"<>A dog*")`, or in a filter | those that match it, with wildcards and without the sign |
| as a part: `SEARCH("dog",A1)`, `LEFT(A1,3)="dog"`, `COUNTIF(A:A,"*"&"dog")` | those that contain it |

Capitals do not count, as in Excel. What a formula only shows, as in `IF(A1>3,"yes","no")`, is a whole text: it keeps
cells with `no`, as a formula may compare the two, and none with more words. Criteria and parts without a letter or a
digit, such as separators, keep nothing.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from heed.documents.codes import is_code
from heed.documents.zip_package import ZipPackage

_WITH_REFERENCES = re.compile(r"xl/(?:worksheets|tables|pivotCache)/[^/]+\.xml|xl/workbook\.xml")
_FORMULA = re.compile(
    r"<(?:\w+:)?(?:f|formula[12]?|calculatedColumnFormula|totalsRowFormula|definedName)(?:\s[^<>]*)?>([^<]*)<"
)
_NAMED = re.compile(r"""<(?:\w+:)?(tableColumn|cacheField|filter|customFilter|cfRule|s)\s[^<>]*""")
_VALUE = re.compile(r"""\s(?:name|val|v|text)=(?:"([^"]*)"|'([^']*)')""")

_TOKEN = re.compile(r""""(?:[^"]|"")*"|'(?:[^']|'')*'|[\w.]+\(|[\w.]+|[<>=]+|[^\s"']""")
"""Of a formula: a text, the name of a sheet, the beginning of a function, a word, signs."""
_MATCHING = frozenset((
    "COUNTIF", "COUNTIFS", "SUMIF", "SUMIFS", "AVERAGEIF", "AVERAGEIFS", "MAXIFS", "MINIFS", "MATCH", "XMATCH",
    "LOOKUP", "VLOOKUP", "HLOOKUP", "XLOOKUP", "EXACT", "SWITCH",
))  # fmt: skip
"""Functions that look for a whole text."""
_SEARCHING = frozenset(("SEARCH", "SEARCHB", "FIND", "FINDB", "TEXTBEFORE", "TEXTAFTER", "TEXTSPLIT"))
"""Functions that look for a part of a text."""
_CUTTING = frozenset(("LEFT", "LEFTB", "RIGHT", "RIGHTB", "MID", "MIDB"))
"""Functions whose result is a part of a text."""
_ESCAPE = re.compile(r"_x([0-9A-Fa-f]{4})_")
"""How Excel writes a character by its number, such as a line break in a heading; `_x005F_` is an underscore."""
_SIGN = re.compile(r"\s*(?:<>|<=|>=|=|<|>)?")
_WILDCARD = re.compile(r"~([*?~])|(.)", re.DOTALL)

SHORTEST_PART = 3
"""Characters of a part that keeps cells: nearly every text has a given letter."""
Use = Literal["whole", "criterion", "part"]


def referred(package: ZipPackage) -> Callable[[str, str], bool]:
    """Whether an element with a text stays: a code, or a cell that something in the workbook refers to."""
    references = _References()
    for name in package.names:
        if _WITH_REFERENCES.fullmatch(name):
            content = package.read(name).decode("utf-8", "replace")
            for formula in dict.fromkeys(_FORMULA.findall(content)):
                if "&quot;" in formula or '"' in formula:
                    for text, use in texts_of(html.unescape(formula)):
                        references.add(text, use)
            for element in _NAMED.finditer(content):
                for a, b in _VALUE.findall(element[0]):
                    references.add(html.unescape(a or b), "criterion" if element[1] == "customFilter" else "whole")
    return lambda name, text: is_code(text) or (name in ("s:si", "s:is") and references.has(text))


class _References:
    """The texts that are referred to."""

    def __init__(self) -> None:
        self._whole: set[str] = set()
        self._parts: dict[str, None] = {}
        self._patterns: dict[str, re.Pattern[str]] = {}

    def add(self, text: str, use: Use) -> None:
        """Add a text that is used in some way."""
        text = _comparable(text)
        self._whole.update(each.strip() for each in (text, *text.split(",")))
        criterion = _SIGN.sub("", text, count=1).strip()
        is_short = use == "part" and len(criterion) < SHORTEST_PART
        if use == "whole" or is_short or not any(map(str.isalnum, criterion)):
            return
        if any(sign in criterion for sign in "*?~"):
            pattern = f"*{criterion}*" if use == "part" else criterion
            self._patterns.setdefault(pattern, re.compile(_expression(pattern), re.DOTALL))
        elif use == "part":
            self._parts[criterion] = None
        else:
            self._whole.add(criterion)

    def has(self, text: str) -> bool:
        """Whether one of them refers to a text."""
        text = _comparable(text).strip()
        return (
            text in self._whole
            or any(part in text for part in self._parts)
            or any(pattern.fullmatch(text) for pattern in self._patterns.values())
        )


def _comparable(text: str) -> str:
    """A text as Excel compares it: read, in small letters, with line breaks of one kind."""
    read = _ESCAPE.sub(lambda escape: chr(int(escape[1], 16)), text)
    return read.replace("\r\n", "\n").casefold()


def _expression(pattern: str) -> str:
    """The regular expression of a pattern with `*` and `?`, which takes linear time for each of its pieces."""
    pieces = [""]
    for escaped, char in _WILDCARD.findall(pattern):
        if char == "*":
            pieces.append("")
        else:
            pieces[-1] += "." if char == "?" else re.escape(escaped or char)
    first, *others = pieces
    if not others:
        return first
    return first + "".join(f"(?>.*?{piece})" for piece in others[:-1] if piece) + f".*{others[-1]}"


@dataclass
class _Level:
    """What is inside a bracket of a formula."""

    is_matching: bool = False
    is_searching: bool = False
    """Whether it is inside of such functions."""
    is_compared: bool = False
    """Whether the argument that is being read has a comparison."""
    texts: list[tuple[str, bool]] = field(default_factory=list)
    """The texts of this argument, and whether each is joined with others by `&`."""

    def uses(self, has_parts: bool) -> Iterator[tuple[str, Use]]:
        """How the argument uses its texts. `has_parts`: the formula has parts of texts."""
        for text, is_joined in self.texts:
            is_part = (self.is_matching or self.is_compared) and (has_parts or is_joined)
            yield text, "part" if is_part or self.is_searching else "criterion" if self.is_matching else "whole"
        self.texts, self.is_compared = [], False


def texts_of(formula: str) -> Iterator[tuple[str, Use]]:
    """The texts in a formula, and how it uses each."""
    tokens = ["", *_TOKEN.findall(formula), ""]
    has_parts = any(_function(token) in _CUTTING for token in tokens)
    levels = [_Level()]
    is_in_array = False
    for before, token, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        level = levels[-1]
        if token.startswith('"'):
            level.texts.append((token[1:-1].replace('""', '"'), "&" in (before, after)))
        elif token.endswith("("):
            name = _function(token)
            levels.append(_Level(level.is_matching or name in _MATCHING, level.is_searching or name in _SEARCHING))
        elif token in ("{", "}"):
            is_in_array = token == "{"
        elif token[0] in "<>=":
            level.is_compared = True
        elif (token == "," and not is_in_array) or token == ")":
            yield from level.uses(has_parts)
            if token == ")" and len(levels) > 1:
                levels.pop()
    for level in levels:
        yield from level.uses(has_parts)


def _function(token: str) -> str:
    """The name of the function that a token begins, without the prefix of new functions."""
    return token[:-1].rpartition(".")[2].upper() if token.endswith("(") else ""
