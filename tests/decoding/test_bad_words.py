"""Banned phrases: the forbidden tokens are those that trying each one would find."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heed.decoding.logit_rules import BannedPhrases
from heed.decoding.phrases import Phrases
from heed.text.vocabulary import EOS_ID

SINGLE_BYTES = [bytes([byte]) for byte in sorted({*"abxAB .-\né本日".encode(), 0x80, 0xFF})]
LONGER = [
    piece.encode()
    for piece in (" a", "ab", " ab a", "b.", "é", "éa", "本", "日本", " A", "-a", "B ", "ท", "ที", "ี", "ี่", "\u200c")
]
TOKEN_BYTES = [b"", b"", b"", *SINGLE_BYTES, *LONGER, b"\xc3", b"\xa9a", b"a\xc3", b""]
COMMON = [TOKEN_BYTES.index(char.encode()) for char in "ab A.-"]
PHRASES = ["a", "ab", "a b", "b a", "b.", "é", "本", "a é", "A", "Ab", "-a", "日本", "a.b", "ท", "ที"]


def tried(phrases: list[str], tokens: list[int], is_last: bool) -> list[bool]:
    """The definition: add every token and see what has become certain."""
    matcher = Phrases(phrases, TOKEN_BYTES, any_case=True)
    state = matcher.states[matcher.read(tokens)[0]]
    forbidden = []
    for token in range(len(TOKEN_BYTES)):
        after, certain = matcher.peek(state, token)
        forbidden.append(bool(certain or (is_last and matcher.pending(after))))
    forbidden[EOS_ID] = bool(matcher.pending(state))
    return forbidden


@settings(max_examples=100, deadline=None)
@given(
    tokens=st.lists(st.sampled_from([*COMMON, *range(3 + len(SINGLE_BYTES), len(TOKEN_BYTES))]), max_size=7),
    phrases=st.lists(st.sampled_from(PHRASES), min_size=1, max_size=4),
    is_last=st.booleans(),
)
def test_the_forbidden_tokens_are_those_that_trying_each_one_finds(
    tokens: list[int], phrases: list[str], is_last: bool
) -> None:
    assert BannedPhrases(phrases, TOKEN_BYTES).forbidden(tokens, is_last).tolist() == tried(phrases, tokens, is_last)


def test_few_tokens_are_tried_after_the_start_of_a_phrase(monkeypatch: pytest.MonkeyPatch) -> None:
    ban = BannedPhrases(["ab", "bab"], TOKEN_BYTES)
    numbers: list[int] = []
    original = Phrases.peek

    def counted(self: Phrases, state: object, token: int) -> object:
        numbers.append(token)
        return original(self, state, token)  # type: ignore[arg-type]

    a, b = COMMON[:2]
    ban.forbidden([a], False)
    monkeypatch.setattr(Phrases, "peek", counted)
    assert torch.equal(ban.forbidden([a], False), ban.forbidden([a], False))
    assert not numbers
    ban.forbidden([b, a], False)  # "ba", which "bab" continues
    assert 0 < len(numbers) < len(TOKEN_BYTES) * 0.6  # bytes that cannot start a character are always tried
