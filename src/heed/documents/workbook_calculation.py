"""Results of formulas, which a workbook stores: when a text changes, they have to be calculated again.

heed does not calculate. It asks the program that opens the workbook to do so (`fullCalcOnLoad`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from heed.documents.xml_tokens import xml_tokens

_WORKBOOK = "xl/workbook.xml"
_RESULT = re.compile(r"<(?:\w+:)?f(?:\s[^<>]*)?(?:/>|>[^<]*</(?:\w+:)?f>)\s*<(?:\w+:)?v(?:\s[^<>]*)?>[^<]")
"""A formula of a cell with its result."""
_BEFORE = frozenset(("sheets", "functionGroups", "externalReferences", "definedNames"))
"""Elements that stand before the settings of calculation."""
_SETTING = re.compile(r"""\sfullCalcOnLoad\s*=\s*(?:"[^"]*"|'[^']*')""")
_START = re.compile(r"<([\w.-]+:)?")
_END = re.compile(r"\s*/?>$")


def calculated_on_load(parts: Mapping[str, str]) -> dict[str, str]:
    """The part that asks for new results, given the parts with text; none if no formula has a result."""
    if _WORKBOOK not in parts or not any(map(_RESULT.search, parts.values())):
        return {}
    text = parts[_WORKBOOK]
    root, at, after = None, 0, 0
    for token in xml_tokens(text, _WORKBOOK):
        if root is None and token.kind == "open":
            root = token
        namespace, _, name = token.name.rpartition(" ")
        is_own = root is not None and namespace == root.name.rpartition(" ")[0]
        if is_own and name == "calcPr" and token.kind == "open":
            tag = _END.sub(lambda end: f' fullCalcOnLoad="1"{end[0]}', _SETTING.sub("", token.raw))
            return {_WORKBOOK: text[:at] + tag + text[at + len(token.raw) :]}
        at += len(token.raw)
        if is_own and name in _BEFORE and token.kind == "close":
            after = at
    start = _START.match(root.raw) if root and after else None
    return {_WORKBOOK: f'{text[:after]}{start[0]}calcPr fullCalcOnLoad="1"/>{text[after:]}'} if start else {}
