"""Rule files: classes of words, transfer rules for order and agreement, and tables of forms, as TOML.

    [classes]                       # the words of closed classes
    DET = ["a", "an"]
    [[tests]]                       # the class of any other word: the first test that it passes
    class = "N"                     # `source` and `target` are patterns (* and ?) of the word and its translation
    target = "[A-Z]*"
    features = { number = "sg" }
    [[rules]]                       # applied in this order, each wherever it matches, from the left
    name = "noun phrase"
    match = ["DET?", "ADJ*", "N"]   # elements: a class or A|B, then nothing, ? (at most one), * or + (several)
    order = [1, 2, 3]               # the elements in the target; those that are missing are dropped
    as = "NP"                       # the match becomes one element of this class ...
    head = 3                        # ... with the features of this element
    set = [{ on = [1, 2], gender = "@3" }]      # features of elements, or their class: a value, or another's
    [[forms]]                       # the target of the words of a class, by their features
    class = "DET"
    by = ["gender", "case"]
    words = { "m nom" = "ein", "m acc" = "einen" }
    [[forms]]
    class = "ADJ"
    by = ["gender"]
    endings = { "m" = "er", "f" = "e" }         # the likeliest translation that ends so
    [contractions]
    "in dem" = "im"
    [evidence.gender]               # what a word before a noun of the target says about it
    m = { einen = 1.0, der = 0.5 }

Everything is a table lookup or a match of classes, so nothing in a rule file can run code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

from pydantic import Field, ValidationError, field_validator

from heed.core.config import Config
from heed.core.errors import DataError, UsageError
from heed.core.toml import parse_toml
from heed.text.readers import read_text

BUILT_IN = Path(__file__).parent
MAX_BYTES = 1_000_000
_ELEMENT = re.compile(r"([A-Z_]+(?:\|[A-Z_]+)*)([?*+]?)")


class WordTest(Config):
    """A test that gives a word a class."""

    class_: str = Field(alias="class")
    source: str = "*"
    """Pattern of the source word in lower case."""
    target: str = "*"
    """Pattern of its likeliest translation."""
    features: Mapping[str, str] = {}
    """Features that the word gets."""


class Rule(Config):
    """A transfer rule."""

    name: str
    match: tuple[str, ...] = Field(min_length=1)
    order: tuple[int, ...] = ()
    as_: str = Field(default="", alias="as")
    head: int = 0
    set: tuple[Mapping[str, str | tuple[int, ...] | list[int]], ...] = ()

    @field_validator("match")
    @classmethod
    def _check_elements(cls, match: tuple[str, ...]) -> tuple[str, ...]:
        for element in match:
            if _ELEMENT.fullmatch(element) is None:
                raise ValueError(f"{element!r} is not an element: a class or A|B, then nothing, ?, * or +")
        return match

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Matches classes that are written as `<DET><N>`; each element is a group."""
        parts = []
        for element in self.match:
            classes, times = _ELEMENT.fullmatch(element).groups()  # type: ignore[union-attr]
            names = "|".join(classes.split("|"))
            parts.append(f"((?:<(?:{names})>){times})")
        return re.compile("".join(parts))


class Forms(Config):
    """How the words of a class are written, by their features."""

    class_: str = Field(alias="class")
    by: tuple[str, ...] = ()
    words: Mapping[str, str] = {}
    endings: Mapping[str, str] = {}


class RuleFile(Config):
    """The contents of a rule file."""

    name: str
    """Languages and purpose, for people."""
    classes: Mapping[str, tuple[str, ...]] = {}
    translations: Mapping[str, str] = {}
    """Translations that replace those of the dictionary."""
    tests: tuple[WordTest, ...] = ()
    features: Mapping[str, Mapping[str, str]] = {}
    """Features of words of closed classes."""
    rules: tuple[Rule, ...] = ()
    forms: tuple[Forms, ...] = ()
    defaults: Mapping[str, str] = {}
    """The value of each feature that nothing has set."""
    contractions: Mapping[str, str] = {}
    evidence: Mapping[str, Mapping[str, Mapping[str, float]]] = {}

    @cached_property
    def class_of(self) -> Mapping[str, str]:
        """The class of each word of a closed class."""
        return {word: name for name, words in self.classes.items() for word in words}


def read_rules(name: str) -> str:
    """The text of a built-in rule file by its name, or of a file by its path. Raises UsageError or DataError."""
    path = BUILT_IN / f"{name}.toml"
    if re.fullmatch(r"[\w-]+", name) is None or not path.is_file():
        path = Path(name)
    if not path.is_file():
        known = ", ".join(sorted(each.stem for each in BUILT_IN.glob("*.toml")))
        raise UsageError(f"model.rules = {name!r} is neither a built-in rule file ({known}) nor a file.")
    text = "".join(line + "\n" for line in read_text(path))
    if len(text.encode()) > MAX_BYTES:
        raise DataError(f"{path} has more than {MAX_BYTES:,} bytes.")
    return text


def parse_rules(text: str, where: str) -> RuleFile:
    """The rules of a file. Raises UsageError for mistakes, with their keys."""
    values = _tuples(parse_toml(text.encode(), where).values)
    try:
        return RuleFile.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise UsageError(f"{where}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error


def _tuples(value: object) -> object:
    """TOML's lists as tuples, as strict settings require."""
    if isinstance(value, dict):
        return {key: _tuples(each) for key, each in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(map(_tuples, value))
    return value
