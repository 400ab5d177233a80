"""Claim of Kakade's notes: "Lempel-Ziv vs. language modeling as a code?" """

from __future__ import annotations

import math

import numpy as np
import pytest

from heed.statistical.lempel_ziv import code_bits


def test_lempel_zivs_code_length_is_a_likelihood() -> None:
    """Kakade, section 5: LZ78's code is that of a language model. The phrases of "aababcab" are a, ab, abc and the
    unfinished ab; the j-th phrase has the probability 1 / (1 + 255 j), as one of its places in the tree."""
    phrases = sum(math.log2(1 + 255 * (j + 1)) for j in range(3))
    assert code_bits(b"aababc") == pytest.approx(phrases)


def test_it_approaches_the_entropy_slowly_and_from_above() -> None:
    """The other half of the question: of a coin that shows its rare side in one of ten throws, with an entropy of 0.47
    bits. Its own model needs that at once; Lempel-Ziv comes nearer with the length, and is still far after 30,000."""
    throws = (np.random.default_rng(0).random(30_000) < 0.1).astype(np.uint8).tobytes()
    entropy = -(0.1 * math.log2(0.1) + 0.9 * math.log2(0.9))
    rates = [code_bits(throws[:length]) / length for length in (300, 3_000, 30_000)]
    assert rates[0] > rates[1] > rates[2] > 1.2 * entropy
    ones = sum(throws)
    own = -(ones * math.log2(0.1) + (len(throws) - ones) * math.log2(0.9)) / len(throws)
    assert own == pytest.approx(entropy, rel=0.03)
