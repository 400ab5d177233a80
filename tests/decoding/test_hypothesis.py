"""Length penalties, limits of length, and contradictory options."""

from __future__ import annotations

import pytest

from heed.core.errors import UsageError
from heed.decoding.options import SearchOptions
from heed.decoding.ranking import LengthPenalty


@pytest.mark.parametrize(
    ("penalty", "length", "expected"),
    [
        (LengthPenalty(0.6), 1, 1.0),
        (LengthPenalty(0.6), 7, 2**0.6),
        (LengthPenalty(1.0), 13, 3.0),
        (LengthPenalty(0.0), 13, 1.0),
        (LengthPenalty(1.0, "mean"), 13, 13.0),
        (LengthPenalty(0.5, "mean"), 16, 4.0),
        (LengthPenalty(1.0, "mean"), 0, 1.0),
    ],
)
def test_length_penalties_follow_their_formulas(penalty: LengthPenalty, length: int, expected: float) -> None:
    """((5 + |y|) / 6)^α of Wu et al. (2016), or |y|^α."""
    assert penalty.divisor(length) == pytest.approx(expected)


def test_the_length_limit_is_twice_the_source_plus_20_tokens_unless_set() -> None:
    assert SearchOptions().limit(10) == 41, "and an end of sentence"
    assert SearchOptions(max_tokens=5).limit(10) == 6


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"nbest": 6, "beam_size": 5}, "nbest must not be above beam_size, got 6 and 5"),
        ({"min_tokens": 6, "max_tokens": 5}, "min_tokens must not be above max_tokens, got 6 and 5"),
    ],
)
def test_contradictory_options_are_an_error(choices: dict[str, int], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        SearchOptions(**choices)


def test_samples_may_outnumber_the_beam() -> None:
    assert SearchOptions(sample=True, nbest=9, beam_size=5).nbest == 9
