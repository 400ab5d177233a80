"""The domain of a text by naive Bayes, as by its definition, and as if the text had not been seen."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heed.memory.domain import MU, Domain

TEXTS = st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=4), min_size=1, max_size=6)
Texts = list[list[int]]


def by_definition(text: Sequence[int], ours: Texts, theirs: Texts) -> float:
    """The mean log-ratio of the tokens, with loops."""
    sides = [[token for each in side for token in each] for side in (ours, theirs)]
    total = 0.0
    for token in text:
        both = (sum(side.count(token) for side in sides) + 0.5) / (sum(map(len, sides)) + 1)
        first, second = ((side.count(token) + MU * both) / (len(side) + MU) for side in sides)
        total += math.log(first) - math.log(second)
    return total / len(text)


def domain_of(ours: Texts, theirs: Texts) -> Domain:
    domain = Domain()
    domain.add(0, ours)
    domain.add(1, theirs)
    return domain


@given(TEXTS, TEXTS, st.lists(st.integers(0, 7), min_size=1, max_size=5))
def test_the_ratio_is_that_of_the_definition(ours: Texts, theirs: Texts, text: list[int]) -> None:
    assert domain_of(ours, theirs).log_ratio(text) == pytest.approx(by_definition(text, ours, theirs))


@given(TEXTS, TEXTS, st.integers(1, 3))
def test_a_known_text_is_compared_with_the_others(ours: Texts, theirs: Texts, copies: int) -> None:
    """Wherever and however often it is there."""
    text = [1, 2, 1]
    ours, theirs = ([each for each in side if each != text] for side in (ours, theirs))
    known = domain_of([*ours, *[text] * copies], [*theirs, text])
    without = domain_of(ours, theirs)
    assert known.log_ratio(text, is_known=True) == pytest.approx(without.log_ratio(text))


def test_without_two_sides_or_a_text_nothing_is_known() -> None:
    assert domain_of([[1]], []).log_ratio([1]) == domain_of([], [[1]]).log_ratio([1]) == 0
    assert domain_of([[1]], [[2]]).log_ratio([]) == 0
    assert domain_of([[1]], [[2]]).log_ratio([1]) > 0 > domain_of([[1]], [[2]]).log_ratio([2])
