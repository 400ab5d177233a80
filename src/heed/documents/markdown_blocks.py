"""Blocks that Markdown has beyond CommonMark, as rules for markdown-it-py: most dialects have some of them.

| block | what happens to it |
| --- | --- |
| formulas: `$$ ... $$`, `\\[ ... \\]`, `\\begin{...} ... \\end{...}` | stay |
| lines of containers: `:::note`, `/// details` | stay, and separate texts; titles of notes are translated |
| admonitions and tabs of MkDocs: `!!! note "A title"`, `??? tip`, `=== "A tab"` | stay; titles are translated |
| definitions: `:   a text` | the text is translated |
| lines of attributes: `{.class #id}`, `{: .class }` | stay |
| tables that only pandoc has: with lines of dashes below the heads of columns, or drawn with `+` and `-` | stay |
| `import ... from` and `export` of MDX | stay |
"""

from __future__ import annotations

import re

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock

MOST_LINES = 200
"""Of a formula, which keeps the search for its end from taking quadratic time."""
INDENT = 4
"""Columns by which the text of an admonition is indented."""
ATTRIBUTES = r"\{:?[ \t]*(?:[#.][\w:-]|[\w:-]{1,40}=|:)[^{}\n]{0,200}\}"
_INTERRUPTED = ["paragraph", "reference", "blockquote", "list"]
_ENVIRONMENT = re.compile(r"\\begin\{([A-Za-z]{1,30}\*?)\}")
_AFTER_FORMULA = re.compile(r"[ \t]*(?:\{[^{}]*\}|\([^()]*\))?[ \t]*[.,;]?[ \t]*")
_MATHEMATICAL = re.compile(r"[\\^_={}+<>]")
_WORD = re.compile(r"[a-z]{3}")
_CONTAINER = re.compile(r"(?::{3,}|/{3,})(?:[ \t]*([A-Za-z][\w-]*|\{[A-Za-z][\w-]*\})?(.*))?")
_TITLE = re.compile(r"[ \t]*(?:\[([^\[\]]+)\]|[ \t|]([^\[\]{}=|]*[^\[\]{}=|\s])[ \t]*)(?:\{[^{}]*\})?[ \t]*")
_NOTE = re.compile(
    "admonition|attention|bug|caution|danger|details|error|example|failure|hint|important|info|note|question|quote"
    "|seealso|spoiler|success|summary|tip|todo|warning",
    re.IGNORECASE,
)
"""Containers with a title."""
_ADMONITION = re.compile(
    r"(?:(?:!!!|\?\?\?\+?)[ \t]+[\w-]+(?:[ \t]+(?:inline|end))*(?:[ \t]+\"(.*)\")?|={3}[!+]?[ \t]+\"(.*)\")[ \t]*"
)
_DEFINITION = re.compile(r":[ \t]+(?=\S)")
_ATTRIBUTE_LINE = re.compile(ATTRIBUTES + r"[ \t]*")
_DASHES = re.compile(r"-{2,}(?:[ \t]+-{2,})+")
_GRID = re.compile(r"\+(?:[-=:]{3,}\+)+")
_MODULE = re.compile(
    r"import\s+(?:['\"]|(?:type\s+)?[\w$*{][^'\"]*\bfrom\s+['\"])|import\s*\{[^'\"}]*$"
    r"|export\s+(?:(?:async\s+)?function\b|(?:const|let|var)\s+[\w$\[{].*=|class\s+\w+.*\{|\*\s|\{"
    r"|default\s+(?:[({<]|(?:async|function|class)\b|[\w$.]+;?\s*$))"
)


def add_rules(markdown: MarkdownIt) -> None:
    """Add the rules of these blocks."""
    rules = (_formula, _container, _admonition, _definition, _attributes, _grid)
    for rule in rules:
        markdown.block.ruler.before("table", rule.__name__, rule, {"alt": _INTERRUPTED})
    markdown.block.ruler.before("table", "module", _module)
    markdown.block.ruler.before("table", "columns", _columns)


def is_prose(formula: str) -> bool:
    r"""Whether what is between `\(` and `\)` has words and nothing mathematical: its brackets are just escaped."""
    return not _MATHEMATICAL.search(formula) and _WORD.search(formula) is not None


def _line(state: StateBlock, number: int) -> str:
    """A line without the marks of the blocks around it."""
    return state.src[state.bMarks[number] + state.tShift[number] : state.eMarks[number]].rstrip(" \t")


def _push_kept(state: StateBlock, first: int, last: int) -> bool:
    """Add a block of lines that stay as they are."""
    token = state.push("kept", "", 0)
    token.map = [first, last]
    state.line = last
    return True


def _push_title(state: StateBlock, number: int, match: re.Match[str], group: int, end: str) -> None:
    """Add a text inside a line. `end`: the character that ends it."""
    state.push("paragraph_open", "p", 1)
    token = state.push("inline", "", 0)
    token.content, token.map, token.children = match[group], [number, number + 1], []
    begin = state.bMarks[number] + state.tShift[number]
    token.meta = {"column": begin + match.start(group) - state.src.rfind("\n", 0, begin) - 1, "end": end}
    state.push("paragraph_close", "p", -1)


def _formula(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    if state.is_code_block(start):
        return False
    text = _line(state, start)
    environment = _ENVIRONMENT.match(text)
    if environment:
        opening, closing = environment[0], f"\\end{{{environment[1]}}}"
    elif text.startswith(("$$", "\\[")):
        opening, closing = text[:2], {"$$": "$$", "\\[": "\\]"}[text[:2]]
    else:
        return False
    last = _end_of_formula(state, start, end, opening, closing)
    if not last:
        return False
    return silent or _push_kept(state, start, last)


def _end_of_formula(state: StateBlock, start: int, end: int, opening: str, closing: str) -> int:
    """The line after a formula; 0 if it does not end before another one begins, or has text behind its end."""
    text = _line(state, start)[len(opening) :]
    is_bare = not text
    formula = ""
    for number in range(start, min(end, start + MOST_LINES)):
        if number > start:
            text = _line(state, number)
            if (not text and not is_bare) or (text and state.sCount[number] < state.blkIndent):
                return 0
            if opening != closing and text.startswith(opening):
                return 0
        before, found, after = text.partition(closing)
        formula += before
        if found:
            is_formula = bool(formula.strip()) and not (closing == "\\]" and is_prose(formula))
            return number + 1 if is_formula and _AFTER_FORMULA.fullmatch(after) else 0
    return 0


def _container(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    if state.is_code_block(start):
        return False
    match = _CONTAINER.fullmatch(_line(state, start))
    if match is None or silent:
        return match is not None
    if match[1] and _NOTE.fullmatch(match[1].strip("{}")):
        title = _TITLE.fullmatch(_line(state, start), match.end(1))
        if title:
            _push_title(state, start, title, title.lastindex or 1, "]" if title[1] else "")
    return _push_kept(state, start, start + 1)


def _admonition(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    if state.is_code_block(start):
        return False
    match = _ADMONITION.fullmatch(_line(state, start))
    if match is None or silent:
        return match is not None
    last, number = start + 1, start + 1
    indent = state.blkIndent + INDENT
    while number < end and (state.isEmpty(number) or state.sCount[number] >= indent):
        number += 1
        last = last if state.isEmpty(number - 1) else number
    state.push("admonition_open", "div", 1)
    if match.lastindex and match[match.lastindex].strip():
        _push_title(state, start, match, match.lastindex, '"')
    before = state.lineMax, state.blkIndent
    state.lineMax, state.blkIndent = last, indent
    state.md.block.tokenize(state, start + 1, last)
    state.lineMax, state.blkIndent = before
    state.push("admonition_close", "div", -1)
    state.line = last
    return True


def _definition(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    if state.is_code_block(start):
        return False
    match = _DEFINITION.match(_line(state, start))
    if match is None or silent:
        return match is not None
    before = state.tShift[start], state.sCount[start], state.blkIndent
    state.blkIndent += min(match.end(), INDENT)
    state.tShift[start] += match.end()
    state.sCount[start] = state.blkIndent
    state.push("definition_open", "dd", 1)
    state.md.block.tokenize(state, start, end)
    state.push("definition_close", "dd", -1)
    state.tShift[start], state.sCount[start], state.blkIndent = before
    return True


def _attributes(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    if state.is_code_block(start) or not _ATTRIBUTE_LINE.fullmatch(_line(state, start)):
        return False
    return silent or _push_kept(state, start, start + 1)


def _columns(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """A table whose columns are marked by dashes, below their heads or above the first row."""
    if state.is_code_block(start):
        return False
    dashes = next((n for n in (start, start + 1) if n < end and _DASHES.fullmatch(_line(state, n))), None)
    if dashes is None:
        return False
    last = dashes + 1
    while last < end and not state.isEmpty(last):
        last += 1
    if dashes == start and (last == start + 1 or not _DASHES.fullmatch(_line(state, last - 1))):
        return False  # without heads, a table ends with dashes too: this is a rule
    return silent or _push_kept(state, start, last)


def _grid(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """A table that is drawn with signs."""
    if state.is_code_block(start) or not _GRID.fullmatch(_line(state, start)):
        return False
    last = start + 1
    while last < end and _line(state, last).startswith(("+", "|")):
        last += 1
    return silent or _push_kept(state, start, last)


def _module(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    if state.blkIndent or state.sCount[start] or not _MODULE.match(_line(state, start)):
        return False
    last = start + 1
    while last < end and not state.isEmpty(last):
        last += 1
    return silent or _push_kept(state, start, last)
