"""The bytes of the pieces of a text, concatenated, are the text."""

from __future__ import annotations

import pytest

from heed.text.tokenizers import TOKENIZERS, TokenizerConfig, train_tokenizer
from heed.text.vocabulary import Vocabulary

LINES = ["the dogs see the cat", "die Hunde sehen die Katze: 日本 é!", "underdog  two spaces", ""]


@pytest.mark.parametrize("kind", TOKENIZERS)
def test_they_are_the_decoded_text_with_at_most_a_space_behind_it(kind: str) -> None:
    config = TokenizerConfig(kind=kind, vocab_size=400, min_frequency=1, shortlist=3 * (kind == "char-bigram"))
    tokenizer = train_tokenizer(config, LINES[:2] * 3)
    for line, ids in zip(LINES, tokenizer.encode(LINES), strict=True):
        text = b"".join(tokenizer.bytes_of(ids)).decode()
        assert text in (tokenizer.decode([ids])[0], tokenizer.decode([ids])[0] + " ")
        if tokenizer.lossless:
            assert text == line
    special = tokenizer.bytes_of([Vocabulary.pad_id, Vocabulary.bos_id, Vocabulary.eos_id])
    assert special == [b""] * 3
