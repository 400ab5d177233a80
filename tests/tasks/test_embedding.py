"""Vectors of texts by translators and language models, and expressions of words."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from random_models import model_of

from heed.core.errors import DataError, UsageError
from heed.nn.contract import TokenSource
from heed.tasks.embedding import Neighbourhood, encoder_vectors, expressions, generator_vectors, whole_words
from heed.text.tokenizers.symbols import Word

CPU = torch.device("cpu")
TOKENIZER = Word(["a", "b", "c", "d", "e."])


@torch.no_grad()
def test_a_translator_gives_its_encoders_features_of_each_token() -> None:
    encoder = model_of("transformer").encoder
    one, empty, two = encoder_vectors(encoder, TOKENIZER, ["a b", "", "d"], CPU)
    ids = torch.tensor([[*TOKENIZER.encode(["a b"])[0], 2]])
    expected = encoder.read(TokenSource(ids, torch.ones_like(ids, dtype=torch.bool)))[0, :2].numpy()
    np.testing.assert_allclose(one.vectors, expected, atol=1e-5)
    assert one.tokens == ["a", "b"] and len(two.vectors) == 1
    assert not empty.pooled().any() and empty.pooled().shape == (16,)


@torch.no_grad()
@pytest.mark.parametrize("name", ["gpt", "rnn"])
def test_a_language_model_gives_its_features_after_each_token(name: str) -> None:
    model = model_of(name)
    texts = ["a b c", "d"]
    for text, found in zip(texts, generator_vectors(model, TOKENIZER, texts, CPU), strict=True):
        ids = TOKENIZER.encode([text])[0]
        features, _ = model.advance(torch.tensor([[1, *ids]]), model.start(None, 1))
        np.testing.assert_allclose(found.vectors, features[0, 1:].numpy(), atol=1e-5)
        np.testing.assert_allclose(found.pooled("last"), features[0, -1].numpy(), atol=1e-5)


@pytest.mark.parametrize("read", [encoder_vectors, generator_vectors])
def test_a_text_that_is_too_long_to_be_read_at_once_has_no_vectors(read: Any) -> None:
    model = model_of("gpt") if read is generator_vectors else model_of("transformer").encoder
    with pytest.raises(DataError, match="a line has 10,001 tokens, but at most 10,000 can be embedded at once"):
        read(model, TOKENIZER, ["a", "a " * 10_001], CPU)


def test_expressions_join_words_by_plus_and_minus() -> None:
    assert [*map(str, expressions(["king", "-", "man", "+", "woman", "cat"]))] == ["king - man + woman", "cat"]
    assert [*map(str, expressions(["- a + b"]))] == ["- a + b"]
    for words in (["a", "+"], ["a", "-", "+", "b"], []):
        with pytest.raises(UsageError, match="expected a word"):
            expressions(words)


def test_neighbours_are_sorted_by_cosine_and_ties_by_place() -> None:
    vectors = np.array([[2, 0], [0, 1], [1, 1], [0, 5], [0, 0]], dtype=np.float32)
    hood = Neighbourhood(["right", "up", "both", "high", "zero"], vectors)
    found = hood.nearest(np.array([0, 3], dtype=np.float32), 4, without=["zero"])
    assert [word for word, _ in found] == ["up", "high", "both", "right"]
    assert [cosine for _, cosine in found] == pytest.approx([1, 1, 0.5**0.5, 0])
    assert len(hood.nearest(np.ones(2, dtype=np.float32), 99)) == 5


def test_the_words_of_a_vocabulary_are_its_whole_words() -> None:
    assert whole_words(TOKENIZER) == ["a", "b", "c", "d"]
    with_marks = ["हिन्दी", "ภาษาดี", "ẹ\u0300kọ\u0301", "می\u200cخواهم"]
    assert whole_words(Word([*with_marks, "\u0301", "\u093fक", "a-b", "a_b", "."])) == with_marks
    spelled: Any = SimpleNamespace(
        vocabulary=SimpleNamespace(pieces=("<unk>", " he", "he", "ll"), text_pieces=(" he", "he", "ll"), tags=()),
        decode=lambda rows: [{1: " he", 2: "he", 3: "ll"}[rows[0][0]]],
        encode=lambda words: [[2, 3] for _ in words],  # a text begins without the blank
    )
    assert whole_words(spelled) == ["he"]
