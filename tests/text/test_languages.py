"""Is a language recognised by the codes and names that people give it, and by what it looks like?"""

from __future__ import annotations

import gzip
from itertools import islice
from pathlib import Path

import pytest

from heed.text.doctor.direction import LEAST_SIGNS, SCRIPTS, are_crossed, look_exchanged, signs_of
from heed.text.doctor.language import profile
from heed.text.languages import code_of


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


def test_every_language_with_a_script_of_its_own_has_a_code() -> None:
    assert {code_of(code) for code in SCRIPTS} == set(SCRIPTS)


TEXTS = {
    "en": ["The dog is on the street and it does not see you.", "We have a house, but they live in this one."],
    "de": ["Der Hund ist auf der Straße und er sieht dich nicht.", "Wir haben ein Haus, aber sie wohnen in diesem."],
    "fr": [
        "Le chien est dans la rue et il ne vous voit pas.",
        "Nous avons un lit, mais elles vivent dans une autre.",
    ],
    "ru": ["Он не видит вас на улице, и это не так.", "Мы живём в доме, но они нет."],
    "ja": ["犬は通りにいます。", "私たちは家を持っています。"],
    "uk": ["Собака на вулиці й не бачить вас.", "Ми живемо в будинку."],
    "sw": ["Mbwa yuko barabarani na hakuoni.", "Tuna nyumba, lakini wao wanaishi katika hii."],
}


@pytest.mark.parametrize("language", ["en", "de", "fr", "ru", "ja", "uk"])
def test_text_shows_the_signs_of_its_language_and_of_no_other(language: str) -> None:
    signs = {other: signs_of(language, text) or 0.0 for other, text in TEXTS.items()}
    own = signs.pop(language)
    if language == "uk":
        del signs["ru"]  # they share a script, and that is all that is known of Ukrainian
    assert own >= LEAST_SIGNS
    assert max(signs.values()) * 2 <= own
    assert signs_of("sw", TEXTS["sw"]) is None


@pytest.mark.parametrize(
    ("src", "tgt", "src_lang", "tgt_lang", "exchanged"),
    [
        ("de", "en", "en", "de", True),
        ("de", "en", "eng", "de-DE", True),
        ("en", "de", "en", "de", False),
        ("sw", "en", "en", "sw", True),
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
def test_sides_that_are_exchanged_are_noticed_where_something_is_known_of_a_language(
    src: str, tgt: str, src_lang: str, tgt_lang: str, exchanged: bool
) -> None:
    assert look_exchanged(TEXTS[src], TEXTS[tgt], src_lang, tgt_lang) is exchanged


def test_no_lines_are_exchanged_with_nothing() -> None:
    assert not look_exchanged([], [], "en", "de")
    assert not look_exchanged(["1 2 3"], ["4 5"], "en", "ja")


def test_sides_that_are_exchanged_are_noticed_by_known_text_of_any_languages() -> None:
    src, tgt = (profile(TEXTS[language]) for language in ("sw", "uk"))
    known = profile(["Mbwa hakuoni katika nyumba."]), profile(["Собака не бачить будинку."])
    assert are_crossed(tgt, src, *known)
    assert not are_crossed(src, tgt, *known)


@pytest.mark.parametrize(
    ("folder", "src", "tgt"),
    [("multi30k", "en", "de"), ("multi30k", "en", "fr"), ("multi30k", "de", "cs"), ("multi30k", "cs", "fr")],
)
def test_real_captions_are_seen_the_right_way_round(shared_data: Path, folder: str, src: str, tgt: str) -> None:
    sides = []
    for language in (src, tgt):
        with gzip.open(shared_data / folder / f"val.{language}.gz", "rt", encoding="utf-8") as file:
            sides.append(list(islice(file, 1000)))
    assert look_exchanged(*sides, tgt, src)
    assert not look_exchanged(*sides, src, tgt)
