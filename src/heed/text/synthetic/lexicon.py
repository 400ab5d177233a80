"""What is an entry of the built-in corpus's lexicon, and which entries carry a given tag?

The tables of `nouns.py`, `verbs.py` and `words.py` are read here, once, into immutable entries in the order
of the tables; nothing depends on the order of a set or a dictionary of strings.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from heed.text.synthetic import english, german, nouns, verbs, words

GENDERS = {"m": german.MASC, "f": german.FEM, "n": german.NEUT}
CASE_NAMES = {"acc": german.ACC, "dat": german.DAT}


class Words(NamedTuple):
    """The same thing said in both languages."""

    en: str
    de: str


@dataclass(frozen=True, slots=True)
class Noun:
    en: str
    en_plural: str
    de: german.Declined
    column: int  # of a declension: german.MASC, FEM, NEUT
    tags: frozenset[str]

    @property
    def countable(self) -> bool:
        return "mass" not in self.tags


@dataclass(frozen=True, slots=True)
class Slot:
    """A complement that a verb asks for."""

    role: str  # acc, dat, prep, dir, loc, swap
    tags: tuple[str, ...]
    optional: bool = False
    en_preposition: str = ""
    de_preposition: str = ""
    case: int = german.ACC


@dataclass(frozen=True, slots=True)
class Verb:
    en: english.Forms
    de: german.Forms
    subjects: tuple[str, ...] = ("person",)
    slots: tuple[Slot, ...] = ()
    properties: frozenset[str] = field(default_factory=frozenset)

    @property
    def name(self) -> str:
        """The German dictionary form, which tells apart what English does not."""
        words = ("sich" if self.de.reflexive else "", self.de.fixed, self.de.full_infinitive)
        return " ".join(filter(None, words))


@dataclass(frozen=True, slots=True)
class Adjective:
    en: str
    en_comparative: str
    en_superlative: str
    de: str
    de_comparative: str
    de_superlative: str
    tags: tuple[str, ...]
    kind: str

    @property
    def graded(self) -> bool:
        return bool(self.de_comparative)


@dataclass(frozen=True, slots=True)
class Place:
    """A noun with the prepositions that say where and whither: at the station am, to the station zum."""

    noun: Noun
    en_where: str
    de_where: str
    en_whither: str
    de_whither: str


class Country(NamedTuple):
    en: str
    where: str
    whither: str
    whence: str


class Profession(NamedTuple):
    en: str
    man: str
    woman: str


class Measure(NamedTuple):
    """A cup of coffee, two cups of coffee: eine Tasse Kaffee, zwei Tassen Kaffee."""

    noun: Noun
    measured: tuple[Noun, ...]


class Name(NamedTuple):
    en: str
    de: str
    female: bool


def rows(table: str) -> Iterator[list[str]]:
    """The cells of each line that is neither empty nor a comment."""
    for line in table.splitlines():
        if line.strip() and not line.startswith("#"):
            yield [cell.strip() for cell in line.split("|")]


def read_noun(cells: list[str]) -> Noun:
    singular, _, plural = cells[0].partition("/")
    article, nominative = cells[1].split()
    tags = [*cells[4].split(), singular.replace(" ", "_")]
    if "person" in tags and "kin" not in tags:
        tags += ["role", "grown"] if "adult" in tags else ["role"]
    tags += [group for group, members in nouns.GROUPS.items() if any(member in tags for member in members)]
    declined = german.decline(nominative, cells[2], cells[3], weak="weak" in tags)
    en_plural = plural or english.plural(singular)
    return Noun(singular, en_plural, declined, german.ARTICLE_COLUMN[article], frozenset(tags))


def read_slot(text: str) -> Slot:
    optional = text.startswith("?")
    frame, _, tags = text.removeprefix("?").partition(":")
    en_preposition, _, frame = frame.rpartition(">")
    de_preposition, _, case = frame.rpartition("+")
    role = "prep" if de_preposition else case
    return Slot(
        role,
        tuple(tags.split(",")) if tags else (),
        optional,
        en_preposition,
        de_preposition,
        CASE_NAMES.get(case, german.NOM),
    )


def read_verb(cells: list[str]) -> Verb:
    forms, _, tail = (part.strip() for part in cells[0].partition("+"))
    dictionary_form, _, changed_stem = cells[1].partition("/")
    *aux, participle = cells[2].split()
    properties = set(cells[5].split())
    for shorthand, meant in verbs.PROPERTIES.items():
        if shorthand in properties:
            properties.update(meant)
    return Verb(
        english.conjugate(*three(forms.split()), tail),
        german.conjugate(dictionary_form, participle, changed_stem, takes_sein=bool(aux)),
        tuple(cells[3].split()),
        tuple(read_slot(text) for text in cells[4].split()),
        frozenset(properties),
    )


def read_adjective(cells: list[str]) -> Adjective:
    en, en_comparative, en_superlative = three(cells[0].split())
    if en_comparative == "more":
        en_comparative, en_superlative = f"more {en}", f"most {en}"
    de, de_comparative, de_superlative = three(cells[1].split())
    kind = cells[3] if len(cells) > 3 else "quality"
    tags = tuple(cells[2].split())
    return Adjective(en, en_comparative, en_superlative, de, de_comparative, de_superlative, tags, kind)


def three(forms: list[str]) -> tuple[str, str, str]:
    """The first three forms, empty where there are fewer."""
    first, second, third = [*forms, "", ""][:3]
    return first, second, third


def read_impersonal(cells: list[str]) -> tuple[Words, Verb]:
    en, de = english.conjugate(*three(cells[2].split())), german.conjugate(cells[3], cells[4])
    return Words(cells[0], cells[1]), Verb(en, de)


def read_clause_verb(cells: list[str]) -> tuple[str, Verb]:
    """A verb with a clause or an infinitive, and the conjunction, if one is named."""
    verb = read_verb([*cells[:3], "person", "", ""])
    return (cells[3] if len(cells) > 3 else "to"), verb


def read_measure(cells: list[str]) -> Measure:
    singular, plural = cells[1].split()
    declined = german.decline(singular, singular, plural)
    noun = Noun(cells[0], english.plural(cells[0]), declined, GENDERS[cells[2]], frozenset())
    return Measure(noun, tuple(NOUN[name.replace("_", " ")] for name in cells[3].split()))


def read_names(table: str) -> Iterator[Name]:
    for line in table.split("\n"):
        gender, _, names = line.partition(":")
        yield from (Name(name, name, gender == "f") for name in names.split())


def read_words(table: str) -> tuple[Words, ...]:
    return tuple(Words(cells[0], cells[1]) for cells in rows(table))


def read_tagged_words(table: str) -> tuple[tuple[str, Words], ...]:
    return tuple((cells[0], Words(cells[1], cells[2])) for cells in rows(table))


def read_pairs(table: str) -> tuple[Words, ...]:
    """Lines of one word for both languages or of an English and a German word."""
    return tuple(Words(line.split()[0], line.split()[-1]) for line in table.split("\n") if line)


NOUNS = tuple(read_noun(cells) for cells in rows(nouns.NOUNS))
NOUN = {noun.en: noun for noun in NOUNS}
PLACES = tuple(Place(NOUN[cells[0]], *cells[1].split(), *cells[2].split()) for cells in rows(nouns.PLACES))
VERBS = tuple(read_verb(cells) for cells in rows(verbs.VERBS))
IMPERSONAL = tuple(read_impersonal(cells) for cells in rows(verbs.IMPERSONAL))
CLAUSE_VERBS = tuple(read_clause_verb(cells) for cells in rows(verbs.CLAUSE_VERBS))
INFINITIVE_VERBS = tuple(read_clause_verb(cells)[1] for cells in rows(verbs.INFINITIVE_VERBS))
ADJECTIVES = tuple(read_adjective(cells) for cells in rows(words.ADJECTIVES))
FIRST_NAMES = tuple(read_names(words.FIRST_NAMES))
LAST_NAMES = tuple(Words(name, name) for name in words.LAST_NAMES.split())
CITIES = read_pairs(words.CITIES)
WEEKDAYS = read_pairs(words.WEEKDAYS)
MONTHS = read_pairs(words.MONTHS)
MANNERS = read_tagged_words(words.MANNERS)
TIMES = read_tagged_words(words.TIMES)
FREQUENCIES = read_words(words.FREQUENCIES)
SENTENCE_ADVERBS = read_tagged_words(words.SENTENCE_ADVERBS)
PROVERBS = read_words(words.PROVERBS)
GREETINGS = read_words(words.GREETINGS)

COUNTRIES = tuple(Country(*cells) for cells in rows(words.COUNTRIES))
PROFESSIONS = tuple(Profession(*cells) for cells in rows(words.PROFESSIONS))
PARTS = tuple((NOUN[cells[0]], tuple(cells[1].split())) for cells in rows(words.PARTS))
MEASURES = tuple(read_measure(cells) for cells in rows(words.MEASURES))

TAGS = frozenset(tag for noun in NOUNS for tag in noun.tags)
TAGGED = {tag: tuple(noun for noun in NOUNS if tag in noun.tags) for tag in sorted(TAGS)}
ADJECTIVES_OF = {
    noun.en: tuple(adjective for adjective in ADJECTIVES if not noun.tags.isdisjoint(adjective.tags)) for noun in NOUNS
}
PLACES_OF = {tag: tuple(place for place in PLACES if tag in place.noun.tags) for tag in sorted(TAGS)}
