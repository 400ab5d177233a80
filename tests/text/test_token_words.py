"""Tokens are grouped into words as a reader would group them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heed.text.token_words import continues_word, word_slices


def words(*parts: str | bytes) -> list[str]:
    """The words of tokens that add these parts to the text."""
    tokens = [part.encode() if isinstance(part, str) else part for part in parts]
    return [b"".join(tokens[place]).decode("utf-8", "replace") for place in word_slices(tokens)]


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        (["Two", " dog", "s", " run", "."], ["Two", " dogs", " run", "."]),
        (["don", "'t", ",", " now", "!", "?"], ["don't", ",", " now", "!", "?"]),
        ([" (", "see", " below", ")", "."], [" (", "see", " below", ")", "."]),
        (["well", "-", "known"], ["well-known"]),
        (["a", " ", "b"], ["a", " b"]),
        (["a", "\n", "b", "\n", "\n", "c"], ["a", "\n", "b", "\n", "\n", "c"]),
        (["word ", "and ", "word"], ["word ", "and ", "word"]),
        (["你", "好", "吗", "？"], ["你", "好", "吗", "？"]),
        (["스", "키", " 선수"], ["스키", " 선수"]),
        (["हि", "न्द", "ी"], ["हिन्दी"]),
        ([b"\xe4\xbd", b"\xa0", "好"], ["你", "好"]),
        ([b"na\xc3", b"\xaf", "ve"], ["naïve"]),
        (["", "a"], ["", "a"]),
        ([], []),
    ],
    ids=lambda value: "|".join(map(str, value)) if value else "nothing",
)
def test_words_begin_and_end_where_a_reader_expects(parts: list[str], expected: list[str]) -> None:
    assert words(*parts) == expected


@given(
    st.lists(st.sampled_from([b"a", b" b", b".", b" ", b"\n", b"\xe4", b"\xbd", b"\xa0", b"", "好".encode(), b"'s"]))
)
def test_every_token_is_in_exactly_one_word_in_order(parts: list[bytes]) -> None:
    slices = word_slices(parts)
    assert [place for word in slices for place in range(word.start, word.stop)] == list(range(len(parts)))
    assert all(word.stop > word.start for word in slices)


@pytest.mark.parametrize(
    ("previous", "token", "expected"),
    [
        ("Trepp", "en", True),
        ("a", " b", False),
        ("a", ".", False),
        (",", "a", False),
        ("a ", "b", False),
        ("", "a", False),
    ],
)
def test_a_token_continues_the_previous_word_or_starts_one(previous: str, token: str, expected: bool) -> None:
    assert continues_word(previous.encode(), token.encode()) == expected
