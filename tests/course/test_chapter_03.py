"""Solutions of chapter 3: EM by hand, and the sum over all alignments as a product."""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest
from alignment_oracle import alignments

from heed.statistical.alignment.ibm1 import Ibm1
from heed.statistical.alignment.pairs import SentencePairs
from heed.statistical.alignment.smoothing import NONE
from heed.statistical.alignment.training import train

PAIRS = [("das Haus", "the house"), ("das Buch", "the book"), ("ein Buch", "a book")]
Table = dict[tuple[str, str], Fraction]
"""t(f | e) by (f, e)."""


def iteration(t: Table) -> Table:
    """Solution 1: one step of EM without the empty word."""
    counts: Table = defaultdict(Fraction)
    totals: dict[str, Fraction] = defaultdict(Fraction)
    for source, target in PAIRS:
        for f in target.split():
            norm = sum(t[f, e] for e in source.split())
            for e in source.split():
                counts[f, e] += t[f, e] / norm
                totals[e] += t[f, e] / norm
    return {(f, e): count / totals[e] for (f, e), count in counts.items()}


def test_em_by_hand() -> None:
    t: Table = defaultdict(lambda: Fraction(1))
    values = []
    for _ in range(10):
        t = iteration(t)
        values.append(t["the", "das"])
    assert values[:2] == [Fraction(1, 2), Fraction(7, 11)]
    assert values == sorted(values) and values[-1] > Fraction(9, 10)


def test_heeds_iterations_never_lower_the_likelihood() -> None:
    words = " ".join(text for pair in PAIRS for text in pair).split()
    numbers = {word: n for n, word in enumerate(dict.fromkeys(words), start=2)}
    pairs = SentencePairs.of_ids([([numbers[w] for w in g.split()], [numbers[w] for w in e.split()]) for g, e in PAIRS])
    likelihoods: list[float] = []
    train("ibm1", pairs, 10, NONE, lambda it: likelihoods.append(it.log_likelihood))
    assert likelihoods == sorted(likelihoods)


def test_the_sum_over_all_alignments_is_a_product_of_sums() -> None:
    """Solution 2, for two source words, the empty word and three target words: 3³ alignments."""
    t = np.random.default_rng(1).random((3, 3))  # of target word j and source position i
    every = list(alignments(2, 3))
    assert len(every) == 27
    by_enumeration = sum(math.prod(t[j, i] / 3 for j, i in enumerate(a)) for a in every)
    assert by_enumeration == pytest.approx(math.prod(row.sum() / 3 for row in t))
    pairs = SentencePairs.of_ids([([2, 3], [2, 3, 4])])
    [block] = pairs.blocks()
    posteriors, log_probs = Ibm1.new(pairs).expect(block, t[None])
    assert math.exp(log_probs[0]) == pytest.approx(by_enumeration)
    from_first = sum(math.prod(t[j, i] / 3 for j, i in enumerate(a)) for a in every if a[0] == 1)
    assert posteriors[0, 0, 1] == pytest.approx(from_first / by_enumeration)
