"""Does a text end before what stops it, however its tokens are cut?"""

from __future__ import annotations

import pytest

from heed.decoding.stops import Stops, cut, may_begin

SPELLED = [b"", b"a", b"b", b"ab", b"abc", "\u00e4".encode()[:1], "\u00e4".encode()[1:], b" "]


@pytest.mark.parametrize(
    ("tokens", "stops", "reached"),
    [
        ([1, 2], ["ab"], True),
        ([1, 7, 2], ["ab"], False),
        ([3], ["ab"], True),
        ([1, 0, 2], ["ab"], True),  # a token of nothing stands between
        ([2, 4], ["bab"], True),
        ([4, 1], ["ab"], False),  # it was there before the last token, which did not bring it
        ([4], ["b"], True),  # inside a token
        ([5, 6], ["ä"], True),
        ([5], ["ä"], False),
        ([1, 1, 2], ["xy", "ab"], True),
    ],
)
def test_a_stop_is_seen_when_its_last_token_comes(tokens: list[int], stops: list[str], reached: bool) -> None:
    assert Stops(stops, SPELLED).reached(tokens) == reached


WORDS = [b"", b"\n", b"a ", b"b "]


@pytest.mark.parametrize(
    ("tokens", "stops", "reached"),
    [
        ([2, 3], ["b "], False),  # the space comes with another word
        ([2, 3, 2], ["b "], True),
        ([2, 3, 1], ["b\n"], True),
        ([2, 3, 1], ["b \n"], False),
        ([2, 3, 1, 2], ["b\n"], False),
        ([2, 3, 2], ["a b a"], True),
        ([2, 1, 1], ["a\n\n"], True),
        ([2, 3, 1], ["b ", "\n"], True),
    ],
)
def test_a_stop_with_space_is_looked_for_in_the_text_and_not_in_what_words_are_spelled_with(
    tokens: list[int], stops: list[str], reached: bool
) -> None:
    assert Stops(stops, WORDS, spaced=True).reached(tokens) == reached


def test_the_text_is_cut_before_the_first_of_several_stops() -> None:
    assert cut("one two three", ["three", "two"]) == "one "
    assert cut("one two three", ["four"]) == "one two three"
    assert cut("stop", ["stop"]) == ""


@pytest.mark.parametrize(
    ("text", "stops", "held"),
    [("abc", ["cde"], 1), ("abcd", ["cde"], 2), ("abx", ["cde"], 0), ("aa", ["aab", "ab"], 2)],
)
def test_what_may_begin_a_stop_is_held_back(text: str, stops: list[str], held: int) -> None:
    assert may_begin(text, stops) == held
