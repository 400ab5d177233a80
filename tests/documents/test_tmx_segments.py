"""Segments of translation memories: codes are kept, and their text is found."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from to_itself import to_itself

from heed.documents.inline_tags import insert_tags
from heed.documents.spans import Part, Span, escape
from heed.documents.tmx import parse_segment

PIECES = [
    "A dog", "  ", " runs.", "\n", "&amp; ", "x", '<bpt i="1" x="1">{b}</bpt>', '<ept i="1">{/b}</ept>',
    '<bpt i="2"/>', '<ept i="2"/>', "<hi>", "</hi>", '<hi type=">"/>', "<ph>&lt;1/></ph>", '<ph type="lb"/>',
    "<ph>\\n</ph>", '<ph>a <sub>text</sub> b</ph>', "<it pos='begin'>{i}</it>", "<ut>x</ut>",
]  # fmt: skip


def parsed(inside: str) -> list[Part]:
    return parse_segment(f"<seg>{inside}</seg>".encode())


def texts(inside: str) -> list[str]:
    """What is translated."""
    return [part.plain for part in parsed(inside) if isinstance(part, Span)]


def kinds(inside: str) -> list[str]:
    """Of all marks."""
    return [mark.kind for part in parsed(inside) if isinstance(part, Span) for mark in part.tags]


def unchanged(inside: str) -> str:
    """The segment, each sentence translated to itself."""
    return to_itself(parsed(inside))


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        ("A <bpt i='1'>{b}</bpt>dog<ept i='1'>{/b}</ept>.", ["A dog."]),
        ("one<ph>&lt;br/></ph>two", ["one", "two"]),
        ("one<ph type='lb'/>two", ["one", "two"]),
        ("one<ph type='image'/>two", ["onetwo"]),
        ("one<bpt>&lt;br/></bpt>two", ["onetwo"]),  # begins formatting, whatever it is called
        ("one <ph>a <sub>note\n</sub></ph>two", ["one two"]),
        ("<![CDATA[a < b]]> &amp; <!-- c -->d", ["a < b & d"]),
        (" <hi>é</hi>  🙂\n", ["é 🙂"]),
        ("", []),
        (" ", []),
        ("<ph/>", [""]),
    ],
)
def test_what_is_translated_is_what_a_reader_sees_without_the_texts_in_codes(inside: str, expected: list[str]) -> None:
    assert texts(inside) == expected


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        ('<bpt i="1"/>a<ept i="1"/>', ["open", "close"]),
        ('<bpt i="1"/><bpt i="2"/>a<ept i="1"/>b<ept i="2"/>', ["open", "open", "close", "close"]),
        ('<ept i="1"/>a<bpt i="1"/>', ["single", "single"]),
        ('<bpt i="1"/>a<bpt i="1"/>b<ept i="1"/>', ["single", "open", "close"]),
        ('a<bpt i="1"/>b', ["single"]),
        ("<hi>a<hi/></hi>", ["open", "single", "close"]),
        ("<bpt>x</bpt>a<ept>y</ept>", ["open", "close"]),  # of versions before 1.3
    ],
)
def test_codes_that_belong_together_are_pairs(inside: str, expected: list[str]) -> None:
    assert kinds(inside) == expected


def test_a_pair_may_span_a_line_break() -> None:
    inside = '<bpt i="1"/>one<ph type="lb"/>two<ept i="1"/>'
    assert kinds(inside) == ["open", "close"]
    assert unchanged(inside) == inside


def test_a_pair_goes_around_the_words_that_its_own_became() -> None:
    (stretch,) = [part for part in parsed('a <bpt i="1">&lt;b></bpt>red<ept i="1">&lt;/b></ept> dog') if part]
    assert isinstance(stretch, Span)
    links = [(0, 0), (1, 2), (2, 1)]
    written = insert_tags(stretch.tags, stretch.plain, "un chien rouge", links, escape)
    assert written == 'un chien <bpt i="1">&lt;b></bpt>rouge<ept i="1">&lt;/b></ept>'


@given(st.lists(st.sampled_from(PIECES), max_size=12))
def test_no_code_is_ever_lost_and_none_changes(pieces: list[str]) -> None:
    depth, inside = 0, ""
    for piece in pieces:
        depth += (piece == "<hi>") - (piece == "</hi>")
        inside += piece if depth >= 0 else ""
        depth = max(depth, 0)
    inside += "</hi>" * depth
    codes = [piece for piece in PIECES if piece.startswith("<")]
    assert {code: unchanged(inside).count(code) for code in codes} == {code: inside.count(code) for code in codes}


@given(st.lists(st.sampled_from(PIECES[:6]), max_size=8))
def test_text_without_codes_is_one_stretch(pieces: list[str]) -> None:
    assert len(texts("".join(pieces))) <= 1
