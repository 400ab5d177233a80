"""Detokenizer: prompts and texts of models of lines and of running text."""

from __future__ import annotations

import pytest
from tokenizer_kinds import KINDS

from heed.decoding.detokenizer import Detokenizer
from heed.decoding.hypothesis import Hypothesis
from heed.text.normalise import Normaliser
from heed.text.tokenizers import TokenizerConfig, train_tokenizer
from heed.text.tokenizers.symbols import Character, Word
from heed.text.vocabulary import BOS_ID, EOS_ID, PAD_ID, UNK_ID

WORDS, LETTERS = Word(["a", "b"]), Character(["a", "b", "\n"])
A, B, NEWLINE = 4, 5, 6


def test_a_model_of_lines_reads_the_prompt_and_generates_one_line() -> None:
    detokenizer = Detokenizer(WORDS)
    assert detokenizer.encode_prompt("a b", Normaliser()) == [A, B]
    assert detokenizer.texts([[A, B], [B]]) == ["a b", "b"]
    assert EOS_ID not in detokenizer.never
    assert detokenizer.token_after_eos is None


def test_after_an_end_token_begin_of_sentence_is_read() -> None:
    detokenizer = Detokenizer(WORDS, "eos")
    assert detokenizer.encode_prompt("a b\nb\n", Normaliser()) == [A, B, BOS_ID, B, BOS_ID]
    assert detokenizer.texts([[A, EOS_ID, B, EOS_ID, EOS_ID]]) == ["a\nb\n\n"]
    assert detokenizer.token_bytes[EOS_ID] == b"\n"
    assert EOS_ID not in detokenizer.never
    assert detokenizer.token_after_eos == BOS_ID


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind in ("wordpiece", "sentencepiece")])
def test_a_continuation_keeps_the_space_before_its_first_word(kind: str) -> None:
    config = TokenizerConfig(kind=kind, vocab_size=280)
    detokenizer = Detokenizer(train_tokenizer(config, ["the cat sat on the mat", "cats sat on mats"] * 5), "eos")
    [ids] = detokenizer.tokenizer.encode(["cats"])

    def continued(before: str, ids: list[int]) -> str:
        [hypothesis] = detokenizer.with_texts([Hypothesis(tuple(ids), 0.0, 0.0)])
        return before + detokenizer.continuation(before, hypothesis).text

    assert continued("the", ids) == continued("the ", ids) == "the cats"
    assert continued("", ids) == "cats" and continued("the\n", ids) == "the\ncats"
    assert continued("mat", [detokenizer.token_bytes.index(b"s")]) == "mats"


def test_a_newline_token_is_treated_like_other_tokens() -> None:
    detokenizer = Detokenizer(LETTERS, "newline")
    assert detokenizer.encode_prompt("a\nb", Normaliser()) == [A, NEWLINE, B]
    assert detokenizer.texts([[A, NEWLINE, NEWLINE, B]]) == ["a\n\nb"]
    assert EOS_ID in detokenizer.never, "it does not occur in training"


def test_a_model_trained_without_line_ends_reads_one_line() -> None:
    detokenizer = Detokenizer(LETTERS, "none")
    assert detokenizer.encode_prompt("a\nb", Normaliser()) == [A, B]
    assert EOS_ID in detokenizer.never


@pytest.mark.parametrize("line_end", [None, "eos", "newline", "none"])
def test_special_tokens_are_never_generated(line_end: str | None) -> None:
    assert {PAD_ID, BOS_ID, UNK_ID} <= set(Detokenizer(WORDS, line_end).never)


def test_the_prompt_is_normalised_line_by_line() -> None:
    detokenizer = Detokenizer(WORDS, "eos")
    assert detokenizer.encode_prompt("  a   b \n b", Normaliser(collapse_spaces=True)) == [A, B, BOS_ID, B]


@pytest.mark.parametrize("kind", ["word", "character"])
@pytest.mark.parametrize(("text", "num_kept"), [("a\nb\n\nI", 6), ("a\nb\n", 4), ("a\nb", 3), ("a", 1), ("", 0)])
def test_only_tokens_after_a_stop_are_dropped(kind: str, text: str, num_kept: int) -> None:
    config = TokenizerConfig.model_validate({"kind": kind, "vocab_size": 20, "min_frequency": 1})
    tokenizer = train_tokenizer(config, ["a b I"])
    a, b, i = (tokenizer.encode([word])[0][0] for word in "abI")
    ids = (a, EOS_ID, b, EOS_ID, EOS_ID, i)
    detokenizer = Detokenizer(tokenizer, "eos")
    assert detokenizer.texts([ids]) == ["a\nb\n\nI"]
    actual = detokenizer.drop_after_stop(Hypothesis(ids, -6.0, -6.0, token_log_probs=(-1.0,) * 6, text=text))
    assert len(actual.ids) == len(actual.token_log_probs) == num_kept
    assert actual.log_prob == -num_kept
