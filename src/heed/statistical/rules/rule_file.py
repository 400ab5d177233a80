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
    set = [{ on = [1, 2], gender = "@3" }]      # features of elements: a value, or another's; or their class
    [features]                      # of single words
    two = { number = "pl" }
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
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from heed.core.config import Config, build
from heed.core.errors import UsageError
from heed.core.toml import Document, read_toml

BUILT_IN = Path(__file__).parent
OTHER = "OTHER"
"""The class of words that pass no test."""
_ELEMENT = re.compile(r"([A-Z_]+(?:\|[A-Z_]+)*)([?*+]?)")
_REFERENCE = re.compile(r"@(\d+)(?:\..+)?", re.ASCII)
_ON = "on"
"""Which elements a setting of a rule is about."""


def _class(name: str) -> str:
    if re.fullmatch("[A-Z_]+", name) is None:
        raise ValueError(f"{name!r} is not a class, which has capital letters from A to Z and _ only")
    return name


ClassName = Annotated[str, AfterValidator(_class)]
SourceWord = Annotated[str, StringConstraints(to_lower=True)]
"""A word of the source, which is compared in lower case."""


class WordTest(Config):
    """A test that gives a word a class."""

    class_: ClassName = Field(alias="class")
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
    set: tuple[Mapping[str, str | tuple[int, ...]], ...] = ()

    @model_validator(mode="after")
    def _check(self) -> Self:
        try:
            self._require_usable()
        except ValueError as error:
            raise ValueError(f"rule {self.name!r}: {error}") from error
        return self

    def _require_usable(self) -> None:
        """Raise ValueError for elements, numbers or settings that cannot be used."""
        for element in self.match:
            if _ELEMENT.fullmatch(element) is None:
                raise ValueError(f"{element!r} is not an element of match: a class or A|B, then nothing, ?, * or +")
        if all(element.endswith(("?", "*")) for element in self.match):
            raise ValueError("all elements of match may be missing, so it would match anywhere: make one required")
        self._require_elements("order", self.order)
        if len({*self.order}) < len(self.order):
            raise ValueError("order has an element twice")
        if self.as_:
            _class(self.as_)
        if self.head:
            self._require_elements("head", (self.head,))
            if not self.as_:
                raise ValueError("head needs `as`, the class of the element that gets the features")
        for setting in self.set:
            self._require_usable_setting(setting)

    def _require_elements(self, key: str, numbers: tuple[int, ...]) -> None:
        for number in numbers:
            if not 1 <= number <= len(self.match):
                raise ValueError(f"{key} names element {number}; match has the elements 1 to {len(self.match)}")

    def _require_usable_setting(self, setting: Mapping[str, str | tuple[int, ...]]) -> None:
        if not setting.keys() - {_ON}:
            raise ValueError("set has an entry that sets nothing: give a feature or a class")
        for name, value in setting.items():
            if isinstance(value, str) == (name == _ON):
                wanted = "a list of elements" if name == _ON else "text"
                raise ValueError(f"set: expected {wanted} for {name}, got {value!r}")
            if not isinstance(value, str):
                self._require_elements("on in set", value)
            elif name == "class":
                _class(value)
            elif value.startswith("@"):
                reference = _REFERENCE.fullmatch(value)
                if reference is None:
                    raise ValueError(
                        f"set: {value!r} is not a reference: @ and an element, such as @3, or with a feature, @3.case"
                    )
                self._require_elements(f"{name} = {value!r} in set", (int(reference[1]),))

    @property
    def classes(self) -> frozenset[str]:
        """The classes that it matches."""
        return frozenset(name for element in self.match for name in element.rstrip("?*+").split("|"))

    @property
    def made(self) -> frozenset[str]:
        """The classes that it gives to what it matches."""
        return frozenset(filter(None, (self.as_, *(str(setting.get("class", "")) for setting in self.set))))

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

    class_: ClassName = Field(alias="class")
    by: tuple[str, ...] = ()
    words: Mapping[str, str] = {}
    endings: Mapping[str, str] = {}

    @model_validator(mode="after")
    def _check(self) -> Self:
        for key in (*self.words, *self.endings):
            if key.count(" ") != max(0, len(self.by) - 1):
                raise ValueError(f"forms of {self.class_}: {key!r} does not have one value for each feature in by")
        return self


class RuleFile(Config):
    """The contents of a rule file."""

    name: str
    """Languages and purpose, for people."""
    classes: Mapping[str, tuple[SourceWord, ...]] = {}
    translations: Mapping[SourceWord, str] = {}
    """Translations that replace those of the dictionary."""
    tests: tuple[WordTest, ...] = ()
    features: Mapping[SourceWord, Mapping[str, str]] = {}
    """Features of single words, of a closed class or not."""
    rules: tuple[Rule, ...] = ()
    forms: tuple[Forms, ...] = ()
    defaults: Mapping[str, str] = {}
    """The value of each feature that nothing has set."""
    contractions: Mapping[str, str] = {}
    evidence: Mapping[str, Mapping[str, Mapping[str, float]]] = {}

    @model_validator(mode="after")
    def _check(self) -> Self:
        given = {*map(_class, self.classes), *(test.class_ for test in self.tests), OTHER}
        given = given.union(*(rule.made for rule in self.rules))
        needed = [(f"rule {rule.name!r}", rule.classes) for rule in self.rules]
        needed += [(f"forms of {each.class_}", frozenset({each.class_})) for each in self.forms]
        for what, names in needed:
            if unknown := sorted(names - given):
                raise ValueError(
                    f"{what}: no word has the class {unknown[0]}; the classes are {', '.join(sorted(given))}"
                )
        return self

    @cached_property
    def class_of(self) -> Mapping[str, str]:
        """The class of each word of a closed class."""
        return {word: name for name, words in self.classes.items() for word in words}


def read_rules(name: str) -> Document:
    """A built-in rule file by its name, or a file by its path. Raises UsageError or MissingInputError."""
    path = BUILT_IN / f"{name}.toml"
    if re.fullmatch(r"[\w-]+", name) is None or not path.is_file():
        path = Path(name)
    if not path.is_file():
        known = ", ".join(sorted(each.stem for each in BUILT_IN.glob("*.toml")))
        raise UsageError(f"model.rules = {name!r} is neither a built-in rule file ({known}) nor a file.")
    return read_toml(path)


def parse_rules(document: Document) -> RuleFile:
    """The rules of a file. Raises UsageError for mistakes, with file, line and rule."""
    return build(RuleFile, document)
