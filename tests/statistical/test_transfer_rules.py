"""Transfer rules: what each part of the rule language does, and the built-in rules on words of a small dictionary."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from heed.core.errors import UsageError
from heed.core.toml import parse_toml
from heed.statistical.rules.dictionary import count_dictionary, count_evidence
from heed.statistical.rules.rule_file import RuleFile, parse_rules, read_rules
from heed.statistical.rules.transfer import Candidates, transferred

GENDERS = {"Hund": "m", "Katze": "f", "Haus": "n", "Männer": "m", "Männern": "m", "Sofa": "n"}
ENTRIES: Mapping[str, tuple[str, ...]] = {
    "a": ("ein", "eine"), "the": ("die", "der"), "dog": ("Hund",), "cat": ("Katze",), "house": ("Haus",),
    "men": ("Männer", "Männern"), "sofa": ("Sofa",), "green": ("grün", "grünen", "grüner", "grünes", "grüne"),
    "sleeping": ("schlafen", "schläft"), "sees": ("sieht", "sehen"), "is": ("ist",), "are": ("sind",),
    "in": ("im",), "on": ("auf",), "two": ("zwei",), "into": ("in",), "'s": ("der",),
}  # fmt: skip


def parsed(text: str) -> RuleFile:
    """The rules of a file `my.toml`."""
    return parse_rules(parse_toml(text.encode(), "my.toml"))


def translated(line: str, rules: RuleFile) -> str:
    """The target of words of the small dictionary."""
    words = line.split()
    entries: list[Candidates] = [[(word, -float(n)) for n, word in enumerate(ENTRIES.get(w, (w,)))] for w in words]

    def features_of(target: str) -> dict[str, str]:
        return {"gender": GENDERS[target]} if target in GENDERS else {}

    written = transferred(words, entries, features_of, rules)
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
    assert translated(source, parse_rules(read_rules("en-de"))) == target


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
    assert translated("a dog cat", parsed(HEAD + rules)) == target


WORDS = """
name = "words with capitals, and features of one that is in no closed class"
[classes]
A = ["A"]
[translations]
Dog = "Köter"
[[tests]]
class = "N"
features = { number = "sg" }
[features]
Cat = { number = "pl" }
[[forms]]
class = "A"
words = { "" = "der" }
[[forms]]
class = "N"
by = ["number"]
words = { pl = "Katzen" }
"""


def test_a_rule_file_names_source_words_in_any_case_and_sets_features_of_all() -> None:
    assert translated("a dog cat", parsed(WORDS)) == "der Köter Katzen"


RULE = HEAD + '[[rules]]\nname = "turn"\n'


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ("verbs = 1\n" + HEAD, "my.toml:1: unknown key 'verbs'"),
        ("[classes]\n", "missing key 'name'"),
        ("name = [", "my.toml:1: not valid TOML"),
        ('name = "x"\n[classes]\nDog = ["dog"]\n', "'Dog' is not a class"),
        (HEAD + '[[tests]]\nclass = "n"\n', "my.toml:7: tests[0].class: 'n' is not a class"),
        (RULE + 'match = ["a dog"]\n', "my.toml:6: rules[0]: rule 'turn': 'a dog' is not an element of match"),
        (RULE + 'match = ["A?", "D*"]\n', "rule 'turn': all elements of match may be missing"),
        (RULE + 'match = ["A", "N"]\n', "rule 'turn': no word has the class N; the classes are A, C, D, OTHER"),
        (RULE + 'match = ["N"]\n[[rules]]\nname = "turn"\nmatch = ["A"]\n', "rule 'turn': no word has the class N"),
        (RULE + 'match = ["A", "D"]\norder = [2, 3]\n', "order names element 3; match has the elements 1 to 2"),
        (RULE + 'match = ["A", "D"]\norder = [0]\n', "order names element 0"),
        (RULE + 'match = ["A", "D"]\norder = [1, 1]\n', "order has an element twice"),
        (RULE + 'match = ["A", "D"]\nas = "NP"\nhead = 3\n', "head names element 3"),
        (RULE + 'match = ["A", "D"]\nhead = 2\n', "head needs `as`"),
        (RULE + 'match = ["A", "D"]\nas = "np"\n', "rule 'turn': 'np' is not a class"),
        (RULE + 'match = ["A"]\nset = [{ on = [2], case = "x" }]\n', "on in set names element 2"),
        (RULE + 'match = ["A"]\nset = [{ on = "1", case = "x" }]\n', "expected a list of elements for on"),
        (RULE + 'match = ["A"]\nset = [{ case = [1] }]\n', "expected text for case"),
        (RULE + 'match = ["A"]\nset = [{ on = [1] }]\n', "sets nothing"),
        (RULE + 'match = ["A"]\nset = [{ case = "@2" }]\n', "case = '@2' in set names element 2"),
        (RULE + 'match = ["A"]\nset = [{ case = "@noun" }]\n', "'@noun' is not a reference"),
        (RULE + 'match = ["A"]\nset = [{ class = "@1" }]\n', "rule 'turn': '@1' is not a class"),
        (HEAD + '[[forms]]\nclass = "A"\nby = ["case"]\nwords = { "m nom" = "ein" }\n', "forms of A: 'm nom'"),
        (HEAD + '[[forms]]\nclass = "N"\nwords = { "" = "ein" }\n', "forms of N: no word has the class N"),
    ],
)  # fmt: skip
def test_mistakes_in_a_rule_file_are_named_with_their_rule(rules: str, message: str) -> None:
    with pytest.raises(UsageError, match=re.escape(message)):
        parsed(rules)


def test_rules_are_read_by_name_or_path(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text('name = "mine"\n', encoding="utf-8")
    assert parse_rules(read_rules(str(tmp_path / "mine.toml"))).name == "mine"
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
