"""The forms of the first word of a sentence."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from heed.core.errors import DataError
from heed.statistical.phrases.casing import SentenceCase
from heed.statistical.predictor import starts
from heed.text.tokenizers import Tokenizer, TokenizerConfig, train_tokenizer

LINES = ["Ein Hund sieht ein Haus.", "Hunde sehen Hunde.", "Der Mann sieht ein Kind.", "Im Haus ist ein Hund."]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_tokenizer(TokenizerConfig(kind="open-word", vocab_size=400, min_frequency=1), LINES)


@pytest.fixture(scope="module")
def case(tokenizer: Tokenizer) -> SentenceCase:
    return SentenceCase.of(tokenizer, tokenizer.encode(LINES))


def entered(case: SentenceCase, tokenizer: Tokenizer, line: str) -> tuple[list[str], bool]:
    words, capital = case.enter(tokenizer.encode([line])[0])
    return [tokenizer.decode([word])[0] for word in words], capital


@pytest.mark.parametrize(
    ("line", "first", "is_capital"),
    [
        ("Ein Hund", " ein", True),  # more often in lower case inside a sentence
        ("Hunde sehen", " Hunde", True),  # a noun
        ("ein Hund", " ein", False),
        ("Der Mann", " Der", True),  # inside a sentence there is neither form
        ("Xaver sieht", " Xaver", True),  # spelled by bytes
    ],
)
def test_the_first_word_is_written_as_inside_a_sentence(
    case: SentenceCase, tokenizer: Tokenizer, line: str, first: str, is_capital: bool
) -> None:
    words, capital = entered(case, tokenizer, line)
    assert words[0] == first
    assert capital is is_capital


def test_an_unknown_word_is_one_word_and_ends_before_punctuation(case: SentenceCase, tokenizer: Tokenizer) -> None:
    words, _ = entered(case, tokenizer, "Ein Füchslein, Xaver.")
    assert words == [" ein", " Füchslein", ",", " Xaver", "."]


@pytest.mark.parametrize("line", ["Ein Hund.", "Hunde sehen.", "ein Hund", "Xaver sieht ein Haus.", '"Ein Hund"', "Im",
                                  "Über ist", "Жук ist", "“Hund” ist", "😂 Hund"])  # fmt: skip
def test_leaving_restores_what_entering_was_given(case: SentenceCase, tokenizer: Tokenizer, line: str) -> None:
    words, capital = case.enter(tokenizer.encode([line])[0])
    ids = [*case.leave(words[0], capital), *(id for word in words[1:] for id in word)]
    assert tokenizer.decode([ids]) == [line]


@pytest.mark.parametrize("line", ["Ящик ist", "Жук", "Über ist", "😂 Hund", "“Hund” ist"])
def test_pieces_with_part_of_a_character_are_kept_at_the_beginning(line: str) -> None:
    pieces = train_tokenizer(TokenizerConfig(kind="bpe", vocab_size=330, min_frequency=1), ["Жар жар ящик Ящер über"])
    case = SentenceCase.of(pieces, pieces.encode(["жар ящик"]))
    for capital in (False, True):
        words, _ = case.enter(pieces.encode([line])[0])
        ids = [*case.leave(words[0], capital), *(id for word in words[1:] for id in word)]
        assert pieces.decode([ids]) == [line]


def test_a_run_whose_forms_lack_parts_of_characters_keeps_them(case: SentenceCase, tokenizer: Tokenizer) -> None:
    parts = [id for id, text in enumerate(tokenizer.texts()) if not text and case.spells[id]]
    outer = [[] if id in parts else [id] for id in range(len(case.inner)) for _ in range(2)]
    ids, bounds = np.array([id for each in outer for id in each]), starts(np.array([len(each) for each in outer]))
    old = replace(case, outer_ids=ids, outer_bounds=bounds)
    words, capital = old.enter(tokenizer.encode(["Über"])[0])
    assert tokenizer.decode([old.leave(words[0], capital)]) == ["Über"]


def test_another_first_word_is_capitalised_too(case: SentenceCase, tokenizer: Tokenizer) -> None:
    [ids] = tokenizer.encode(["Ein ist"])
    assert tokenizer.decode([case.leave((ids[1],), True)]) == ["Ist"]
    assert tokenizer.decode([case.leave((ids[1],), False)]) == ["ist"]


@pytest.mark.parametrize(
    ("tgt_lang", "line", "begins"),
    [
        ("tr", "Bu insanlar.", "İnsanlar"),
        ("tr-TR", "Bu ışık.", "Işık"),
        ("az", "Bu iş.", "İş"),
        ("en", "The insects.", "Insects"),
        ("ka", "ეს ადამიანი.", "ადამიანი"),  # has capitals, but not at the beginning of a sentence
        ("hr", "Ovdje ǆep.", "ǅep"),
    ],
)
def test_the_first_letter_is_capitalised_as_the_target_language_does(tgt_lang: str, line: str, begins: str) -> None:
    words = train_tokenizer(TokenizerConfig(kind="open-word", vocab_size=400, min_frequency=1), [line])
    [ids] = words.encode([line])
    case = SentenceCase.of(words, [ids], ("en", tgt_lang))
    assert words.decode([case.leave((ids[1],), True)]) == [begins]


@pytest.mark.parametrize("languages", [("tr", "en"), ("en", "az")])
@pytest.mark.parametrize(("first", "inside"), [("İyi", "iyi"), ("Isı", "ısı"), ("In", "in")])
def test_the_lower_case_of_i_is_that_of_both_languages(languages: tuple[str, str], first: str, inside: str) -> None:
    lines = [f"{first} ve {inside} ve {inside}"]
    words = train_tokenizer(TokenizerConfig(kind="open-word", vocab_size=400, min_frequency=1), lines)
    case = SentenceCase.of(words, words.encode(lines), languages)
    assert entered(case, words, lines[0]) == ([f" {inside}", " ve", f" {inside}", " ve", f" {inside}"], True)


def test_forms_are_restored_from_arrays_and_others_are_refused(case: SentenceCase, tokenizer: Tokenizer) -> None:
    size = len(tokenizer.vocabulary)
    again = SentenceCase.from_arrays(case.arrays(), size)
    assert all((again.arrays()[name] == array).all() for name, array in case.arrays().items())
    with pytest.raises(DataError, match="forms of words"):
        SentenceCase.from_arrays(case.arrays(), size + 1)
    with pytest.raises(DataError, match="missing"):
        SentenceCase.from_arrays({}, size)
