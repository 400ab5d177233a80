"""Cache models: equal to their formula."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statistical.ngram_oracle import BOS, EOS, PAD, UNK
from statistical.ngram_texts import VOCAB_SIZE, A, B, C, model_of

from heed.statistical import cache
from heed.statistical.cache import CacheConfig, Cached

MODEL = model_of([[A, B, C], [A, B], [B, C, A], [A]], 3)
ids_of_text = st.lists(st.sampled_from([BOS, EOS, UNK, A, B, C]), min_size=1, max_size=14)


def cached(**options: Any) -> Cached:
    """A small model with a cache."""
    config = CacheConfig(**{"cache_share": 0.3, "cache_size": 3, "cache_decay": 0.5, **options})
    return Cached(MODEL, config, EOS, (PAD, BOS, EOS))


def by_definition(model: Cached, ids: list[int]) -> np.ndarray:
    """The probabilities of all words after these, [V]."""
    node = MODEL.follow(MODEL.start[None], np.array([ids]))[:, -1]
    alone = np.exp(MODEL.log_probs(node))[0]
    words = [id for id in ids if id not in (PAD, BOS, EOS)][::-1][: model.config.cache_size]
    if not words:
        return alone
    weights = [model.config.cache_decay**age for age in range(len(words))]
    share = model.config.cache_share
    actual = (1 - share) * alone
    for word, weight in zip(words, weights, strict=True):
        actual[word] += share * (1 - alone[EOS]) * weight / sum(weights)
    actual[EOS] = alone[EOS]
    return actual


@settings(max_examples=60)
@given(ids_of_text, st.integers(1, 4), st.sampled_from([0.5, 1.0]))
def test_probabilities_equal_the_definition(ids: list[int], size: int, decay: float) -> None:
    model = cached(cache_size=size, cache_decay=decay)
    contexts = model.follow(model.start[None], np.array([ids]))[0]
    rows = model.log_probs(contexts)
    for place, row in enumerate(np.exp(rows)):
        np.testing.assert_allclose(row, by_definition(model, ids[: place + 1]), rtol=1e-6)
    np.testing.assert_allclose(np.exp(rows).sum(1), 1, atol=1e-6)
    for word in range(VOCAB_SIZE):
        alone = model.log_prob(contexts, np.full(len(contexts), word))
        np.testing.assert_allclose(alone, rows[:, word], rtol=1e-6)


@given(ids_of_text, st.integers(1, 5))
def test_a_text_may_be_followed_in_parts(ids: list[int], size: int) -> None:
    model = cached()
    whole = model.follow(model.start[None], np.array([ids]))[0]
    context, parts = model.start[None], []
    for begin in range(0, len(ids), size):
        actual = model.follow(context, np.array([ids[begin : begin + size]]))
        context = actual[:, -1]
        parts.append(actual[0])
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_each_row_has_its_own_cache() -> None:
    model = cached()
    both = model.follow(np.tile(model.start, (2, 1)), np.array([[BOS, A, A], [B, EOS, BOS]]))[:, -1]
    assert both[:, -3:].tolist() == [[-1, A, A], [-1, -1, B]]


def test_the_cache_continues_over_ends_of_sentences_and_keeps_the_newest_words() -> None:
    model = cached()
    actual = model.follow(model.start[None], np.array([[BOS, A, B, EOS, BOS, C, UNK]]))[0, -1]
    assert actual[-3:].tolist() == [B, C, UNK]


def test_the_end_of_a_sentence_is_as_likely_as_without_a_cache() -> None:
    model = cached()
    context = model.follow(model.start[None], np.array([[BOS, A, B]]))[0, -1:]
    end = np.array([EOS])
    assert model.log_prob(context, end) == MODEL.log_prob(context[:, :1], end)


def test_many_contexts_are_processed_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    model = cached()
    contexts = model.follow(model.start[None], np.array([[BOS, A, B, C, A, A, B]]))[0]
    words = np.array([A, B, C, A, A, B, EOS])
    whole = model.log_prob(contexts, words)
    monkeypatch.setattr(cache, "_ELEMENTS", 6)
    np.testing.assert_array_equal(model.log_prob(contexts, words), whole)
