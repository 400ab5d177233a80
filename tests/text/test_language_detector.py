"""Are languages told apart by their letters and by the words that everyone uses?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heed.text.frequent_words import FREQUENT_WORDS
from heed.text.language_detector import LanguageDetector
from heed.text.languages import code_of, is_right_to_left, name_of

ALL = LanguageDetector({code: [" ".join(words)] for code, words in FREQUENT_WORDS.items()})
TWO = LanguageDetector({"en": ["the dog runs"], "de": ["der Hund rennt"]})


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Two dogs are playing in the snow.", "en"),
        ("Zwei Hunde spielen im Schnee.", "de"),
        ("Les deux chiens jouent dans la neige.", "fr"),
        ("Το παιδί παίζει με την μπάλα.", "el"),
        ("Дети играют во дворе, но они не видят меня.", "ru"),
        ("这是我的国家的人。", "zh"),
        ("これは私の本です。", "ja"),
    ],
)
def test_frequent_words_tell_a_sentence_among_dozens_of_languages(text: str, language: str) -> None:
    assert ALL.detect(text)[0].language == language


def test_samples_tell_languages_that_no_table_knows() -> None:
    assert TWO.detect("a dog")[0].language == "en"
    assert TWO.detect("Hunde")[0].language == "de"


def test_more_text_makes_it_surer() -> None:
    short, long = (TWO.detect(text)[0].confidence for text in ("Hund", "Hund rennt der Hund rennt"))
    assert short < long <= 100


@given(st.text(max_size=50))
def test_all_languages_are_told_and_their_confidences_are_percentages(text: str) -> None:
    found = TWO.detect(text)
    assert {each.language for each in found} == {"en", "de"}
    assert sum(each.confidence for each in found) == pytest.approx(100, abs=0.2)
    assert found[0].confidence >= found[1].confidence


@pytest.mark.parametrize("text", ["", "123", "🙂 !?"])
def test_without_a_letter_all_are_alike(text: str) -> None:
    assert {each.confidence for each in TWO.detect(text)} == {50.0}


def test_a_server_without_translators_detects_nothing() -> None:
    assert LanguageDetector({}).detect("text") == []


def test_languages_have_names_and_directions() -> None:
    assert [name_of(code) for code in ("de", "pt-BR", "lo", "xx")] == ["German", "Portuguese", "Lao", "xx"]
    assert is_right_to_left("ar-EG")
    assert not is_right_to_left("de")
    assert all(code_of(code) == code for code in FREQUENT_WORDS)
