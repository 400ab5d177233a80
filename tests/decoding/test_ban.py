"""Are the tokens that may not follow a text found without trying them all?"""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from heed.decoding.ban import Ban
from heed.decoding.phrases import Phrases

EOS = 0
SINGLE_BYTES = [bytes([byte]) for byte in range(256)]
LONGER = [piece.encode() for piece in (" a", "ab", " ab a", "b.", "é", "éa", "本", "日本", " A", "-a", "B ")]
SPELLED = [b"", *SINGLE_BYTES, *LONGER, b"\xc3", b"\xa9a", b"a\xc3", b""]
COMMON = [ord(char) + 1 for char in "ab A.-"]
PHRASES = ["a", "ab", "a b", "b a", "b.", "é", "本", "a é", "A", "Ab", "-a", "日本", "a.b"]


def tried(phrases: list[str], tokens: list[int], is_last: bool) -> list[bool]:
    """The definition: every token is added, and it is looked at what is certain then."""
    found = Phrases(phrases, SPELLED, any_case=True)
    state = found.states[found.read(tokens)[0]]
    forbidden = []
    for token in range(len(SPELLED)):
        after, certain = found.peek(state, token)
        forbidden.append(bool(certain or (is_last and found.pending(after))))
    forbidden[EOS] = bool(found.pending(state))
    return forbidden


@settings(max_examples=150, deadline=None)
@given(
    tokens=st.lists(st.sampled_from([*COMMON, *range(257, len(SPELLED))]), max_size=7),
    phrases=st.lists(st.sampled_from(PHRASES), min_size=1, max_size=4),
    is_last=st.booleans(),
)
def test_the_tokens_that_may_not_follow_are_those_that_trying_each_would_find(
    tokens: list[int], phrases: list[str], is_last: bool
) -> None:
    assert Ban(phrases, SPELLED, EOS).forbidden(tokens, is_last).tolist() == tried(phrases, tokens, is_last)


def test_few_tokens_are_tried_behind_a_phrase_that_has_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    ban = Ban(["ab", "bab"], SPELLED, EOS)
    numbers: list[int] = []
    original = Phrases.peek

    def counted(self: Phrases, state: object, token: int) -> object:
        numbers.append(token)
        return original(self, state, token)  # type: ignore[arg-type]

    a, b = ord("a") + 1, ord("b") + 1
    ban.forbidden([a], False)
    monkeypatch.setattr(Phrases, "peek", counted)
    assert torch.equal(ban.forbidden([a], False), ban.forbidden([a], False))
    assert not numbers
    ban.forbidden([b, a], False)  # "ba", behind which "bab" goes on
    assert 0 < len(numbers) < len(SPELLED) * 0.6  # half of these are bytes that begin no character
