"""A glossary's terms for a line, and its file format."""

from __future__ import annotations

from pathlib import Path

import pytest

from heed.core.errors import DataError
from heed.decoding.phrases import Glossary

GLOSSARY = Glossary(
    {
        "dog": "Hund",
        "hot dog": "Hotdog",
        "US": "USA",
        "us": "uns",
        "Bank": "Ufer",
        "猫": "cat",
        "e.g.": "z.B.",
        "cat": "Katze",
    }
)


@pytest.mark.parametrize(
    ("source", "terms"),
    [
        ("A dog runs.", ("Hund",)),
        ("Dog and DOG", ("Hund",)),
        ("dogs", ()),
        ("underdog", ()),
        ("a hot dog for the dog", ("Hotdog", "Hund")),
        ("hot dogs", ()),
        ("They gave us US dollars", ("uns", "USA")),
        ("the Bank", ("Ufer",)),
        ("the bank", ()),
        ("黒猫がいる", ("cat",)),
        ("food, e.g. a dog", ("z.B.", "Hund")),
        ("cat-dog", ("Katze", "Hund")),
        ("", ()),
    ],
)
def test_terms_match_whole_words_and_the_longest_one_counts(source: str, terms: tuple[str, ...]) -> None:
    assert GLOSSARY.terms_for(source) == terms


@pytest.mark.parametrize(
    ("term", "source", "matches"),
    [
        ("می", "می\u200cخواهد", False), ("کتاب", "کتاب خوب", True), ("ที", "ที่บ้าน", False), ("ที่", "ที่บ้าน", True),
        ("บ้าน", "ที่บ้าน", True), ("က", "ကို", False),
        ("ကို", "သူကိုပြော", True), ("क", "क\u200dष", False), ("❤", "a ❤\ufe0f", True),
    ],
)  # fmt: skip
def test_a_term_is_no_part_of_a_joined_word_or_of_a_letter_with_marks(term: str, source: str, matches: bool) -> None:
    assert Glossary({term: "x"}).terms_for(source) == ("x",) * matches


def test_a_shorter_term_matches_where_a_longer_one_does_not() -> None:
    assert Glossary({"ice": "Eis", "ice cream": "Eiscreme"}).terms_for("ice creams") == ("Eis",)


@pytest.mark.parametrize("terms", [{"apple": "Apfel", "Apple": "Apple"}, {"Apple": "Apple", "apple": "Apfel"}])
def test_of_two_equally_long_terms_the_one_with_capitals_counts(terms: dict[str, str]) -> None:
    assert Glossary(terms).terms_for("Apple sells an apple") == ("Apple", "Apfel")


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text("dog\tHund\n\n  cat \t Katze \ndog\tHund\n", encoding="utf-8")
    assert Glossary.read(path, str).terms_for("the cat and the dog") == ("Katze", "Hund")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dog\n", "line 1: expected a source term"),
        ("dog\tHund\ncat\tKatze\tKater\n", "line 2: expected a source term"),
        ("dog\t\n", "line 1"),
        ("\tHund\n", "line 1"),
        ("dog\tHund\ndog\tKöter\n", "line 2: 'dog' is translated as 'Köter' here and as 'Hund' above"),
    ],
)
def test_a_malformed_line_is_an_error_with_its_number(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match=message):
        Glossary.read(path, str)
