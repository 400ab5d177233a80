"""A line that is too long is translated in sentences, which are joined with its white space."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hashed_model import HashedModel

from heed.decoding.hypothesis import Hypothesis
from heed.decoding.options import Constraints, Request, SearchOptions
from heed.inference.line_translator import LineTranslator
from heed.inference.sentences import MAX_TOKENS, split_if_long, split_sentences, translate_pieces
from heed.inference.translator import ModelTranslator
from heed.text.normalise import Normaliser
from heed.text.sentences import Piece, split_long
from heed.text.tokenizers.byte_level import Byte


def line(*texts: str) -> list[Piece]:
    """A line in pieces: a text of spaces is one that stays."""
    return [Piece(text, bool(text.strip())) for text in texts]


def shout(lines: list[str]) -> list[Hypothesis]:
    """A translation into capitals; short lines are finished, and lines with an x are flagged."""
    return [
        Hypothesis((7,), -float(len(text)), -1.0, (-float(len(text)),), finished=len(text) < 6, text=text.upper(),
                   flags=("loop",) if "x" in text else ())
        for text in lines
    ]  # fmt: skip


def test_the_translations_of_each_line_are_joined_in_order() -> None:
    actual = translate_pieces([line("one.", "  ", "two"), [], line("  "), line("x.", " ", "y.", " ", "x.")], shout)
    assert [h.text for h in actual] == ["ONE.  TWO", "", "  ", "X. Y. X."]
    assert [h.log_prob for h in actual] == [-7.0, 0.0, 0.0, -6.0]
    assert [h.score for h in actual] == [-2.0, 0.0, 0.0, -3.0]
    assert [h.flags for h in actual] == [(), (), (), ("loop",)]
    assert all(h.ids == () and h.token_log_probs == () and h.alternatives == () for h in actual)


def test_scores_of_minimum_bayes_risk_are_averaged() -> None:
    def alike(lines: list[str]) -> list[Hypothesis]:
        return [replace(h, score=float(len(h.text))) for h in shout(lines)]

    actual = translate_pieces([line("one.", "  ", "seven."), line("  ")], alike, mean_score=True)
    assert [h.score for h in actual] == [5.0, 0.0]


def test_terms_are_required_of_the_sentences_with_their_sources() -> None:
    searched: dict[str, Request] = {}

    def find(requests: Sequence[Request], _options: SearchOptions) -> dict[Request, Hypothesis]:
        searched.update((bytes(id - first for id in request.source).decode(), request) for request in requests)
        return {request: Hypothesis((), 0.0, 0.0, text="x") for request in requests}

    translator = ModelTranslator(HashedModel(260), Byte(), Byte(), Normaliser()).searched_by(find)
    [first] = Byte().encode(["\0"])[0]
    padding = " ".join(["a"] * 480)
    sentences = ["We concatenate files.", "Tell us.", "A cat\u00a0sleeps in the US.", f"The Cat sleeps {padding}."]
    given = Constraints("Pre", ("Katze", "USA", "Hund"), ("cat", "US"))
    translator.translate([" ".join(sentences)], SearchOptions(), [given])
    terms = {source.split()[0]: request.terms for source, request in searched.items()}
    assert terms == {"We": ("Hund",), "Tell": (), "A": ("Katze", "USA"), "The": ("Katze",)}
    assert {source.split()[0] for source, request in searched.items() if request.prefix} == {"We"}


def test_language_model_scores_are_summed_if_every_sentence_has_one() -> None:
    def judged(lines: list[str]) -> list[Hypothesis]:
        return [
            replace(h, lm_log_prob=None if "x" in text else -2.0) for h, text in zip(shout(lines), lines, strict=True)
        ]

    actual = translate_pieces([line("a.", " ", "b."), line("a.", " ", "x."), line(" ")], judged)
    assert [h.lm_log_prob for h in actual] == [-4.0, None, None]


def test_a_line_of_one_sentence_keeps_its_hypothesis() -> None:
    assert translate_pieces([line("alone"), line("a", " ", "b")], shout)[0] == shout(["alone"])[0]


def test_a_line_is_finished_when_all_of_its_pieces_are() -> None:
    actual = translate_pieces([line("one.", " ", "two."), line("one.", " ", "seven.")], shout)
    assert [h.finished for h in actual] == [True, False]


def test_all_pieces_are_translated_at_once() -> None:
    calls: list[list[str]] = []

    def record(lines: list[str]) -> list[Hypothesis]:
        calls.append(lines)
        return shout(lines)

    translate_pieces([line("a.", " ", "b."), split_long("cc dd", 3)], record)
    assert calls == [["a.", "b.", "cc", "dd"]]


def test_a_line_of_many_tokens_is_translated_in_pieces() -> None:
    """A letter of Thai is three bytes, and one of English a single one."""
    searched: list[Request] = []

    def find(requests: Sequence[Request], _options: SearchOptions) -> dict[Request, Hypothesis]:
        searched.extend(requests)
        return {request: Hypothesis((), 0.0, 0.0, text=str(len(request.source))) for request in requests}

    translator = ModelTranslator(HashedModel(260), Byte(), Byte(), Normaliser()).searched_by(find)
    [thai, english] = translator.translate(["กขค" * 500, "a. B " * 190], SearchOptions())
    assert len(thai.text.split()) > 4
    assert sum(map(int, thai.text.split())) == 4500
    assert english.text == "950", "as it is"
    assert max(len(request.source) for request in searched) <= MAX_TOKENS


def test_a_line_is_split_where_the_model_has_few_positions() -> None:
    searched: list[int] = []

    def find(requests: Sequence[Request], _options: SearchOptions) -> dict[Request, Hypothesis]:
        searched.extend(len(request.source) for request in requests)
        return {request: Hypothesis((), 0.0, 0.0, text="x") for request in requests}

    translator = LineTranslator(Byte(), Byte(), Normaliser(), find, max_positions=16)
    translator.translate(["A bird. " * 10, "abc " * 20, "A bird."], SearchOptions())
    assert 7 < max(searched) <= 15
    tiny = LineTranslator(Byte(), Byte(), Normaliser(), find, max_positions=3)
    tiny.translate(["ab 🙂"], SearchOptions())
    assert searched[-1] == 4  # a character is not divided


@pytest.mark.parametrize("text", ["", " ", "a" * 900 + "ก" * 900, "ก" * 3000 + " b", "Ab. " * 700])
def test_pieces_join_to_the_line_and_none_is_too_long(text: str) -> None:
    def num_tokens(line: str) -> int:
        return len(line.encode())

    for pieces in (split_if_long(text, num_tokens), split_sentences(text, num_tokens)):
        assert "".join(piece.text for piece in pieces) == text
        assert all(num_tokens(piece.text) <= MAX_TOKENS for piece in pieces)
    assert split_if_long("ก", lambda _: MAX_TOKENS + 1) == [Piece("ก", True)]
