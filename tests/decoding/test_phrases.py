"""Phrase matching: whole words match, however the text is tokenized."""

from __future__ import annotations

import random
import re
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heed.decoding import phrases as phrases_module
from heed.decoding.phrases import Glossary, Phrases, State, is_boundary, is_word_character, lowered

SINGLE_BYTES = [bytes([byte]) for byte in range(256)]
LONGER = [
    piece.encode()
    for piece in (" a", "ab", " ab a", "b.", "é", "éa", "本", "日本", "a\xe9", " A", "-a", "ท", "ี", "\u200c")
]
SPELLED = [*SINGLE_BYTES, *LONGER, b"\xc3", b"\xa9a", b""]
PIECES = st.lists(st.sampled_from([ord("a"), ord("b"), ord(" "), ord("."), *range(256, len(SPELLED))]), max_size=9)


def text_of(tokens: Sequence[int]) -> str:
    """The text of these bytes, without an incomplete character at its end."""
    return b"".join(SPELLED[token] for token in tokens).decode("utf-8", "replace")


def occurs_in(phrase: str, text: str, any_case: bool = False) -> bool:
    """The definition by a regular expression; letters of scripts without word separators end words."""
    letter = "(?:[^\\W日本ท]|\u200c)"
    left = rf"(?<!{letter})" if re.match(letter, phrase) else ""
    right = rf"(?!{letter}|ี)" if re.match(letter, phrase[-1]) else "(?!ี)" if phrase[-1] in "ที" else ""
    flags = re.IGNORECASE if any_case and phrase == phrase.lower() else 0
    return re.search(left + re.escape(phrase) + right, text, flags) is not None


@settings(max_examples=200)
@given(
    tokens=PIECES,
    phrases=st.lists(st.sampled_from(["a", "ab", "a b", "b a", "b.", "é", "本", "a é", "A", "ท", "ที"]), min_size=1),
)
def test_a_phrase_occurs_when_it_is_certain_or_pending(tokens: list[int], phrases: list[str]) -> None:
    matcher = Phrases(phrases, SPELLED)
    state, certain = matcher.read(tokens)
    if matcher.states[state].rest:
        return  # the text does not end here
    matched = certain | matcher.pending(matcher.states[state])
    assert {phrases[number] for number in matched} == {p for p in phrases if occurs_in(p, text_of(tokens))}


@settings(max_examples=100)
@given(tokens=PIECES, more=PIECES, phrase=st.sampled_from(["a", "ab", "a b", "b.", "é", "ท", "ที"]))
def test_a_certain_phrase_stays_certain(tokens: list[int], more: list[int], phrase: str) -> None:
    matcher = Phrases([phrase], SPELLED)
    _, certain = matcher.read(tokens)
    if certain:
        assert occurs_in(phrase, text_of([*tokens, *more]))


def test_a_word_is_pending_until_the_text_shows_its_end() -> None:
    matcher = Phrases(["ab"], SPELLED)

    def after(text: str) -> tuple[bool, bool]:
        state, certain = matcher.read(list(text.encode()))
        return bool(certain), bool(matcher.pending(matcher.states[state]))

    assert after(" ab") == (False, True)
    assert after(" abb") == (False, False)
    assert after(" ab.") == (True, False)
    assert after("aab") == (False, False)
    assert after(" a") == (False, False)


def test_an_incomplete_character_decides_nothing() -> None:
    matcher = Phrases(["ab"], SPELLED)
    for end, expected in (("é".encode(), False), ("–".encode(), True)):
        state, certain = matcher.read([*b" ab", *end[:-1]])
        assert not certain
        state, certain = matcher.step(state, end[-1])
        assert bool(certain) == expected


@pytest.mark.parametrize(
    ("phrase", "text", "expected"),
    [
        ("cat", "a Cat.", True), ("cat", "a CAT sat", True), ("Cat", "a cat.", False), ("Cat", "a Cat.", True),
        ("cat", "cats", False), ("straße", "Die STRASSE", False), ("straße", "die Straße.", True),
    ],
)  # fmt: skip
def test_lower_case_may_match_any_case(phrase: str, text: str, expected: bool) -> None:
    matcher = Phrases([phrase], SPELLED, any_case=True)
    state, certain = matcher.read(list(text.encode()))
    assert bool(certain | matcher.pending(matcher.states[state])) == expected


def test_word_characters_are_letters_with_their_marks_in_scripts_with_separators() -> None:
    assert all(map(is_word_character, "aZé9_ßжह"))
    assert is_word_character("\u0301"), "a combining accent"
    assert is_word_character("ि"), "a vowel sign of Hindi"
    assert not any(map(is_word_character, " .-„«日あタไ한"))
    assert is_boundary("", "a")
    assert is_boundary("a", "")
    assert is_boundary("a", " ")
    assert is_boundary("a", "日")
    assert not is_boundary("a", "b")
    assert not is_boundary("ی", "\u200c") and not is_boundary("\u200c", "خ"), "a joiner inside a word"
    assert not is_boundary("ท", "ี") and not is_boundary("ี", "่") and not is_boundary("က", "ိ"), "marks of a letter"
    assert is_boundary("ี", "บ") and is_boundary("❤", "\ufe0f") and is_boundary("👩", "\u200d")


def test_lower_case_keeps_indices() -> None:
    assert lowered("ÄbC") == "äbc"
    assert lowered("İX") == "İx", "its lower case would be two characters"


@settings(max_examples=60)
@given(
    tokens=PIECES, phrases=st.lists(st.text("abA. é本ที", min_size=1, max_size=4), max_size=8), any_case=st.booleans()
)
def test_many_phrases_are_matched_as_each_one_alone(tokens: list[int], phrases: list[str], any_case: bool) -> None:
    matcher = Phrases(phrases, SPELLED, any_case)
    state, certain = matcher.read(tokens)
    for number, phrase in enumerate(phrases):
        alone = Phrases([phrase], SPELLED, any_case)
        its_state, its_certain = alone.read(tokens)
        assert (number in certain) == bool(its_certain)
        assert (number in matcher.pending(matcher.states[state])) == bool(alone.pending(alone.states[its_state]))


def lines_executed(work: Callable[[], object]) -> int:
    """The number of lines of `Phrases` and of what it calls in its module that are executed."""
    count, before = 0, sys.gettrace()

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace if frame.f_code.co_filename == phrases_module.__file__ else None

    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def test_thousands_of_phrases_cost_little_more_than_ten() -> None:
    dice = random.Random(3)
    words = ["".join(dice.choices("abcdefghijklmnop", k=dice.randint(3, 9))) for _ in range(3000)]

    def lines(phrases: list[str]) -> int:
        matcher = Phrases(phrases, SPELLED, any_case=True)

        def match() -> None:
            for text in (b"", b" ", b" a", b"."):
                state, _ = matcher.read(text)
                for token in range(256, len(SPELLED)):
                    after, _ = matcher.peek(matcher.states[state], token)
                    matcher.pending(after)

        return lines_executed(match)

    few, many = lines(words[:10]), lines(words)
    assert 0 < few <= many < 3 * few


def test_thousands_of_terms_cost_little_more_than_ten() -> None:
    words = [f"{first}{rest}" for first in "ab" for rest in range(10, 90)]
    terms = {f"{one} {other}": "x" for one in words for other in words}

    def lines(terms: dict[str, str]) -> int:
        glossary = Glossary(terms)
        return lines_executed(lambda: glossary.terms_for("a00 b00 a00 b00"))

    few, many = lines(dict(list(terms.items())[:10])), lines(terms)
    assert 0 < few <= many < 3 * few


class _Slow(dict[State, int]):
    """Lets another thread run while a state is numbered."""

    def setdefault(self, key: State, default: int = 0) -> int:
        number = super().setdefault(key, default)
        time.sleep(0.05)
        return number


def test_threads_that_search_with_the_same_phrases_number_each_state_once() -> None:
    phrases = Phrases(["ab", "cd"], [b"a", b"c"])
    phrases._numbers = _Slow(phrases._numbers)
    with ThreadPoolExecutor(2) as pool:
        numbers = [number for number, _ in pool.map(partial(phrases.step, 0), (0, 1))]
    assert [phrases.states[number].text for number in numbers] == ["a", "c"]
