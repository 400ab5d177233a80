"""Stop texts end an output, however it is tokenized."""

from __future__ import annotations

import pytest

from heed.decoding.detokenizer import StopTexts, cut_at_stop, partial_stop

TOKEN_BYTES = [b"", b"a", b"b", b"ab", b"abc", "\u00e4".encode()[:1], "\u00e4".encode()[1:], b" "]


@pytest.mark.parametrize(
    ("tokens", "stops", "reached"),
    [
        ([1, 2], ["ab"], True),
        ([1, 7, 2], ["ab"], False),
        ([3], ["ab"], True),
        ([1, 0, 2], ["ab"], True),  # an empty token in between
        ([2, 4], ["bab"], True),
        ([4, 1], ["ab"], False),  # completed before the last token
        ([4], ["b"], True),  # inside a token
        ([5, 6], ["ä"], True),
        ([5], ["ä"], False),
        ([1, 1, 2], ["xy", "ab"], True),
    ],
)
def test_a_stop_is_reached_with_its_last_token(tokens: list[int], stops: list[str], reached: bool) -> None:
    assert StopTexts(stops, TOKEN_BYTES).reached(tokens) == reached


WORDS = [b"", b"\n", b"a ", b"b "]


@pytest.mark.parametrize(
    ("tokens", "stops", "reached"),
    [
        ([2, 3], ["b "], False),  # the space is only written before another word
        ([2, 3, 2], ["b "], True),
        ([2, 3, 1], ["b\n"], True),
        ([2, 3, 1], ["b \n"], False),
        ([2, 3, 1, 2], ["b\n"], False),
        ([2, 3, 2], ["a b a"], True),
        ([2, 1, 1], ["a\n\n"], True),
        ([2, 3, 1], ["b ", "\n"], True),
    ],
)
def test_a_stop_with_a_space_is_matched_against_the_text_rather_than_the_tokens(
    tokens: list[int], stops: list[str], reached: bool
) -> None:
    assert StopTexts(stops, WORDS, space_after_words=True).reached(tokens) == reached


def test_the_text_is_cut_before_the_first_of_several_stops() -> None:
    assert cut_at_stop("one two three", ["three", "two"]) == "one "
    assert cut_at_stop("one two three", ["four"]) == "one two three"
    assert cut_at_stop("stop", ["stop"]) == ""


@pytest.mark.parametrize(
    ("text", "stops", "held"),
    [("abc", ["cde"], 1), ("abcd", ["cde"], 2), ("abx", ["cde"], 0), ("aa", ["aab", "ab"], 2)],
)
def test_a_possible_start_of_a_stop_text_is_withheld(text: str, stops: list[str], held: int) -> None:
    assert partial_stop(text, stops) == held
