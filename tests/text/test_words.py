"""Words of plain text."""

from __future__ import annotations

import random
import re
import unicodedata

import pytest
from growth import require_linear_time
from hypothesis import given
from hypothesis import strategies as st

from heed.text.language.scripts import is_unspaced
from heed.text.words import JOINERS, is_mark, split_words

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
MARKS = ["\u0301", "\u094d", "\u093f", "\u0e31", "\ufe0f", "\u200c", "\u200d", "\xad"]
PIECES = ["a", "s", "n", ".", "@", "+", "-", "‐", "1", "_", " ", "'", ",", "#", "n't", "'s", "www.", "http://", "a@b.c"]


def test_words_are_those_of_one_pattern() -> None:
    source = random.Random(0)
    for _ in range(2000):
        line = "".join(source.choices(PIECES, k=source.randint(1, 14)))
        expected = [(match[0], match.start(), match.end()) for match in IN_ONE_PATTERN.finditer(line)]
        assert [tuple(word) for word in split_words(line)] == expected


@pytest.mark.parametrize("pieces", [[*PIECES, "é", "Ж", "語", "“", "№"], [*PIECES, "ก", "\u0e31", "\u3099"]])
def test_words_without_marks_and_of_scripts_without_spaces_are_those_of_one_pattern(pieces: list[str]) -> None:
    source = random.Random(1)
    for _ in range(1000):
        line = "".join(source.choices(pieces, k=source.randint(1, 14)))
        assert [word.text for word in split_words(line)] == [match[0] for match in IN_ONE_PATTERN.finditer(line)]


def test_earlier_vocabularies_are_cut_at_marks_as_before() -> None:
    source = random.Random(2)
    for _ in range(1000):
        line = "".join(source.choices([*PIECES, *MARKS, "क", "é"], k=source.randint(1, 14)))
        cut = [word.text for word in split_words(line, cut_at_marks=True)]
        assert cut == [match[0] for match in IN_ONE_PATTERN.finditer(line)]


@pytest.mark.parametrize(
    "words",
    [
        "हिन्दी भाषा में लिखा है ।",
        "தமிழ் ஒரு மொழி .",
        "বাংলা র‌্যাব",
        "Bọ\u0301lá lọ sí Ẹ\u0300kọ\u0301 .",
        "می\u200cخواهم",
        "അവന്\u200d വന്നു",
        "Do\xadnau\xaddampf",
        "cafe\u0301-bar @cafe\u0301 e\u0301.g. बी.जे.पी. cafe\u0301@x.org",
        "e\u0301dre\u0301 n't ' s\u0301 1\ufe0f\u20e3 漢\U000e0100字",
        "ℹ\ufe0f ❤ \ufe0f 👩 \u200d 👩 ' \u0301",
        "\u0301 ab , \u0301 \u200d ab",
        "𑄌𑄋𑄴𑄟𑄳𑄦 𞤆𞤵𞤤𞤢𞥄𞤪",
    ],
)
def test_a_mark_belongs_to_the_word_of_the_letter_before_it(words: str) -> None:
    assert [word.text for word in split_words(words)] == words.split(" ")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("didn't re\u0301n't", ["did", "n't", "re\u0301", "n't"]),
        ("it's l's\u0301", ["it", "'s", "l", "'", "s\u0301"]),
        ("❤\ufe0flove", ["❤", "\ufe0f", "love"]),
        ("👩\u200d👩", ["👩", "\u200d", "👩"]),
        ("nau\xad", ["nau", "\xad"]),
        ("(\u0301a", ["(", "\u0301", "a"]),
    ],
)
def test_words_end_where_no_letter_is_joined(line: str, words: list[str]) -> None:
    assert [word.text for word in split_words(line)] == words


@given(st.lists(st.sampled_from([*PIECES, *MARKS, "é", "ह", "ก", "👩", "𑄌"])).map("".join))
def test_words_cover_the_line_and_none_begins_with_the_mark_of_a_letter(line: str) -> None:
    words = split_words(line)
    assert "".join(word.text for word in words) == "".join(line.split())
    for word in words:
        assert line[word.start : word.end] == word.text
        before = line[max(word.start - 1, 0) : word.start]
        assert not is_mark(word.text[0]) or not (before.isalnum() or before == "_")


def test_the_marks_of_all_scripts_with_spaces_belong_to_words() -> None:
    known = {char for char in map(chr, range(0x110000)) if unicodedata.category(char)[0] == "M"}
    assert {char for char in known if is_mark(char)} == {char for char in known if not is_unspaced(char)}
    assert not any(map(is_mark, [*JOINERS, *"aह語1 "]))


@pytest.mark.parametrize(
    "piece",
    [
        "ab.",
        "+",
        "a-",
        "a@",
        "a@b.",
        "a@b.c+",
        "n't",
        "www.",
        "1,",
        "a\u0301",
        "\u200d",
        "a\u200c",
        "a\u0301-",
        "\u0301",
    ],
)
@pytest.mark.parametrize("last", ["", "@", ",x@y.z"])
def test_a_long_run_without_blanks_is_cut_in_linear_time(piece: str, last: str) -> None:
    require_linear_time(split_words, lambda size: piece * size + last)
