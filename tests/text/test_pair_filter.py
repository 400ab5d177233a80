"""The pair filter drops what its settings say, with the right reason."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heed.text.pair_filter import PairFilter, PairFilterConfig

LONG = "x" * 5001


def kept(pair_filter: PairFilter, pairs: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [pair for pair in pairs if pair_filter.reason_to_drop(*pair) is None]


@pytest.mark.parametrize(
    ("src", "tgt", "options", "reason"),
    [
        ("a", "b", {}, None),
        ("", "b", {}, "empty"),
        ("a", " \t", {}, "empty"),
        ("", "b", {"drop_empty": False}, None),
        ("x" * 91, "y" * 10, {}, "length ratio"),
        ("x" * 90, "y" * 10, {}, None),
        ("y", "x" * 21, {}, "length ratio"),
        ("y", "x" * 20, {}, None),
        ("y", "x" * 20, {"ratio_from": 10}, "length ratio"),
        ("x" * 30, "y" * 10, {"max_length_ratio": 2.9}, "length ratio"),
        (LONG, LONG, {}, "too long"),
        (LONG[1:], LONG[1:], {}, None),
        ("a", " a", {}, None),
        ("a", " a", {"drop_copies": True}, "copy"),
    ],
)
def test_a_pair_is_dropped_for_its_reason(src: str, tgt: str, options: dict[str, Any], reason: str | None) -> None:
    assert PairFilter(PairFilterConfig(**options)).reason_to_drop(src, tgt) == reason


def test_the_first_of_equal_pairs_is_kept() -> None:
    pairs = [("a", "b"), ("a", "c"), ("a", "b"), ("a ", "b"), ("d", "b")]
    pair_filter = PairFilter()
    assert kept(pair_filter, pairs) == [("a", "b"), ("a", "c"), ("d", "b")]
    assert pair_filter.dropped == {"duplicate": 2}
    assert kept(PairFilter(PairFilterConfig(drop_duplicates=False)), pairs) == pairs


SIDE = st.text("ab ", max_size=40)


@given(pairs=st.lists(st.tuples(SIDE, SIDE)))
def test_every_pair_is_kept_or_counted_and_keeping_twice_changes_nothing(pairs: list[tuple[str, str]]) -> None:
    pair_filter = PairFilter()
    remaining = kept(pair_filter, pairs)
    assert len(remaining) + pair_filter.dropped.total() == len(pairs)
    assert kept(PairFilter(), remaining) == remaining


def test_the_kept_pairs_are_those_that_a_set_of_the_texts_keeps() -> None:
    """Over enough pairs that the compact set grows several times."""
    dice = random.Random(4)
    pairs = [
        (f"{dice.randrange(60)} quelle{' ' * dice.randrange(2)}", f"goal {dice.randrange(60)}") for _ in range(9000)
    ]
    seen: set[tuple[str, str]] = set()
    expected = []
    for pair in pairs:
        stripped = pair[0].strip(), pair[1].strip()
        if stripped not in seen:
            expected.append(pair)
        seen.add(stripped)
    assert 2000 < len(expected) < 4000
    assert kept(PairFilter(), pairs) == expected
