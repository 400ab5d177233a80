"""Markdown: escaped text, code and tables."""

from __future__ import annotations

from heed.report.markdown import code, plain, table


def test_markup_in_text_is_escaped() -> None:
    assert plain("a *b* <img src=x> [c](d) | `e`") == r"a \*b\* \<img src=x\> \[c\](d) \| \`e\`"
    assert plain("one\n# two\r\n") == r"one \# two"
    assert plain("Ein Hund läuft, 3-mal (schnell).") == "Ein Hund läuft, 3-mal (schnell)."


def test_code_may_contain_bars_and_backticks() -> None:
    assert code("nrefs:1|tok:13a") == "`nrefs:1|tok:13a`"
    assert code("a`b") == "`` a`b ``"


def test_a_table_has_a_header_and_alignment() -> None:
    assert table([["a", "b"], ["1", "2"]], right=[1]) == "| a | b |\n| --- | ---: |\n| 1 | 2 |"


def test_bars_in_cells_are_escaped() -> None:
    assert table([[code("x|y"), plain("z|")]]).split("\n")[0] == r"| `x\|y` | z\| |"
