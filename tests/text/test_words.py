"""Words of plain text."""

from __future__ import annotations

import random
import re

import pytest
from growth import require_linear_time

from heed.text.words import split_words

IN_ONE_PATTERN = re.compile(
    r"""
      (?:https?://|www\.)\S+[^\s.,;:!?)\]}'"”»]
    | [\w.+-]+@[\w-]+(?:\.[\w-]+)+
    | [@\#]\w+
    | (?:[^\W\d_]\.){2,}
    | (?:Mr|Mrs|Ms|Dr|St|vs|Inc|Corp|Co|Ltd|No)\.
    | \d+(?:[.,:/-]\d+)*
    | \w+?(?=n['’]t\b)
    | n['’]t\b
    | ['’](?:s|re|ve|ll|d|m)\b
    | \w+(?:[-‐]\w+)*
    | \.{2,} | -{2,}
    | [^\s]
    """,
    re.VERBOSE | re.IGNORECASE,
)
"""As vocabularies were made whose models are in use. It takes quadratic time to look for mail addresses."""
PIECES = ["a", "s", "n", ".", "@", "+", "-", "‐", "1", "_", " ", "'", ",", "#", "n't", "'s", "www.", "http://", "a@b.c"]


def test_words_are_those_of_one_pattern() -> None:
    source = random.Random(0)
    for _ in range(2000):
        line = "".join(source.choices(PIECES, k=source.randint(1, 14)))
        expected = [(match[0], match.start(), match.end()) for match in IN_ONE_PATTERN.finditer(line)]
        assert [tuple(word) for word in split_words(line)] == expected


@pytest.mark.parametrize("piece", ["ab.", "+", "a-", "a@", "a@b.", "a@b.c+", "n't", "www.", "1,"])
@pytest.mark.parametrize("last", ["", "@", ",x@y.z"])
def test_a_long_run_without_blanks_is_cut_in_linear_time(piece: str, last: str) -> None:
    require_linear_time(split_words, lambda size: piece * size + last)
