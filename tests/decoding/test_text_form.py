"""Do prompts and tokens make the text that a model of lines, or of a running text, was trained on?"""

from __future__ import annotations

import pytest

from heed.decoding.hypothesis import Hypothesis
from heed.decoding.text_form import TextForm, without_what_was_cut
from heed.text.normalise import Normaliser
from heed.text.tokenizers import TokenizerConfig, train_tokenizer
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


@pytest.mark.parametrize("kind", ["word", "character"])
@pytest.mark.parametrize(("text", "num_kept"), [("a\nb\n\nI", 6), ("a\nb\n", 4), ("a\nb", 3), ("a", 1), ("", 0)])
def test_only_what_a_stop_cut_off_is_left_out(kind: str, text: str, num_kept: int) -> None:
    config = TokenizerConfig.model_validate({"kind": kind, "vocab_size": 20, "min_frequency": 1})
    tokenizer = train_tokenizer(config, ["a b I"])
    a, b, i = (tokenizer.encode([word])[0][0] for word in "abI")
    ids = (a, Vocabulary.eos_id, b, Vocabulary.eos_id, Vocabulary.eos_id, i)
    form = TextForm(tokenizer, "eos")
    assert form.texts([ids]) == ["a\nb\n\nI"]
    found = without_what_was_cut(form, Hypothesis(ids, -6.0, -6.0, token_log_probs=(-1.0,) * 6, text=text))
    assert len(found.ids) == len(found.token_log_probs) == num_kept
    assert found.log_prob == -num_kept
