"""Transfer rules: what each part of the rule language does, and the built-in rules on words of a small dictionary."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from heed.core.errors import UsageError
from heed.statistical.rules.dictionary import count_dictionary, count_evidence
from heed.statistical.rules.rule_file import parse_rules, read_rules
from heed.statistical.rules.transfer import Candidates, transferred

GENDERS = {"Hund": "m", "Katze": "f", "Haus": "n", "Männer": "m", "Männern": "m", "Sofa": "n"}
ENTRIES: Mapping[str, tuple[str, ...]] = {
    "a": ("ein", "eine"), "the": ("die", "der"), "dog": ("Hund",), "cat": ("Katze",), "house": ("Haus",),
    "men": ("Männer", "Männern"), "sofa": ("Sofa",), "green": ("grün", "grünen", "grüner", "grünes", "grüne"),
    "sleeping": ("schlafen", "schläft"), "sees": ("sieht", "sehen"), "is": ("ist",), "are": ("sind",),
    "in": ("im",), "on": ("auf",), "two": ("zwei",), "into": ("in",), "'s": ("der",),
}  # fmt: skip


def translated(line: str, rules: str) -> str:
    """The target of words of the small dictionary."""
    words = line.split()
    entries: list[Candidates] = [[(word, -float(n)) for n, word in enumerate(ENTRIES.get(w, (w,)))] for w in words]

    def features_of(target: str) -> dict[str, str]:
        return {"gender": GENDERS[target]} if target in GENDERS else {}

    written = transferred(words, entries, features_of, parse_rules(rules, "test"))
    assert sorted(each.place for each in written) == list(range(len(words)))
    return " ".join(each.text for each in written if each.text)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("a green dog", "ein grüner Hund"),
        ("a green cat", "eine grüne Katze"),
        ("a dog sees a green dog", "ein Hund sieht einen grünen Hund"),
        ("the dog is sleeping in the house", "der Hund schläft im Haus"),
        ("two men are sleeping on a green sofa", "zwei Männer schlafen auf einem grünen Sofa"),
        ("a dog sleeping on the sofa", "ein Hund schläft auf dem Sofa"),
        ("a cat in a house", "eine Katze in einem Haus"),
        ("a dog 's house", "Haus eines Hund"),
        ("Xaver sees the cat", "Xaver sieht die Katze"),
    ],
)
def test_the_built_in_rules_order_and_inflect(source: str, target: str) -> None:
    assert translated(source, read_rules("en-de")) == target


HEAD = 'name = "test"\n[classes]\nA = ["a"]\nD = ["dog"]\nC = ["cat"]\n'


@pytest.mark.parametrize(
    ("rules", "target"),
    [
        ("", "ein Hund Katze"),
        ('[[rules]]\nname = "turn"\nmatch = ["A", "D"]\norder = [2, 1]\n', "Hund ein Katze"),
        ('[[rules]]\nname = "drop"\nmatch = ["A", "D|C"]\norder = [2]\n', "Hund Katze"),
        ('[[rules]]\nname = "group"\nmatch = ["A?", "D"]\nas = "NP"\n'
         '[[rules]]\nname = "swap"\nmatch = ["NP", "C"]\norder = [2, 1]\n', "Katze ein Hund"),
        ('[translations]\ndog = "Köter"\n', "ein Köter Katze"),
        ('[contractions]\n"ein Hund" = "Hündchen"\n', "Hündchen Katze"),
        ('[[rules]]\nname = "set"\nmatch = ["A", "D"]\nset = [{ on = [1], gender = "@2" }]\n'
         '[[forms]]\nclass = "A"\nby = ["gender"]\nwords = { m = "einer" }\n', "einer Hund Katze"),
        ('[[rules]]\nname = "class"\nmatch = ["D"]\nset = [{ class = "C" }]\n'
         '[[rules]]\nname = "several"\nmatch = ["A", "C+"]\norder = [2, 1]\n', "Hund Katze ein"),
    ],
)  # fmt: skip
def test_each_part_of_the_language(rules: str, target: str) -> None:
    assert translated("a dog cat", HEAD + rules) == target


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ('name = "x"\n[[rules]]\nname = "y"\nmatch = ["a dog"]\n', "is not an element"),
        ('name = "x"\nverbs = 1\n', "verbs"),
        ("[classes]\n", "name"),
        ("name = [", "test"),
    ],
)
def test_mistakes_in_a_rule_file_are_named(rules: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_rules(rules, "test")


def test_rules_are_read_by_name_or_path(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('name = "mine"\n', encoding="utf-8")
    assert parse_rules(read_rules(str(tmp_path / "mine.toml")), "mine").name == "mine"
    with pytest.raises(UsageError, match="neither a built-in rule file \\(en-de\\) nor a file"):
        read_rules("nowhere")


def test_a_dictionary_has_the_shares_of_links() -> None:
    pairs = [([1, 2], [5, 6]), ([1, 2], [5, 7]), ([1], [6])]
    links = [{(0, 0), (1, 1)}, {(0, 0), (1, 1)}, {(0, 0)}]
    dictionary = count_dictionary(pairs, links, 8)
    assert [(word, round(float(np.exp(log_prob)), 6)) for word, log_prob in dictionary.entries(1)] == [
        (5, 0.666667), (6, 0.333333),
    ]  # fmt: skip
    assert [word for word, _ in dictionary.entries(2)] == [6, 7]
    assert dictionary.entries(3) == []


def test_words_before_a_noun_say_what_it_is() -> None:
    texts = ["", "", "", "", " der", " die", " Hund", " Katze", " Maus"]
    evidence = count_evidence([[4, 6], [5, 7], [5, 6], [4, 6], [7, 8]], {"m": {"der": 1.0}, "f": {"die": 1.0}}, texts)
    assert evidence[[6, 7, 8]].tolist() == [0, 1, -1]
