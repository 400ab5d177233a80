"""Normalisation changes what it should and leaves clean text unchanged."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heed.text.normalise import Normaliser

CLEAN = [
    "Ein Mann  fährt – „schnell“ – Rad.",
    "10\u00a0000\u202f€, l’été… ½ ﬁ Ａ",
    "日本語。　العربية हिन्दी می‌خواهم 👩‍👩‍👧",
    " a\tb ",
    "",
]


@pytest.mark.parametrize("line", CLEAN)
def test_clean_text_stays_as_it_is(line: str) -> None:
    assert Normaliser().apply(line) == line


@pytest.mark.parametrize(
    ("options", "line", "expected"),
    [
        ({}, "u\u0308ber", "über"),
        ({"form": "none"}, "u\u0308ber", "u\u0308ber"),
        ({"form": "nfkc"}, "ﬁn Ａ１ ½", "fin A1 1⁄2"),
        ({"form": "nfkc", "lowercase": True}, "Apple™ ℃ ℕ ﬁ", "appletm °c n fi"),
        ({}, "a\x00b\x07c\x7fd\x9fe", "abcde"),
        ({}, "a\rb\nc\x85d\x0be", "a b c d e"),
        ({}, "\ufeffa\ufeffb", "ab"),
        ({}, "u\x00\u0308", "ü"),
        ({"strip_control": False}, "a\x00b\r", "a\x00b\r"),
        ({"collapse_spaces": True}, "  a \t b\u00a0 c ", "a b\u00a0 c"),
    ],
)
def test_each_setting_has_its_effect(options: dict[str, Any], line: str, expected: str) -> None:
    assert Normaliser(**options).apply(line) == expected


@given(
    line=st.text(),
    form=st.sampled_from(["none", "nfc", "nfkc"]),
    strip_control=st.booleans(),
    collapse_spaces=st.booleans(),
    lowercase=st.booleans(),
)
def test_normalising_twice_is_normalising_once(
    line: str, form: Any, strip_control: bool, collapse_spaces: bool, lowercase: bool
) -> None:
    normaliser = Normaliser(
        form=form, strip_control=strip_control, collapse_spaces=collapse_spaces, lowercase=lowercase
    )
    once = normaliser.apply(line)
    assert normaliser.apply(once) == once
    if form != "none":
        assert unicodedata.is_normalized(form.upper(), once)


def test_the_settings_survive_being_saved() -> None:
    normaliser = Normaliser(form="nfkc", collapse_spaces=True)
    assert Normaliser.model_validate_json(normaliser.model_dump_json()) == normaliser
