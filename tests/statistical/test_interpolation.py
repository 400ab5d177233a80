"""Linear interpolation of backoff models: equal to sums of their probabilities."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from statistical.ngram_oracle import BOS, EOS, UNK
from statistical.ngram_texts import VOCAB_SIZE, A, B, C, model_of, texts
from statistical.test_backoff import Ngram, backed_off, stored

from heed.statistical.backoff import BackoffModel
from heed.statistical.interpolation import interpolated, interpolation_weights

ids = st.lists(st.integers(UNK, C + 1), max_size=5)


def mixed(models: list[BackoffModel], weights: np.ndarray, word: int, context: Ngram) -> float:
    """The definition."""
    probs = [math.exp(backed_off(model, word, context)) for model in models]
    return float(np.dot(weights, probs))


@settings(max_examples=20)
@given(texts, texts, st.integers(1, 4), st.integers(1, 3), st.floats(0, 1))
def test_the_stored_ngrams_have_the_sums_of_probabilities(
    first: list[list[int]], second: list[list[int]], order: int, other: int, weight: float
) -> None:
    models = [model_of(first, order), model_of(second, other)]
    weights = np.array([weight, 1 - weight])
    log_probs, _ = stored(interpolated(models, weights))
    assert log_probs.keys() == {ngram for model in models for ngram in stored(model)[0]}
    for (*context, word), log_prob in log_probs.items():
        assert math.isclose(math.exp(log_prob), mixed(models, weights, word, tuple(context)), abs_tol=1e-6)


@settings(max_examples=20)
@given(texts, texts, ids, st.floats(0, 1))
def test_the_probabilities_after_any_context_sum_to_one(
    first: list[list[int]], second: list[list[int]], context: list[int], weight: float
) -> None:
    model = interpolated([model_of(first, 3), model_of(second, 4)], np.array([weight, 1 - weight]))
    after = model.follow(model.start[None], np.array([[BOS, *context]]))[0, -1:]
    probs = np.exp([model.log_prob(after, np.array([word]))[0] for word in range(VOCAB_SIZE)])
    assert math.isclose(probs.sum(), 1, abs_tol=1e-5)


def test_a_model_alone_stays_as_it_is() -> None:
    model = model_of([[A, B, C], [A, B], [B, C, A]], 3)
    same = interpolated([model, model], np.array([0.3, 0.7]))
    assert same.words.tolist() == model.words.tolist()
    np.testing.assert_allclose(np.exp(same.log_probs_of), np.exp(model.log_probs_of), atol=1e-6)
    np.testing.assert_allclose(np.exp(same.backoffs), np.exp(model.backoffs), atol=1e-5)


def test_the_weights_make_a_text_likeliest() -> None:
    models = [model_of([[A, B]] * 4 + [[B, A]], 2), model_of([[C, A]] * 3 + [[A, C]], 2)]
    text = [[A, B], [A, B], [C, A]]
    weights = interpolation_weights(models, text)
    assert math.isclose(weights.sum(), 1)

    def likelihood(weight: float) -> float:
        both = np.array([weight, 1 - weight])
        ends = [(*sentence, EOS) for sentence in text]
        return sum(
            math.log(mixed(models, both, word, (BOS, *sentence[:place])))
            for sentence in ends
            for place, word in enumerate(sentence)
        )

    best = max(np.linspace(0.01, 0.99, 99), key=likelihood)
    assert abs(weights[0] - best) < 0.01
    assert interpolation_weights(models, []).tolist() == [0.5, 0.5]
