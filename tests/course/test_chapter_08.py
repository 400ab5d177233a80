"""Solutions of chapter 8: a trap for greedy search, and what length does to a probability."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import pytest
import torch
from hashed_model import HashedModel
from random_models import BOS, EOS, random_source

from heed.decoding.beam import BeamSearch
from heed.decoding.engine import SearchInputs, search
from heed.decoding.ranking import LengthPenalty
from heed.nn.contract import Vocabularies

NEXT = {"": {"a": 0.6, "b": 0.4}, "a": {"c": 0.55, "d": 0.45}, "b": {"c": 0.95, "d": 0.05}}
"""P(next | so far) of outputs of two letters."""


def beam(width: int) -> tuple[str, float]:
    """Solution 1: the best output of a beam, and its probability."""
    beams = [("", 1.0)]
    for _ in range(2):
        grown = [(text + letter, p * q) for text, p in beams for letter, q in NEXT[text].items()]
        beams = sorted(grown, key=lambda each: -each[1])[:width]
    return beams[0]


def test_greedy_search_misses_what_a_beam_of_two_finds() -> None:
    """a is likelier than b, but what follows b is nearly certain."""
    assert beam(1) == ("ac", pytest.approx(0.33))
    assert beam(2) == ("bc", pytest.approx(0.38))


def ends(vocab_size: int, limit: int) -> list[tuple[int, ...]]:
    """All outputs of at most `limit` tokens, the end included."""
    words = [id for id in range(vocab_size) if id != EOS]
    lengths = range(limit)
    return [(*ids, EOS) for length in lengths for ids in itertools.product(words, repeat=length)]


@torch.no_grad()
def test_a_beam_that_is_wide_enough_searches_exhaustively() -> None:
    """With K = V^(T - 1) nothing is ever dropped: heed's beam finds the likeliest of all outputs."""
    vocab_size, limit = 6, 3
    source, model = random_source([3], 0, Vocabularies(8, vocab_size)), HashedModel(vocab_size)

    def log_prob(ids: Sequence[int]) -> float:
        read = torch.tensor([[BOS, *ids[:-1]]])
        features, _ = model.advance(read, model.start(source, 1))
        return float(model.head.log_prob(features, torch.tensor([ids])).sum())

    width = vocab_size ** (limit - 1)
    strategy = BeamSearch(width, [limit], LengthPenalty(0.0))
    search(model, SearchInputs(source, strategy, [], torch.full((width, 1), BOS), limit))
    best = max(ends(vocab_size, limit), key=log_prob)
    assert strategy.hypotheses(0)[0].ids == best[:-1]
    assert strategy.hypotheses(0)[0].log_prob == pytest.approx(log_prob(best), rel=1e-5)


def test_dividing_by_the_length_lets_the_longer_output_win() -> None:
    """Solution 2: 10 ln 0.6 / 10^α > ln 0.05 from α = lg(10 ln 0.6 / ln 0.05) = 0.232 on."""
    empty, longer = math.log(0.05), 10 * math.log(0.6)
    turn = math.log10(longer / empty)
    assert turn == pytest.approx(0.232, abs=0.0005)
    for alpha in (0.0, turn - 0.01, turn + 0.01, 1.0):
        penalty = LengthPenalty(alpha, "mean")
        assert (longer / penalty.divisor(10) > empty / penalty.divisor(1)) == (alpha > turn)
