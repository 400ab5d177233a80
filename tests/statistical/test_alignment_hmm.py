"""The hidden Markov model of alignment, against sums over all alignments."""

from __future__ import annotations

import math

import numpy as np
import pytest
from alignment_oracle import MIXED, joint_of_hmm, summed

from heed.statistical.alignment.hmm import NUM_WEIGHTS, Hmm, Jumps
from heed.statistical.alignment.pairs import SentencePairs
from heed.statistical.alignment.smoothing import NONE
from heed.statistical.alignment.training import train


@pytest.fixture(scope="module")
def trained() -> Hmm:
    """A model after some iterations."""
    model = train("hmm", MIXED, iterations=3, smoothing=NONE)
    assert isinstance(model, Hmm)
    return model


def test_likelihood_and_posteriors_are_sums_over_all_alignments(trained: Hmm) -> None:
    total, posteriors = summed(MIXED, lambda *pair: joint_of_hmm(trained, *pair))
    assert trained.log_likelihood(MIXED) == pytest.approx(total)
    for ours, theirs in zip(trained.posteriors(MIXED), posteriors, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)


def test_the_expected_jumps_are_sums_over_all_alignments(trained: Hmm) -> None:
    pair = MIXED[1]
    block = next(SentencePairs.of_ids([pair]).blocks())
    keys = np.array([0, *pair[0]]) * trained.lexicon.tgt_size + np.array(pair[1])[:, None]
    trained.expect(block, trained.lexicon.probs[trained.lexicon.find(keys)][None])
    expected = np.zeros((3, 2))
    norm = 0.0
    for alignment in np.ndindex(3, 3, 3):
        probability = joint_of_hmm(trained, *pair, alignment)
        norm += probability
        last = 0
        for i in alignment:
            if i:
                expected[last, i - 1] += probability
                last = i
    np.testing.assert_allclose(trained.last_jumps, expected / norm, atol=1e-12)


def test_a_step_of_scaling_raises_the_likelihood_of_the_jumps() -> None:
    draw = np.random.default_rng(1)
    counts = {n: draw.gamma(0.5, size=(n + 1, n)) for n in (1, 2, 5, 7)}
    jumps, values = Jumps(np.ones(NUM_WEIGHTS), 0.1), []
    for _ in range(60):
        values.append(sum(float((count * np.log(jumps.table(n))).sum()) for n, count in counts.items()))
        jumps = jumps.maximised(counts)
    assert (np.diff(values) > -1e-9).all()
    assert values[-1] - values[-2] < 1e-3 < values[-1] - values[0]


def test_without_preferred_jumps_the_model_is_model_1() -> None:
    one = train("ibm1", MIXED, smoothing=NONE)
    for num_src in (1, 2, 3):
        pairs = SentencePairs.of_ids([pair for pair in MIXED if len(pair[0]) == num_src])
        model = Hmm(one.lexicon, p_null=1 / (num_src + 1))
        assert model.log_likelihood(pairs) == pytest.approx(one.log_likelihood(pairs))


def test_a_long_pair_does_not_underflow() -> None:
    pairs = SentencePairs.of_ids([([2, 3] * 60, [2, 3] * 120), ([2], [2])])
    assert math.isfinite(train("hmm", pairs, iterations=2).log_likelihood(pairs))
