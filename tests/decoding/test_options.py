"""Search options: limits of length, and errors for invalid combinations."""

from __future__ import annotations

from typing import Any

import pytest

from heed.core.config import Document, build
from heed.core.errors import UsageError
from heed.decoding.options import SearchOptions


def options(**given: Any) -> SearchOptions:
    """As a recipe would give them."""
    return build(SearchOptions, Document(given))


def test_lengths_are_functions_of_the_source() -> None:
    assert options().limit(7) == 2 * 7 + 20 + 1
    assert options(max_ratio=1.5, max_extra=3).limit(5) == 7 + 3 + 1
    assert options(max_ratio=1.5, max_extra=3, beam_size=4, no_repeat=2).greedy() == options(
        max_ratio=1.5, max_extra=3, beam_size=1
    )
    assert options(max_tokens=4).limit(100) == 5
    assert options(min_ratio=0.5, min_tokens=2).least(5) == 4
    assert options(min_ratio=0.5, min_tokens=50).least(5) == 30, "never above the longest"


def test_the_width_follows_from_the_requested_hypotheses() -> None:
    assert options().width == 5
    assert options(sample=True, nbest=3).width == 3
    assert options(mbr="chrf").width == 20
    assert options(mbr="chrf", candidates=4).width == 5
    assert options(mbr="bleu", sample=True, candidates=30).width == 30


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"nbest": 6}, "nbest must not be above beam_size, got 6 and 5"),
        ({"min_tokens": 5, "max_tokens": 3}, "min_tokens must not be above max_tokens, got 5 and 3"),
        ({"min_ratio": 3.0}, "min_ratio must not be above max_ratio, got 3.0 and 2.0"),
        ({"diversity": 0.5}, "diversity needs beam search with several hypotheses"),
        ({"diversity": 0.5, "sample": True, "nbest": 2}, "diversity needs beam search with several hypotheses"),
        ({"ban": ["a", " "]}, "ban contains an empty phrase"),
        ({"ban": ["\x01"]}, "ban contains an empty phrase"),
        ({"coverage_penalty": -1.0}, "coverage_penalty"),
        ({"mbr": "ter"}, "mbr: expected one of"),
        ({"no_repeat": -1}, "no_repeat"),
        ({"frequency_penalty": -1.0}, "penalties below 0 and bias above 0 need sampling or beam_size 1"),
        ({"bias": [[3, 0.5]]}, "penalties below 0 and bias above 0 need sampling or beam_size 1"),
    ],
)
def test_an_invalid_combination_is_an_error(given: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        options(**given)


def test_all_errors_are_reported_together() -> None:
    with pytest.raises(UsageError) as refused:
        options(nbest=6, ban=[""], min_ratio=3.0)
    for part in ("nbest must not", "ban contains an empty", "min_ratio must not"):
        assert part in str(refused.value)
    with pytest.raises(UsageError) as refused:
        options(temperature=0.0, top_p=2.0, diversity=-1.0)
    assert str(refused.value).count("expected") == 3


@pytest.mark.parametrize(
    ("beam_size", "mbr", "width"), [(1, "", 1), (5, "chrf", 5), (20, "chrf", 20), (50, "chrf", 50)]
)
def test_minimum_bayes_risk_compares_no_more_hypotheses_than_the_given_beam(
    beam_size: int, mbr: str, width: int
) -> None:
    options = SearchOptions(beam_size=20, mbr="chrf", candidates=20)
    changed = options.model_copy(update=options.of_beam(beam_size))
    assert (changed.mbr, changed.width) == (mbr, width)
    drawn = options.model_copy(update={"sample": True})
    assert drawn.model_copy(update=drawn.of_beam(beam_size)).width == 20
