"""Phrase tables in the format of Moses: written, read back, and read from elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

from heed.core.errors import DataError
from heed.statistical.phrases.extraction import LinkedText
from heed.statistical.phrases.moses import WordForms, read_table, table_lines
from heed.statistical.phrases.table import PhraseTable, score_phrases

TEXTS = ["", "", "", "", " a", " man", ",", " ,", " |[x]", " ein", " Mann", "'s", " 's"]
FORMS = WordForms(TEXTS, np.array([-9, -9, -9, -9, -1, -1, -1, -5, -2, -1, -1, -1, -4], dtype=np.float64))


@pytest.fixture(scope="module")
def table() -> PhraseTable:
    pairs = [([4, 5, 6], [9, 10, 6]), ([4, 5], [9, 10]), ([8, 7], [7, 8]), ([5, 12], [10, 11])]
    links = [{(0, 0), (1, 1), (2, 2)}, {(0, 0), (1, 1)}, {(0, 1), (1, 0)}, {(0, 0), (1, 1)}]
    return score_phrases(LinkedText.of(pairs, map(frozenset, links), 3), len(TEXTS))


def test_a_line_has_what_moses_expects(table: PhraseTable) -> None:
    [line] = [line for line in table_lines(table, FORMS) if line.startswith("a man ||| ")]
    assert line == "a man ||| ein Mann ||| 1 1 1 1 ||| 0-0 1-1 ||| 2 2 2"


def test_forms_and_special_characters_are_written_and_read() -> None:
    assert FORMS.words[4:] == [
        "a",
        "man",
        ",",
        "\uffee,",
        "&#124;&#91;x&#93;",
        "ein",
        "Mann",
        "&apos;s",
        "\uffee&apos;s",
    ]
    assert [FORMS.id(word) for word in FORMS.words[4:]] == list(range(4, len(TEXTS)))
    assert FORMS.id("unknown") is None


def test_a_table_that_is_read_back_is_the_same(table: PhraseTable) -> None:
    again, num_unknown = read_table(list(table_lines(table, FORMS)), FORMS, "table")
    assert num_unknown == 0
    for name in ("sources", "targets", "offsets", "tgt_nodes", "links", "counts"):
        assert (again.arrays()[name] == table.arrays()[name]).all(), name
    assert again.features == pytest.approx(table.features, abs=1e-5)
    assert np.exp(again.orientations) == pytest.approx(1 / 3)


def test_a_table_from_elsewhere_may_have_unknown_words_and_no_links() -> None:
    lines = ["a ||| ein ||| 0.5 0.5 0.5 0.5", "a dog ||| ein Hund ||| 0.5 0.5 0.5 0.5 ||| 0-0 1-1 ||| 1 1 1 ||| |||"]
    table, num_unknown = read_table(lines, FORMS, "table")
    assert (len(table), num_unknown) == (1, 1)


PAIR = "a ||| ein ||| 0.5 0.5 0.5 0.5 ||| "


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("a ein", "phrases of 2 and 0 words"), ("||| ein ||| 1 1 1 1", "phrases of 0 and 1 words"),
        ("a ||| " + "ein " * 8 + "||| 0.5 0.5 0.5 0.5", "phrases of 1 and 8 words"),
        ("a ||| ein ||| 0.5 0.5 0.5", "3 probabilities"), ("a ||| ein ||| x y z w", "'x' is not a number above 0"),
        ("a ||| ein ||| 0 0.5 0.5 0.5", "'0' is not"), ("a ||| ein ||| 1e-999 0.5 0.5 0.5", "'1e-999' is not"),
        ("a ||| ein ||| nan 0.5 0.5 0.5", "'nan' is not"), ("a ||| ein ||| 1 inf 0.5 0.5", "'inf' is not"),
        ("a ||| ein ||| 1 1 1 -1", "'-1' is not"), (PAIR + "0-3", "'0-3' is not a link i-j between 1 and 1 words"),
        (PAIR + "0-0-0", "'0-0-0' is not"), (PAIR + "0--0", "'0--0' is not"),
        (PAIR + "0-0 ||| 1 1 1e300", "count is 1e\\+300, and at most 2,147,483,647"),
        (PAIR + "0-0 ||| 1 1 2147483648", "count is 2.15e\\+09"), (PAIR + "0-0 ||| 1 1 nan", "'nan' is not"),
        (PAIR + "0-0 ||| 1 1 inf", "'inf' is not"), (PAIR, "a pair of phrases that an earlier line has"),
    ],
)  # fmt: skip
def test_other_lines_are_refused_with_their_number_and_the_reason(line: str, reason: str) -> None:
    with pytest.raises(DataError, match=f"^table:2: not a line of a phrase table: .*{reason}"):
        read_table(["a ||| ein ||| 1 1 1 1", line], FORMS, "table")


def test_a_table_without_known_words_is_refused() -> None:
    with pytest.raises(DataError, match="no phrase pair"):
        read_table(["x ||| y ||| 1 1 1 1"], FORMS, "table")
