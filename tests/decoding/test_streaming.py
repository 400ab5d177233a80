"""Are the pieces of a text together what is generated, and never taken back?"""

from __future__ import annotations

import pytest
import torch
from random_models import model_of
from toy import without_shape_checks

from heed.decoding.options import SearchOptions
from heed.decoding.streaming import TextSoFar, stream
from heed.decoding.text_form import TextForm
from heed.decoding.translator import ModelTranslator
from heed.nn.contract import Vocabularies
from heed.text.normalise import Normaliser
from heed.text.tokenizers.byte_level import Byte
from heed.text.tokenizers.symbols import Word

BYTES, WORDS = TextForm(Byte(), "newline"), TextForm(Word(["a", "b", "c"]), "eos")


def shown(pieces: list[bytes], form: TextForm = BYTES, before: str = "", stop: tuple[str, ...] = ()) -> list[str]:
    """What is shown after each piece."""
    text = TextSoFar(form, before, stop)
    return [text.add(piece) for piece in pieces]


def test_a_character_is_shown_when_its_last_byte_has_come() -> None:
    smile = "😀".encode()
    assert shown([smile[:1], smile[1:3], smile[3:] + b"a"]) == ["", "", "😀a"]


def test_the_space_behind_a_word_comes_with_the_next_word() -> None:
    assert shown([b"a ", b"b ", b"\n", b"c "], WORDS) == ["a", " b", "\n", "c"]
    assert shown([b"a", b" ", b"\n"]) == ["a", " ", "\n"]


def test_a_word_does_not_stick_to_the_text_before_it() -> None:
    assert shown([b"a ", b"b "], WORDS, before="so") == [" a", " b"]
    assert shown([b"a ", b"b "], WORDS, before="so ") == ["a", " b"]
    assert shown([b"\n", b"b "], WORDS, before="so") == ["\n", "b"]
    assert shown([b"a", b"b"], BYTES, before="so") == ["a", "b"]


def test_what_may_begin_a_stop_is_shown_when_it_did_not() -> None:
    assert shown([b"one ", b"E", b"N", b"x", b"END", b"!"], stop=("END",)) == ["one ", "", "", "ENx", "", ""]


__all__ = ["without_shape_checks"]

SPEAKERS = {
    "bytes": (Byte(), "newline"),
    "words": (Word(["a", "b", "c", "dd", "eee", "f", "g", "h"]), "eos"),
    "lines": (Word(["a", "b", "c", "dd", "eee", "f", "g", "h"]), None),
}


@pytest.mark.parametrize("name", SPEAKERS)
@pytest.mark.parametrize("stop", [(), ("b",), ("b ",), ("b\n",)])
@pytest.mark.parametrize("seed", range(4))
def test_the_pieces_are_together_what_generate_gives(name: str, stop: tuple[str, ...], seed: int) -> None:
    tokenizer, line_end = SPEAKERS[name]
    model = model_of("gpt, few positions", vocabularies=Vocabularies(0, len(tokenizer.vocabulary)))
    translator = ModelTranslator(model.requires_grad_(False), None, tokenizer, Normaliser(), line_end=line_end)
    options = SearchOptions(sample=True, beam_size=1, seed=seed, max_tokens=30, stop=stop, temperature=0.7)
    pieces = list(stream(translator, "a", options))
    [[expected]] = translator.generate(["a"], options)
    assert "".join(pieces) == expected.text
    assert all(pieces)
    assert not any(text in expected.text for text in stop)


def test_prompts_together_are_continued_as_each_alone() -> None:
    tokenizer = Byte()
    model = model_of("gpt", vocabularies=Vocabularies(0, len(tokenizer.vocabulary))).requires_grad_(False)
    translator = ModelTranslator(model, None, tokenizer, Normaliser(), line_end="newline")
    options = SearchOptions(sample=True, beam_size=1, nbest=2, max_tokens=12)
    prompts = ["abc", "", "xyz", "abc"]
    together = translator.generate(prompts, options)
    with torch.inference_mode():
        alone = [translator.generate([*[""] * draw, prompt], options)[-1] for draw, prompt in enumerate(prompts)]
    assert [[h.text for h in found] for found in together] == [[h.text for h in found] for found in alone]
    assert together[0][0].text != together[3][0].text, "each prompt has draws of its own"
