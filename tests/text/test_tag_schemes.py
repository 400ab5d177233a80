"""Tag schemes: spans by the rules of the CoNLL script, conversion, legal sequences and recognition."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heed.text.tag_schemes import LETTERS, Scheme, SchemeCounts, Span, broken, converted, follows, spans, written

OF_SPANS = [scheme for scheme in get_args(Scheme) if scheme != "plain"]
every_scheme = pytest.mark.parametrize("scheme", OF_SPANS)


@st.composite
def sentences_of_spans(draw: st.DrawFn) -> tuple[list[Span], int]:
    """Spans that do not overlap, and the length of their sentence."""
    found, at = [], 0
    for gap, size, type in draw(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 3), st.sampled_from("XY")))):
        found.append(Span(at + gap, at + gap + size, type))
        at += gap + size
    return found, at + draw(st.integers(0, 2))


CASES: dict[str, list[tuple[int, int, str]]] = {
    "O O": [],
    "": [],
    "B-A I-A O B-B": [(0, 2, "A"), (3, 4, "B")],
    "I-A I-A O I-B": [(0, 2, "A"), (3, 4, "B")],
    "I-A B-A I-A": [(0, 1, "A"), (1, 3, "A")],
    "B-A I-B I-B": [(0, 1, "A"), (1, 3, "B")],
    "O I-A B-B": [(1, 2, "A"), (2, 3, "B")],
    "B-A B-A": [(0, 1, "A"), (1, 2, "A")],
    "S-A S-A B-A I-A E-A": [(0, 1, "A"), (1, 2, "A"), (2, 5, "A")],
    "E-A E-A": [(0, 1, "A"), (1, 2, "A")],
    "E-A I-A": [(0, 1, "A"), (1, 2, "A")],
    "S-A I-A": [(0, 1, "A"), (1, 2, "A")],
    "B-A E-B": [(0, 1, "A"), (1, 2, "B")],
    "I-A E-A I-A": [(0, 2, "A"), (2, 3, "A")],
    "B-A S-A": [(0, 1, "A"), (1, 2, "A")],
    "B-A L-A U-B": [(0, 2, "A"), (2, 3, "B")],
    "B-A M-A E-A": [(0, 3, "A")],
    "B I O B": [(0, 2, ""), (3, 4, "")],
    "B-ARGM-LOC I-ARGM-LOC I-ARG0": [(0, 2, "ARGM-LOC"), (2, 3, "ARG0")],
}


@pytest.mark.parametrize("tags", CASES)
def test_spans_are_those_that_the_script_counts(tags: str) -> None:
    assert spans(tags.split()) == CASES[tags]


def test_spans_are_those_of_seqeval() -> None:
    labels = pytest.importorskip("seqeval.metrics.sequence_labeling", reason="seqeval is not installed")

    @given(st.lists(st.sampled_from(["O", *(f"{letter}-{type}" for letter in "BIES" for type in "XY")]), max_size=8))
    def check(tags: list[str]) -> None:
        assert spans(tags) == [Span(begin, end + 1, type) for type, begin, end in labels.get_entities(tags)]

    check()


@every_scheme
@given(example=sentences_of_spans())
def test_tags_of_every_scheme_denote_the_spans_that_they_were_written_from(
    scheme: Scheme, example: tuple[list[Span], int]
) -> None:
    found, length = example
    tags = written(found, length, scheme)
    assert len(tags) == length and spans(tags) == found
    assert broken(tags, scheme) == []
    for other in OF_SPANS:
        assert converted(converted(tags, other), scheme) == tags


def test_each_scheme_writes_two_touching_spans_in_its_own_way() -> None:
    found = [Span(1, 4, "X"), Span(4, 5, "X")]
    assert {scheme: " ".join(written(found, 5, scheme)) for scheme in LETTERS} == {
        "iob1": "O I-X I-X I-X B-X",
        "iob2": "O B-X I-X I-X B-X",
        "iobes": "O B-X I-X E-X S-X",
        "bilou": "O B-X I-X L-X U-X",
        "bmes": "O B-X M-X E-X S-X",
    }


BROKEN = {
    ("iob2", "O I-X"): [1],
    ("iob2", "B-X I-Y I-Y"): [1],
    ("iob1", "O B-X"): [1],
    ("iob1", "I-X B-X I-X"): [],
    ("iobes", "B-X O"): [1],
    ("iobes", "B-X"): [1],
    ("iobes", "S-X E-X"): [1],
    ("iobes", "B-X E-Y"): [1],
    ("bilou", "B-X L-X U-X O"): [],
    ("bmes", "B-X S-X O"): [1],
    ("plain", "B-X O I-X"): [],
}


@pytest.mark.parametrize(("scheme", "tags"), BROKEN)
def test_broken_sequences_are_reported_where_they_break(scheme: Scheme, tags: str) -> None:
    assert broken(tags.split(), scheme) == BROKEN[scheme, tags]


RECOGNISED = {
    "O I-X O I-X I-X B-X": "iob1",
    "I-X I-Y O": "iob1",
    "B-X I-X O B-Y": "iob2",
    "B-X I-X O B-Y I-X O B-Y": "iob2",
    "B-X E-X O S-X": "iobes",
    "B-X L-X U-X": "bilou",
    "B-X M-X E-X": "bmes",
    "NOUN VERB PUNCT": "plain",
    "O O": "plain",
    "B I O": "iob2",
    "B-X ORG O": "plain",
    "I NN O": "plain",
}


@pytest.mark.parametrize("tags", RECOGNISED)
def test_schemes_are_recognised(tags: str) -> None:
    counts = SchemeCounts()
    counts.add(tags.split())
    assert counts.scheme == RECOGNISED[tags]


@every_scheme
def test_the_end_of_a_sentence_is_legal_after_o(scheme: Scheme) -> None:
    assert follows("O", None, scheme) and follows(None, "O", scheme) and follows(None, None, scheme)
