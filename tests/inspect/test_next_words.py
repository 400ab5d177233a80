"""The probability of a word is that of its tokens and its end."""

from __future__ import annotations

import math

import pytest
import torch
from hashed_model import HashedModel
from random_models import BOS, EOS, half_trained
from word_translator import TOKENS, WORDS, translator_of

from heed.data.batch import source_from_ids
from heed.inference.translator import ModelTranslator
from heed.inspect.next_words import NUM_WORDS, next_word_log_probs
from heed.inspect.teacher_forcing import EncodedPair
from heed.text.normalise import Normaliser
from heed.text.tokenizers.byte_level import Byte
from heed.text.tokenizers.symbols import CharBigram


def distribution(translator: ModelTranslator, src_ids: list[int], before: list[int]) -> torch.Tensor:
    """log P of every next token, by one fresh pass."""
    source = source_from_ids([src_ids], EOS, 0)
    features, _ = translator.model.advance(torch.tensor([[BOS, *before]]), translator.model.start(source, 1))
    return translator.model.head.log_probs(features[:, -1])[0]


@pytest.mark.parametrize(
    "model", [HashedModel(len(TOKENS)), half_trained("transformer"), half_trained("rnn_attention")], ids=type
)
def test_where_words_are_tokens_the_likeliest_words_are_the_likeliest_tokens(model: HashedModel) -> None:
    translator = translator_of(model)
    ids = [5, 7, 4]
    for start, words in zip(
        (0, 1, 3), next_word_log_probs(translator, EncodedPair.of_translation([6, 8], ids), [0, 1, 3]), strict=True
    ):
        best, tokens = distribution(translator, [6, 8], ids[:start]).topk(NUM_WORDS)
        expected = ["" if token == EOS else WORDS.decode([[token]])[0] + " " for token in tokens.tolist()]
        texts = [text for text, token in zip(expected, tokens.tolist(), strict=True) if token > EOS]
        assert [text for text in words if text.strip() in "abcdefgh" and text] == [
            text for text in texts if "<" not in text
        ]
        for text, log_prob in zip(expected, best.tolist(), strict=True):
            if text in words:
                assert words[text] == pytest.approx(log_prob, abs=1e-4)


@pytest.mark.parametrize(("sharpness", "num_words"), [(1.0, 2), (40.0, 1)])
def test_a_word_has_the_probability_of_its_tokens_and_its_end(sharpness: float, num_words: int) -> None:
    """A model that is nearly certain leaves the other words too little probability to be extended."""
    tokenizer = CharBigram(["ab@@", "cd@@", "ef", "gh", "x", "y"])
    model = HashedModel(len(tokenizer.vocabulary), seed=3, sharpness=sharpness)
    translator = ModelTranslator(model, tokenizer, tokenizer, Normaliser())
    [result] = next_word_log_probs(translator, EncodedPair.of_translation([8], [9]), [1])
    assert len(result) >= num_words
    assert sharpness > 1 or any(len(text.strip()) > 2 for text in result)  # of several tokens
    ends = [id for id, piece in enumerate(tokenizer.bytes_of(range(len(tokenizer.vocabulary)))) if not piece]
    for text, log_prob in result.items():
        ids = pieces_of(tokenizer, text) if text else [EOS]
        total = sum(float(distribution(translator, [8], [9, *ids[:place]])[id]) for place, id in enumerate(ids))
        if text and text == text.strip():  # its last token can be continued, so the end counts
            total += float(distribution(translator, [8], [9, *ids])[ends].logsumexp(0))
        assert log_prob == pytest.approx(total, abs=1e-4)


def pieces_of(tokenizer: CharBigram, text: str) -> list[int]:
    """The tokens of a word; `<unk>` is one."""
    parts = {
        piece.decode(): id for id, piece in enumerate(tokenizer.bytes_of(range(len(tokenizer.vocabulary)))) if piece
    }
    ids: list[int] = []
    while text:
        part = next(part for part in sorted(parts, key=len, reverse=True) if text.startswith(part))
        ids.append(parts[part])
        text = text[len(part) :]
    return ids


def test_words_of_a_byte_model() -> None:
    byte = Byte()
    translator = ModelTranslator(HashedModel(len(byte.vocabulary), sharpness=4.0), None, byte, Normaliser())
    [words] = next_word_log_probs(translator, EncodedPair.of_text(translator, "the "), [4])
    assert words
    assert sum(map(math.exp, words.values())) <= 1.0
    assert list(words.values()) == sorted(words.values(), reverse=True)
