"""Lossless tokenization: any bytes, split in any way, are restored exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heed.compress.tokenization import LITERAL, UNKNOWN, Item, LosslessTokenizer
from heed.text.tokenizers import TokenizerConfig, train_tokenizer
from heed.text.tokenizers.byte_level import Byte
from heed.text.tokenizers.symbols import Character, CharBigram, Word
from heed.text.vocabulary import Vocabulary

EOS = Vocabulary.eos_id
LINES = ["the dog sees a cat .", "no </s> here", "äöü 😀", "the the dog dog"] * 5


@dataclass(frozen=True)
class Case:
    """A tokenizer, and the number of parts that a text is divided into."""

    tokenizer: LosslessTokenizer
    parts: int = 1


CASES = {
    "bytes, lines": Case(LosslessTokenizer(Byte(), None)),
    "bytes, eos": Case(LosslessTokenizer(Byte(), "eos"), 3),
    "bpe, newline": Case(LosslessTokenizer(train_tokenizer(TokenizerConfig(vocab_size=300), LINES), "newline"), 2),
    "characters, newline": Case(LosslessTokenizer(Character(list("adeghost\n .")), "newline"), 2),
    "characters, none": Case(LosslessTokenizer(Character(list("adeghost .")), "none"), 2),
    "words, lines": Case(LosslessTokenizer(Word(["the", "dog", "a", "cat", "."]), None)),
    "words, eos, framed": Case(LosslessTokenizer(Word(["the", "dog", "a", "cat", "."]), "eos", may_frame=True), 2),
    "words, newline, spaces": Case(LosslessTokenizer(Word(["the", "dog", "a", "\n"]), "newline", may_frame=True), 2),
    "characters, newline, spaces": Case(
        LosslessTokenizer(Character(list("adeghost\n .")), "newline", may_frame=True), 2
    ),
    "wordpiece, lines": Case(
        LosslessTokenizer(train_tokenizer(TokenizerConfig(kind="wordpiece", vocab_size=40), LINES), None)
    ),
    "wordpiece, eos, framed": Case(
        LosslessTokenizer(train_tokenizer(TokenizerConfig(kind="wordpiece", vocab_size=40), LINES), "eos", True), 2
    ),
    "pairs, lines": Case(LosslessTokenizer(CharBigram(["the", "do@@", "g", "ca@@", "t"]), None)),
}

texts = st.text(st.sampled_from("the dogcasx\n\r .<unk>ä😀\ufffd\u2028"), max_size=60).map(str.encode)
words = st.lists(st.sampled_from(["the", "dog", "a", "cat", ".", "<unk>", "zebra", "\n", " ", ""]), max_size=30)
some_bytes = st.one_of(texts, words.map(" ".join).map(str.encode), st.binary(max_size=60))


def round_trip(case: Case, data: bytes) -> bytes:
    """Encode and decode; no piece is empty, and none contains a begin of sentence."""
    pieces, layout = case.tokenizer.encode(data, case.parts)
    assert all(pieces)
    assert not any(item.token == Vocabulary.bos_id for piece in pieces for item in piece)
    return case.tokenizer.decode(pieces, layout)


@pytest.mark.parametrize("name", CASES)
@settings(max_examples=80, deadline=None)
@given(data=some_bytes)
def test_every_byte_string_is_restored(name: str, data: bytes) -> None:
    assert round_trip(CASES[name], data) == data


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize(
    "data",
    [b"", b"\n", b"\n\n", b"the", b"the\n", b"\nthe", b" the dog \n a cat \n", b" the \n", b"\xff\n\xfe", b"  \n"],
)
def test_the_ends_of_lines_are_restored(name: str, data: bytes) -> None:
    assert round_trip(CASES[name], data) == data


def items(case: str, data: bytes) -> list[list[tuple[int, bytes]]]:
    """The items of each piece."""
    pieces, _ = CASES[case].tokenizer.encode(data, CASES[case].parts)
    return [[(item.token, item.literal) for item in piece] for piece in pieces]


def test_an_unknown_word_is_followed_by_its_bytes_and_a_literal_unk_by_none() -> None:
    assert items("words, lines", b"the zebra <unk>\n") == [[(4, b""), (UNKNOWN, b"zebra"), (UNKNOWN, b""), (EOS, b"")]]


def test_an_unknown_character_is_followed_by_its_bytes() -> None:
    assert items("characters, none", "aä".encode()) == [[(4, b""), (UNKNOWN, "ä".encode())]]


def test_a_line_without_exact_tokens_is_stored_as_bytes() -> None:
    assert items("words, lines", b"the  dog\nthe dog") == [
        [(LITERAL, b"the  dog"), (EOS, b"")],
        [(4, b""), (5, b""), (EOS, b"")],
    ]
    assert items("bytes, eos", b"a\xff")[0] == [(LITERAL, b"a\xff")]


def test_spaces_around_every_line_are_stored_once() -> None:
    """PTB has such lines."""
    tokenizer = CASES["words, eos, framed"].tokenizer
    pieces, layout = tokenizer.encode(b" the dog \n a cat \n")
    assert layout.framed
    assert pieces == [[Item(4), Item(5), Item(EOS), Item(6), Item(7), Item(EOS)]]
    _, other = tokenizer.encode(b" the dog \na cat \n")
    assert not other.framed


def test_parts_have_nearly_equal_numbers_of_tokens() -> None:
    tokenizer = CASES["bytes, eos"].tokenizer
    pieces, _ = tokenizer.encode(b"12345\n" * 10, 3)
    assert [len(piece) for piece in pieces] == [24, 18, 18]
    assert len(tokenizer.encode(b"one line", 5)[0]) == 1


@pytest.mark.parametrize("kind", ["wordpiece", "sentencepiece"])
@pytest.mark.parametrize("line_end", [None, "eos", "none"])
def test_tokens_that_begin_with_a_space_stand_for_a_line_without_one(kind: Any, line_end: Any) -> None:
    if kind == "sentencepiece":
        pytest.importorskip("sentencepiece", reason="sentencepiece is not installed")
    trained = train_tokenizer(TokenizerConfig(kind=kind, vocab_size=300, min_frequency=1), LINES)
    tokenizer = LosslessTokenizer(trained, line_end)
    data = b"the dog\nthe cat sees\n"
    pieces, layout = tokenizer.encode(data)
    assert layout.spaced and tokenizer.decode(pieces, layout) == data
    assert {item.literal for piece in pieces for item in piece if item.token == LITERAL} <= {b"\n"}
