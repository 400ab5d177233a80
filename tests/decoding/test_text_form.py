"""Do prompts and tokens make the text that a model of lines, or of a running text, was trained on?"""

from __future__ import annotations

import pytest

from heed.decoding.text_form import TextForm
from heed.text.normalise import Normaliser
from heed.text.tokenizers.symbols import Character, Word
from heed.text.vocabulary import Vocabulary

PAD, BOS, EOS, UNK = (getattr(Vocabulary, f"{name}_id") for name in ("pad", "bos", "eos", "unk"))
WORDS, LETTERS = Word(["a", "b"]), Character(["a", "b", "\n"])
A, B, NEWLINE = 4, 5, 6


def test_a_model_of_lines_reads_the_prompt_and_says_one_line() -> None:
    form = TextForm(WORDS)
    assert form.read("a b", Normaliser()) == [A, B]
    assert form.texts([[A, B], [B]]) == ["a b", "b"]
    assert EOS not in form.never
    assert form.read_for_end is None


def test_where_lines_end_with_a_token_the_next_one_begins_a_sentence() -> None:
    form = TextForm(WORDS, "eos")
    assert form.read("a b\nb\n", Normaliser()) == [A, B, BOS, B, BOS]
    assert form.texts([[A, EOS, B, EOS, EOS]]) == ["a\nb\n\n"]
    assert form.spelled[EOS] == b"\n"
    assert EOS not in form.never
    assert form.read_for_end == BOS


def test_where_lines_end_with_a_character_it_is_one_like_others() -> None:
    form = TextForm(LETTERS, "newline")
    assert form.read("a\nb", Normaliser()) == [A, NEWLINE, B]
    assert form.texts([[A, NEWLINE, NEWLINE, B]]) == ["a\n\nb"]
    assert EOS in form.never, "it was never seen"


def test_a_model_that_never_saw_the_end_of_a_line_has_one_line() -> None:
    form = TextForm(LETTERS, "none")
    assert form.read("a\nb", Normaliser()) == [A, B]
    assert EOS in form.never


@pytest.mark.parametrize("line_end", [None, "eos", "newline", "none"])
def test_what_cannot_be_said_is_never_said(line_end: str | None) -> None:
    assert {PAD, BOS, UNK} <= set(TextForm(WORDS, line_end).never)


def test_the_prompt_is_normalised_line_by_line() -> None:
    form = TextForm(WORDS, "eos")
    assert form.read("  a   b \n b", Normaliser(collapse_spaces=True)) == [A, B, BOS, B]
