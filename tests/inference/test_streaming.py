"""Streamed pieces of a text join to the generated text, and none is taken back."""

from __future__ import annotations

import pytest
import torch
from random_models import model_of
from toy import without_shape_checks

from heed.decoding.detokenizer import Detokenizer, TextStreamer
from heed.decoding.options import SearchOptions
from heed.inference.translator import ModelTranslator
from heed.nn.contract import Vocabularies
from heed.text.normalise import Normaliser
from heed.text.tokenizers import TokenizerConfig, train_tokenizer
from heed.text.tokenizers.byte_level import Byte
from heed.text.tokenizers.symbols import Word

BYTES, WORDS = Detokenizer(Byte(), "newline"), Detokenizer(Word(["a", "b", "c"]), "eos")


def shown(
    pieces: list[bytes], detokenizer: Detokenizer = BYTES, before: str = "", stop: tuple[str, ...] = ()
) -> list[str]:
    """The text that is shown after each piece."""
    text = TextStreamer(detokenizer, before, stop)
    return [text.add(piece) for piece in pieces]


def test_a_character_is_shown_with_its_last_byte() -> None:
    smile = "😀".encode()
    assert shown([smile[:1], smile[1:3], smile[3:] + b"a"]) == ["", "", "😀a"]


def test_the_space_after_a_word_is_shown_with_the_next_word() -> None:
    assert shown([b"a ", b"b ", b"\n", b"c "], WORDS) == ["a", " b", "\n", "c"]
    assert shown([b"a", b" ", b"\n"]) == ["a", " ", "\n"]


def test_a_space_separates_the_prompt_from_the_first_word() -> None:
    assert shown([b"a ", b"b "], WORDS, before="so") == [" a", " b"]
    assert shown([b"a ", b"b "], WORDS, before="so ") == ["a", " b"]
    assert shown([b"\n", b"b "], WORDS, before="so") == ["\n", "b"]
    assert shown([b"a", b"b"], BYTES, before="so") == ["a", "b"]


def test_a_possible_start_of_a_stop_text_is_shown_once_it_does_not_continue() -> None:
    assert shown([b"one ", b"E", b"N", b"x", b"END", b"!"], stop=("END",)) == ["one ", "", "", "ENx", "", ""]


__all__ = ["without_shape_checks"]

SPEAKERS = {
    "bytes": (Byte(), "newline"),
    "words": (Word(["a", "b", "c", "dd", "eee", "f", "g", "h"]), "eos"),
    "lines": (Word(["a", "b", "c", "dd", "eee", "f", "g", "h"]), None),
    "pieces": (train_tokenizer(TokenizerConfig(kind="wordpiece"), ["a b c ab bc abc cab"] * 5), "eos"),
}


@pytest.mark.parametrize("name", SPEAKERS)
@pytest.mark.parametrize("stop", [(), ("b",), ("b ",), ("b\n",)])
@pytest.mark.parametrize("seed", range(2))
def test_the_pieces_join_to_what_generate_returns(name: str, stop: tuple[str, ...], seed: int) -> None:
    tokenizer, line_end = SPEAKERS[name]
    model = model_of("gpt, few positions", vocabularies=Vocabularies(0, len(tokenizer.vocabulary)))
    translator = ModelTranslator(model.requires_grad_(False), None, tokenizer, Normaliser(), line_end=line_end)
    options = SearchOptions(sample=True, beam_size=1, seed=seed, max_tokens=30, stop=stop, temperature=0.7)
    pieces = list(translator.stream("a", options))
    [[expected]] = translator.generate(["a"], options)
    assert "".join(pieces) == expected.text
    assert all(pieces)
    assert not any(text in expected.text for text in stop)


def test_prompts_are_continued_together_as_alone() -> None:
    tokenizer = Byte()
    model = model_of("gpt", vocabularies=Vocabularies(0, len(tokenizer.vocabulary))).requires_grad_(False)
    translator = ModelTranslator(model, None, tokenizer, Normaliser(), line_end="newline")
    options = SearchOptions(sample=True, beam_size=1, nbest=2, max_tokens=12)
    prompts = ["abc", "", "xyz", "abc"]
    together = translator.generate(prompts, options)
    with torch.inference_mode():
        alone = [translator.generate([*[""] * draw, prompt], options)[-1] for draw, prompt in enumerate(prompts)]
    assert [[h.text for h in actual] for actual in together] == [[h.text for h in actual] for actual in alone]
    assert together[0][0].text != together[3][0].text, "each prompt has a random stream of its own"
