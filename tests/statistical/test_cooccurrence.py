"""Counted word vectors: co-occurrence and PPMI by their definitions, and the truncated decomposition."""

from __future__ import annotations

import math
import random
from collections import Counter

import numpy as np
import pytest
import torch

from heed.core.errors import DataError
from heed.models.ppmi_svd import PpmiSvd, PpmiSvdConfig
from heed.nn.contract import Vocabularies
from heed.statistical import cooccurrence
from heed.statistical.cooccurrence import Cooccurrence

V, WINDOW = 9, 3
CHOOSE = random.Random(4)
SENTENCES = [[CHOOSE.randrange(V) for _ in range(CHOOSE.randrange(9))] for _ in range(40)]


def counted() -> Counter[tuple[int, int]]:
    counts: Counter[tuple[int, int]] = Counter()
    for sentence in SENTENCES:
        for i, word in enumerate(sentence):
            for j, context in enumerate(sentence):
                if 0 < abs(i - j) <= WINDOW:
                    counts[word, context] += (WINDOW - abs(i - j) + 1) / WINDOW  # type: ignore[assignment]
    return counts


def dense(matrix: Cooccurrence) -> np.ndarray:
    table = np.zeros((V, V))
    table[matrix.words, matrix.contexts] = matrix.counts
    return table


@pytest.mark.parametrize("at_once", [10, 1 << 20])
def test_counts_equal_those_of_every_pair_of_places(monkeypatch: pytest.MonkeyPatch, at_once: int) -> None:
    monkeypatch.setattr(cooccurrence, "_WORDS_AT_ONCE", at_once)
    found = dense(Cooccurrence.of(SENTENCES, V, WINDOW))
    assert found == pytest.approx(np.array([[counted()[w, c] for c in range(V)] for w in range(V)]))


def test_subsampling_multiplies_the_counts_by_the_kept_shares() -> None:
    share = np.linspace(0.2, 1, V)
    kept = dense(Cooccurrence.of(SENTENCES, V, WINDOW, share))
    np.testing.assert_allclose(kept, dense(Cooccurrence.of(SENTENCES, V, WINDOW)) * np.outer(share, share))


@pytest.mark.parametrize(("smoothing", "shift"), [(1.0, 1.0), (0.75, 1.0), (0.75, 1.5)])
def test_ppmi_equals_its_definition(smoothing: float, shift: float) -> None:
    counts, found = counted(), dense(Cooccurrence.of(SENTENCES, V, WINDOW).positive_pmi(smoothing, shift))
    total = sum(counts.values())
    of_word = [sum(counts[w, c] for c in range(V)) for w in range(V)]
    smoothed = sum(count**smoothing for count in of_word)
    for w in range(V):
        for c in range(V):
            joint = counts[w, c] / total
            pmi = math.log(joint / (of_word[w] / total * of_word[c] ** smoothing / smoothed)) if joint else -math.inf
            assert found[w, c] == pytest.approx(max(0.0, pmi - math.log(shift)))


def test_the_vectors_are_the_best_approximation_of_the_matrix() -> None:
    model = PpmiSvd(PpmiSvdConfig(d_model=4, window=WINDOW), Vocabularies(0, V))
    model.estimate(SENTENCES)
    matrix = dense(Cooccurrence.of(SENTENCES, V, WINDOW).positive_pmi())
    left, values, right = np.linalg.svd(matrix)
    best = left[:, :4] * values[:4] @ right[:4]
    np.testing.assert_allclose((model.inputs @ model.outputs.T).numpy(), best, atol=1e-4)
    lengths = np.linalg.norm(left[:, :4] * np.sqrt(values[:4]), axis=1)
    np.testing.assert_allclose(np.linalg.norm(model.inputs.numpy(), axis=1), lengths, atol=1e-4)


def test_more_features_than_words_are_zeros_and_other_shapes_are_refused() -> None:
    model = PpmiSvd(PpmiSvdConfig(d_model=12, window=WINDOW), Vocabularies(0, V))
    model.estimate(SENTENCES)
    assert model.inputs.shape == (V, 12) and not model.inputs[:, V:].any()
    with pytest.raises(DataError, match="shape"):
        model.load_state_dict({"inputs": torch.zeros(V, 3), "outputs": torch.zeros(V, 12)})
    with pytest.raises(DataError, match="occur together"):
        model.estimate([[1]])
