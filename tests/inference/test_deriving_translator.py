"""Translators that derive: the parts of a line that a glossary determines, and the links between words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from heed.core.errors import UsageError
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.options import Constraints, SearchOptions
from heed.decoding.phrases import Glossary
from heed.inference.alignment import word_links
from heed.inference.deriving_translator import DerivingTranslator
from heed.statistical.derivation import Derivation, Forced, every_link
from heed.text.normalise import Normaliser
from heed.text.tokenizers import TokenizerConfig, train_tokenizer

LINES = ["the cat and the caterpillar ( cat ) see the black cat", "The Katze cats", "die E-Mail-Adresse ist da"]
WORDS = train_tokenizer(TokenizerConfig(kind="open-word", vocab_size=1000, min_frequency=1), LINES)


class Copies:
    """Copies each token, and writes what it must for a part of the source."""

    def derive(self, source: Sequence[int], width: int, number: int, forced: Sequence[Forced] = ()) -> list[Derivation]:
        """One derivation."""
        parts = {part.begin: part for part in forced}
        ids: list[int] = []
        links: list[tuple[int, int]] = []
        place = 0
        while place < len(source):
            part = parts.get(place) or Forced(place, place + 1, (source[place],))
            ids += part.ids
            links += every_link(range(place, part.end + 1), len(ids) - len(part.ids), len(ids))
            place = part.end
        return [Derivation(tuple(ids), -1.0, (), tuple(links))]

    def weights_by_name(self) -> Mapping[str, float]:
        """None."""
        return {}


TRANSLATOR = DerivingTranslator(Copies(), WORDS, WORDS, Normaliser())


def translated(line: str, terms: Mapping[str, str]) -> Hypothesis:
    """The output with a glossary."""
    constraints = [Constraints.of("", Glossary(terms).pairs_for(line))]
    [output] = TRANSLATOR.translate([line], SearchOptions(beam_size=1, guard=False), constraints)
    return output


@pytest.mark.parametrize(
    ("line", "terms", "expected"),
    [
        ("the caterpillar and the cat", {"cat": "Katze"}, "the caterpillar and the Katze"),
        ("the cat and the cat", {"cat": "Katze"}, "the Katze and the Katze"),
        ("Cat and cat", {"cat": "Katze"}, " Katze and Katze"),
        ("the cat and the black cat", {"cat": "Katze", "black cat": "Panther"}, "the Katze and the Panther"),
        ("the cat, the kitten", {"cat": "Katze", "kitten": "Katze"}, "the Katze, the Katze"),
        ("the (cat)", {"cat": "Katze"}, "the (Katze)"),
        ("Xcat and cat", {"cat": "Ungesehen"}, "Xcat and Ungesehen"),
        ("die E-Mail-Adresse ist da", {"e-mail": "email"}, "die email-Adresse ist da"),
        ("die E-Mail-Adresse ist da", {"adresse": "Katze"}, "die E-Mail-Katze ist da"),
        ("E-Mail-Adresse", {"e-mail": "the cat", "adresse": "Katze"}, " the cat-Katze"),
        ("die xyz, xyz–cat", {"xyz": "Katze", "cat": "Hund"}, "die Katze, Katze–Hund"),
    ],
)
def test_a_glossary_determines_every_word_that_it_matches(line: str, terms: dict[str, str], expected: str) -> None:
    assert translated(line, terms).text == expected


@pytest.mark.parametrize(
    "changes", [{"max_ratio": 0.5}, {"max_extra": 3}, {"length_penalty": 1.0}, {"length_norm": "mean"}]
)
def test_limits_and_penalties_of_length_are_refused(changes: dict[str, object]) -> None:
    [name] = changes
    with pytest.raises(UsageError, match=rf"^decoding\.{name}: this translator searches over whole derivations"):
        TRANSLATOR.translate(["the cat"], SearchOptions(beam_size=1, guard=False, **changes))


def test_a_glossary_determines_what_it_matches_also_where_tokens_cut_characters() -> None:
    line = "猫と犬"
    pieces = train_tokenizer(TokenizerConfig(kind="bpe", vocab_size=262, min_frequency=1), [line * 9] * 9)
    assert any(b"\x80" <= part[:1] < b"\xc0" for part in pieces.bytes_of(pieces.encode([line])[0]))
    translator = DerivingTranslator(Copies(), pieces, pieces, Normaliser())
    constraints = [Constraints.of("", Glossary({"と": "&"}).pairs_for(line))]
    [output] = translator.translate([line], SearchOptions(beam_size=1, guard=False), constraints)
    assert output.text.strip() == "猫&犬"


def test_links_are_between_words_also_around_the_terms_of_a_glossary() -> None:
    assert translated("the black cat see.", {"black cat": "Panther"}).links == ((0, 0), (1, 1), (2, 1), (3, 2))


def test_a_line_that_is_translated_in_several_sentences_has_no_links() -> None:
    line = "the cat see. " * 200
    [output] = TRANSLATOR.translate([line], SearchOptions(beam_size=1, guard=False))
    assert (output.text, output.links) == (line, None)
    assert word_links(TRANSLATOR, line, output.text) == []


def test_a_term_without_a_place_in_the_line_is_refused() -> None:
    for constraints in (Constraints(terms=("Katze",)), Constraints(terms=("Katze",), sources=("dog",))):
        with pytest.raises(UsageError, match="the required term 'Katze'"):
            TRANSLATOR.translate(["the cat"], SearchOptions(), [constraints])


def test_a_translator_that_derives_has_no_unknown_words_to_replace() -> None:
    with pytest.raises(UsageError, match=r"decoding\.unknown: this translator searches over whole derivations"):
        TRANSLATOR.translate(["the cat"], SearchOptions(unknown="replace"))
