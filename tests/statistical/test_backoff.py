"""Backoff trees: equal to the definition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statistical.ngram_oracle import BOS, EOS, PAD, UNK
from statistical.ngram_texts import VOCAB_SIZE, A, B, C, model_of, texts

from heed.core.errors import DataError
from heed.statistical.backoff import BackoffModel

Ngram = tuple[int, ...]
SENTENCES = [[A, B, C], [A, B], [B, C, A], [A]]


def stored(model: BackoffModel) -> tuple[dict[Ngram, float], dict[Ngram, float]]:
    """The log-probabilities of the n-grams that the tree holds, and the back-off weights of its contexts."""
    names: list[Ngram] = [()]
    for parent, word in zip(model.parents.tolist(), model.words.tolist(), strict=True):
        names.append((*names[parent], word))
    log_probs = dict(zip(names[1:], model.log_probs_of.tolist(), strict=True))
    return log_probs, dict(zip(names, model.backoffs.tolist(), strict=False))


def backed_off(model: BackoffModel, word: int, context: Ngram) -> float:
    """The definition, word by word."""
    log_probs, backoffs = stored(model)
    context = context[max(0, len(context) - model.order + 1) :]
    weight = 0.0
    while (*context, word) not in log_probs:
        weight += backoffs.get(context, 0.0)
        context = context[1:]
    return weight + log_probs[(*context, word)]


def walk(model: BackoffModel, ids: list[int]) -> np.ndarray:
    """The context after each token of one row."""
    return model.follow(model.start[None], np.array([ids]))[0]


@settings(max_examples=40)
@given(texts, st.integers(1, 4), st.lists(st.integers(UNK, C + 1), min_size=1, max_size=8))
def test_probabilities_equal_the_definition(sentences: list[list[int]], order: int, ids: list[int]) -> None:
    model = model_of(sentences, order)
    contexts = walk(model, [BOS, *ids])
    rows = model.log_probs(contexts)
    for place, row in enumerate(rows):
        history = (BOS, *ids[:place])
        expected = [backed_off(model, word, history) for word in range(VOCAB_SIZE)]
        np.testing.assert_allclose(row, expected, rtol=1e-6)
    words = np.arange(VOCAB_SIZE)
    alone = [model.log_prob(np.tile(context, (VOCAB_SIZE, 1)), words) for context in contexts]
    np.testing.assert_allclose(alone, rows, rtol=1e-6)


@settings(max_examples=40)
@given(texts, st.integers(1, 4), st.lists(st.integers(UNK, C + 1), min_size=1, max_size=9), st.integers(1, 4))
def test_a_text_may_be_followed_in_parts_of_any_length(
    sentences: list[list[int]], order: int, ids: list[int], size: int
) -> None:
    model = model_of(sentences, order)
    whole = walk(model, ids)
    context, parts = model.start[None], []
    for begin in range(0, len(ids), size):
        actual = model.follow(context, np.array([ids[begin : begin + size]]))
        context = actual[:, -1]
        parts.append(actual[0])
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_a_context_is_the_longest_ngram_that_the_words_end_with() -> None:
    model = model_of(SENTENCES, 3)
    names = [(), *stored(model)[0]]
    actual = [names[node] for node in walk(model, [BOS, A, B, B, C, UNK])[:, 0]]
    assert actual == [(BOS,), (BOS, A), (A, B), (B,), (B, C), (UNK,)]


def test_a_sentence_begins_after_an_end_of_sentence() -> None:
    model = model_of(SENTENCES, 3)
    one_stream = walk(model, [BOS, A, B, EOS, A])
    np.testing.assert_array_equal(one_stream[3:], walk(model, [BOS, A]))
    np.testing.assert_array_equal(model.start, walk(model, [BOS])[0])


def test_rows_of_a_batch_are_independent() -> None:
    model = model_of(SENTENCES, 4)
    together = model.follow(np.tile(model.start, (2, 1)), np.array([[BOS, A, B], [BOS, C, C]]))
    np.testing.assert_array_equal(together[0], walk(model, [BOS, A, B]))
    np.testing.assert_array_equal(together[1], walk(model, [BOS, C, C]))


@pytest.mark.timeout(20)
@pytest.mark.parametrize("word", [-1, VOCAB_SIZE])
def test_a_number_that_is_no_word_has_no_probability(word: int) -> None:
    model = model_of(SENTENCES, 2)
    with pytest.raises(ValueError, match=f"numbers from 0 to {VOCAB_SIZE - 1}"):
        model.log_prob(model.start[None], np.array([word]))


def test_no_contexts_give_no_rows() -> None:
    model = model_of(SENTENCES, 2)
    none = np.empty((0, 1), dtype=np.int64)
    assert model.log_probs(none).shape == (0, VOCAB_SIZE)
    assert model.log_prob(none, none[:, 0]).shape == (0,)


@pytest.mark.parametrize("order", [1, 2, 4])
def test_a_model_is_restored_from_its_arrays(order: int) -> None:
    model = model_of(SENTENCES, order)
    again = BackoffModel.from_arrays(model.arrays(), VOCAB_SIZE, BOS, EOS)
    contexts = walk(model, [BOS, A, B, C])
    np.testing.assert_array_equal(walk(again, [BOS, A, B, C]), contexts)
    np.testing.assert_array_equal(again.log_probs(contexts), model.log_probs(contexts))
    assert again.order == order
    assert again.num_ngrams == model.num_ngrams


def _damaged(what: str) -> dict[str, Any]:
    arrays: dict[str, Any] = {name: array.copy() for name, array in model_of(SENTENCES, 3).arrays().items()}
    match what:
        case "missing":
            del arrays["backoffs"]
        case "word":
            arrays["words"][-1] = VOCAB_SIZE
        case "order":
            arrays["words"][-2:] = arrays["words"][-2:][::-1]
            arrays["words"][[-1, -2]] = arrays["words"][[-2, -2]]
        case "offsets":
            arrays["offsets"] = arrays["offsets"][::-1]
        case "loop":
            arrays["offsets"][1:-1] = 1
        case "short":
            arrays["log_probs"] = arrays["log_probs"][:-1]
        case "not a number":
            arrays["log_probs"][3] = np.nan
        case "positive":
            arrays["log_probs"][3] = 0.1
        case "infinite":
            arrays["backoffs"][3] = np.inf
        case "no whole numbers":
            arrays["words"] = arrays["words"] + 0.5
        case "square":
            arrays["words"] = arrays["words"][None]
    return arrays


@pytest.mark.parametrize(
    "what",
    ["missing", "word", "order", "offsets", "loop", "short", "not a number", "positive", "infinite",
     "no whole numbers", "square"],
)  # fmt: skip
def test_inconsistent_arrays_are_an_error(what: str) -> None:
    with pytest.raises(DataError, match="not an n-gram model"):
        BackoffModel.from_arrays(_damaged(what), VOCAB_SIZE, BOS, EOS)


def test_a_model_of_another_vocabulary_is_an_error() -> None:
    with pytest.raises(DataError, match=r"not an n-gram model of 10 words.*tokenizer"):
        BackoffModel.from_arrays(model_of(SENTENCES, 2).arrays(), VOCAB_SIZE + 1, BOS, EOS)


def test_padding_is_never_predicted() -> None:
    model = model_of(SENTENCES, 3)
    assert np.isneginf(model.log_prob(walk(model, [BOS, A]), np.array([PAD, BOS]))).all()
