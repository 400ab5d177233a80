"""Does text from anywhere stay text?"""

from __future__ import annotations

from heed.report.markdown import code, plain, table


def test_markup_in_text_is_shown_and_not_obeyed() -> None:
    assert plain("a *b* <img src=x> [c](d) | `e`") == r"a \*b\* \<img src=x\> \[c\](d) \| \`e\`"
    assert plain("one\n# two\r\n") == r"one \# two"
    assert plain("Ein Hund läuft, 3-mal (schnell).") == "Ein Hund läuft, 3-mal (schnell)."


def test_code_may_hold_bars_and_backticks() -> None:
    assert code("nrefs:1|tok:13a") == "`nrefs:1|tok:13a`"
    assert code("a`b") == "`` a`b ``"


def test_a_table_has_its_heads_and_its_sides() -> None:
    assert table([["a", "b"], ["1", "2"]], right=[1]) == "| a | b |\n| --- | ---: |\n| 1 | 2 |"


def test_a_bar_ends_no_cell() -> None:
    assert table([[code("x|y"), plain("z|")]]).split("\n")[0] == r"| `x\|y` | z\| |"
