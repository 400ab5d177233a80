"""Codes, names and scripts of languages, and their identification."""

from __future__ import annotations

import gzip
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heed.text.language.codes import code_of, is_right_to_left, name_of
from heed.text.language.identify import (
    FREQUENT_WORDS,
    MIN_EVIDENCE,
    LanguageIdentifier,
    are_crossed,
    evidence,
    look_exchanged,
    may_be_in,
    profile,
    similarity,
)
from heed.text.language.scripts import SCRIPT_OF_LANGUAGE, main_script, mixed_word


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("en", "en"), ("EN", "en"), ("en-US", "en"), ("en_GB", "en"), ("eng", "en"), ("English", "en"),
        (" english ", "en"), ("English (US)", "en"), ("deu_Latn", "de"), ("ger", "de"), ("Deutsch", "de"),
        ("Français", "fr"),         ("Kiswahili", "sw"),
        ("中文", "zh"), ("cmn", "zh"), ("zh-Hans-CN", "zh"), ("", ""), ("xx", ""), ("the dog", ""),
        ("id 7", ""), ("-", ""),
    ],
)  # fmt: skip
def test_a_language_has_many_names_and_one_code(name: str, code: str) -> None:
    assert code_of(name) == code


def test_languages_have_names_and_directions() -> None:
    assert [name_of(code) for code in ("de", "pt-BR", "lo", "xx")] == ["German", "Portuguese", "Lao", "xx"]
    assert is_right_to_left("ar-EG")
    assert not is_right_to_left("de")


def test_the_tables_of_languages_use_two_letter_codes() -> None:
    assert all(code_of(code) == code for code in (*FREQUENT_WORDS, *SCRIPT_OF_LANGUAGE))


@pytest.mark.parametrize(
    ("line", "script"),
    [
        ("Hello, 12!", "Latin"),
        ("Привет, мир", "Cyrillic"),
        ("I say мир", "Latin"),
        ("今日はカメラ", "Han or Kana"),
        ("안녕하세요", "Hangul"),
        ("Γειά σου", "Greek"),
        ("مرحبا", "Arabic"),
        ("नमस्ते", "Devanagari"),
        ("ＡＢＣ", "Latin"),
        ("12 %, 5 µ ª ʰ", None),
        ("", None),
    ],
)
def test_a_line_is_in_the_script_of_most_of_its_letters(line: str, script: str | None) -> None:
    assert main_script(line) == script


@pytest.mark.parametrize(
    ("line", "at"),
    [
        ("a cаt", 2),
        ("Тhe", 0),
        ("Μarc", 0),
        ("5 µm and 3 μm", None),
        ("NF-κB", None),
        ("USB-кабель", None),
        ("Ärger", None),
    ],
)
def test_a_word_that_mixes_lookalike_letters_is_detected(line: str, at: int | None) -> None:
    assert mixed_word(line) == at


ALL = LanguageIdentifier({code: [" ".join(words)] for code, words in FREQUENT_WORDS.items()})
TWO = LanguageIdentifier({"en": ["the dog runs"], "de": ["der Hund rennt"]})


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
def test_frequent_words_identify_a_sentence_among_sixty_languages(text: str, language: str) -> None:
    assert ALL.detect(text)[0].language == language


def test_samples_are_enough_to_identify_a_language() -> None:
    assert TWO.detect("a dog")[0].language == "en"
    assert TWO.detect("Hunde")[0].language == "de"


@pytest.mark.parametrize(
    ("text", "least", "most"),
    [
        ("A dog runs on the grass.", 1, 1), ("Ein Hund und die Katze", 1, 1), ("Hund", 1, 1), ("", 1, 1), ("1 2", 1, 1),
        ("Un chien noir court dans le parc avec les enfants.", 0, 0.4),
        ("Un perro negro corre por el parque y una mujer mira.", 0, 0.4), ("犬が走る", 0, 0), ("Собака бежит", 0, 0),
    ],
)  # fmt: skip
def test_a_text_in_a_language_that_is_not_among_those_known_is_noticed(text: str, least: float, most: float) -> None:
    assert least <= may_be_in(text, ["en", "deu"]) <= most


def test_longer_text_gives_more_confidence() -> None:
    short, long = (TWO.detect(text)[0].confidence for text in ("Hund", "Hund rennt der Hund rennt"))
    assert short < long <= 100


@given(st.text(max_size=50))
def test_every_language_gets_a_confidence_and_they_add_up_to_one_hundred(text: str) -> None:
    found = TWO.detect(text)
    assert {each.language for each in found} == {"en", "de"}
    assert sum(each.confidence for each in found) == pytest.approx(100, abs=0.2)
    assert found[0].confidence >= found[1].confidence


@pytest.mark.parametrize("text", ["", "123", "🙂 !?"])
def test_text_without_letters_makes_all_languages_equally_likely(text: str) -> None:
    assert {each.confidence for each in TWO.detect(text)} == {50.0}


def test_without_samples_nothing_is_detected() -> None:
    assert LanguageIdentifier({}).detect("text") == []


TEXTS = {
    "en": ["The dog is on the street and it does not see you.", "We have a house, but they live in this one."],
    "de": ["Der Hund ist auf der Straße und er sieht dich nicht.", "Wir haben ein Haus, aber sie wohnen in diesem."],
    "fr": [
        "Le chien est dans la rue et il ne vous voit pas.",
        "Nous avons un lit, mais elles vivent dans une autre.",
    ],
    "ru": ["Он не видит вас на улице, и это не так.", "Мы живём в доме, но они нет."],
    "ja": ["犬は通りにいます。", "私たちは家を持っています。"],
    "uk": ["Собака на вулиці, і він не бачить вас, але це не так.", "Ми живемо в будинку, що є у нього."],
    "sw": ["Mbwa yuko barabarani na hakuoni.", "Tuna nyumba, lakini wao wanaishi katika hii."],
}


@pytest.mark.parametrize("language", ["en", "de", "fr", "ru", "ja", "uk", "sw"])
def test_a_text_shows_evidence_for_its_own_language_only(language: str) -> None:
    for other, text in TEXTS.items():
        if other != language:
            own = evidence(language, TEXTS[language], against=other) or 0.0
            assert own >= MIN_EVIDENCE
            assert 2 * (evidence(language, text, against=other) or 0.0) <= own


def test_an_unknown_language_has_no_evidence() -> None:
    assert evidence("ha", TEXTS["sw"]) is None


@pytest.mark.parametrize(
    ("src", "tgt", "src_lang", "tgt_lang", "exchanged"),
    [
        ("de", "en", "en", "de", True),
        ("de", "en", "eng", "de-DE", True),
        ("en", "de", "en", "de", False),
        ("sw", "en", "en", "sw", True),
        ("sw", "en", "en", "ha", True),
        ("en", "sw", "en", "sw", False),
        ("en", "ja", "ja", "en", True),
        ("ja", "en", "ja", "en", False),
        ("uk", "en", "en", "uk", True),
        ("en", "de", "sw", "ha", False),
        ("de", "en", "", "", False),
        ("de", "de", "en", "de", False),
        ("de", "en", "en-GB", "en-US", False),
    ],
)
def test_exchanged_sides_are_detected_when_one_language_is_known(
    src: str, tgt: str, src_lang: str, tgt_lang: str, exchanged: bool
) -> None:
    assert look_exchanged(TEXTS[src], TEXTS[tgt], src_lang, tgt_lang) is exchanged


def test_sides_without_words_do_not_look_exchanged() -> None:
    assert not look_exchanged([], [], "en", "de")
    assert not look_exchanged(["1 2 3"], ["4 5"], "en", "ja")


def test_exchanged_sides_are_detected_by_known_text_in_any_language() -> None:
    src, tgt = (profile(TEXTS[language]) for language in ("sw", "uk"))
    known = profile(["Mbwa hakuoni katika nyumba."]), profile(["Собака не бачить будинку."])
    assert are_crossed(tgt, src, *known)
    assert not are_crossed(src, tgt, *known)


def test_similarity_is_one_for_the_same_text_and_low_for_another_language() -> None:
    src, tgt = profile(TEXTS["en"]), profile(TEXTS["de"])
    assert similarity(src, src) == pytest.approx(1.0)
    assert similarity(src, tgt) < 0.5
    assert similarity(src, profile([])) == 0.0


@pytest.mark.parametrize(
    ("folder", "src", "tgt"),
    [("multi30k", "en", "de"), ("multi30k", "en", "fr"), ("multi30k", "de", "cs"), ("multi30k", "cs", "fr")],
)
def test_the_direction_of_real_captions_is_detected(shared_data: Path, folder: str, src: str, tgt: str) -> None:
    sides = []
    for language in (src, tgt):
        with gzip.open(shared_data / folder / f"val.{language}.gz", "rt", encoding="utf-8") as file:
            sides.append(list(islice(file, 1000)))
    assert look_exchanged(*sides, tgt, src)
    assert not look_exchanged(*sides, src, tgt)
