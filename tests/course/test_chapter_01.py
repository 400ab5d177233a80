"""Solutions of chapter 1: units, and why relative frequencies are the best unigram."""

from __future__ import annotations

import math

import numpy as np
import pytest

from heed.metrics.likelihood import TextLikelihood

WORDS, CHARACTERS = 73_760, 393_042
"""Of the Penn Treebank's validation text, the ends of its 3,370 lines included."""


def bits_per_character(perplexity_per_word: float, words: int, characters: int) -> float:
    """Solution 1: the bits of the whole text do not depend on the unit."""
    return words * math.log2(perplexity_per_word) / characters


def perplexity_per_word(bits: float, words: int, characters: int) -> float:
    """Solution 1, the other way round."""
    return float(2 ** (bits * characters / words))


def test_a_perplexity_per_word_in_bits_per_character() -> None:
    assert bits_per_character(60, WORDS, CHARACTERS) == pytest.approx(1.109, abs=0.0005)
    assert perplexity_per_word(1.175, 74_000, 390_000) == pytest.approx(73.1, abs=0.05)
    assert perplexity_per_word(1.175, WORDS, CHARACTERS) == pytest.approx(76.7, abs=0.05)


def test_heed_divides_alike() -> None:
    lines = 3_370
    text = TextLikelihood(
        -1.175 * math.log(2) * CHARACTERS, CHARACTERS, WORDS - lines, CHARACTERS - lines, CHARACTERS - lines, lines
    )
    assert text.perplexity("word") == pytest.approx(perplexity_per_word(1.175, WORDS, CHARACTERS))


def code_length(counts: np.ndarray, q: np.ndarray) -> float:
    """Bits of a text with these counts, by a unigram q."""
    return float(-(counts * np.log2(q)).sum())


def test_no_unigram_is_better_than_the_relative_frequencies() -> None:
    """Solution 2: the difference is N · KL(p || q), which Jensen's inequality keeps from being negative."""
    counts = np.array([50, 20, 20, 9, 1])
    p, rng = counts / counts.sum(), np.random.default_rng(1)
    best = code_length(counts, p)
    for q in rng.dirichlet(np.ones(5), size=1000):
        kl = float((p * np.log2(p / q)).sum())
        assert code_length(counts, q) - best == pytest.approx(counts.sum() * kl) and kl >= 0
    entropy = -(p * np.log2(p)).sum()
    text = TextLikelihood(-best * math.log(2), num_tokens=int(counts.sum()))
    assert text.perplexity("token") == pytest.approx(2**entropy)
