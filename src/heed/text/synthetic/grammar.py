"""Grammar of the built-in corpus: noun phrases and clauses, inflected and ordered in English and German."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from heed.text.synthetic import words
from heed.text.synthetic.words import ACC, BE, DAT, NOM, NOTHING, PLURAL, Adjective, Noun, Slot, Verb, Words


def _table(text: str) -> list[list[str]]:
    """Rows: nominative, accusative, dative; columns: masculine, feminine, neuter, plural; "-": no ending."""
    return [row.replace("-", "").split(" ") for row in text.split(" / ")]


ARTICLES = _table("der die das die / den die das die / dem der dem den")
_STRONG = _table("er e es e / en e es e / em er em en")
_EIN = _table("- e - e / en e - e / em er em en")
_AFTER_THE = _table("e e e en / en e e en / en en en en")
_AFTER_EIN = _table("er e es en / en e es en / en en en en")
_SHORT = {"in dem": "im", "in das": "ins", "von dem": "vom", "zu dem": "zum", "zu der": "zur"}


class Determiner(NamedTuple):
    """English singular and plural; German stem, its endings, and those of an adjective after it."""

    en: str
    en_plural: str
    de: str
    endings: list[list[str]]
    adjective: list[list[str]]


THE = Determiner("the", "the", "", ARTICLES, _AFTER_THE)
THIS = Determiner("this", "these", "dies", _STRONG, _AFTER_THE)
MANY = Determiner("", "many", "viel", _STRONG, _STRONG)
A = Determiner("a", "", "ein", _EIN, _AFTER_EIN)
NO = A._replace(de="kein")
MY, OUR = A._replace(en="my", en_plural="my", de="mein"), A._replace(en="our", en_plural="our", de="unser")


@dataclass(frozen=True)
class Phrase:
    """A noun phrase or pronoun: English as subject and as object, German in the three cases."""

    en: str
    en_object: str
    de: tuple[str, ...]
    person: str = "it"
    """I, it (any third person), we or they."""
    pronoun: str = ""
    """The key in PRONOUNS of the pronoun that may replace it."""
    noun: Noun | None = None
    indefinite: bool = False
    """With the article "a", which is "kein" where the clause is negated."""


PRONOUNS = {
    key: Phrase(en, en_object, tuple(de), person, key)
    for person, key, en, en_object, *de in (
        ("I", "I", "I", "me", "ich", "mich", "mir"), ("we", "we", "we", "us", "wir", "uns", "uns"),
        ("it", "he", "he", "him", "er", "ihn", "ihm"), ("it", "she", "she", "her", "sie", "sie", "ihr"),
        ("it", "it m", "it", "it", "er", "ihn", "ihm"), ("it", "it f", "it", "it", "sie", "sie", "ihr"),
        ("it", "it n", "it", "it", "es", "es", "ihm"), ("they", "they", "they", "them", "sie", "sie", "ihnen"),
    )
}  # fmt: skip


def decline(noun: Noun, case: int, plural: bool) -> str:
    if plural:
        return noun.de_plural + "n" * (case == DAT and noun.de_plural[-1] not in "ns")
    return noun.de_plural if noun.weak and case != NOM else noun.de


def noun_phrase(determiner: Determiner, adjectives: Sequence[Adjective], noun: Noun, plural: bool = False) -> Phrase:
    """For example "the old dog"."""
    column = PLURAL if plural else noun.gender
    article = determiner.en_plural if plural else determiner.en
    rest = " ".join([*(one.en for one in adjectives), noun.en_plural if plural else noun.en])
    en = f"{article}{'n' * (article == 'a' and rest[0] in 'aeiou')} {rest}"
    de = []
    for case in (NOM, ACC, DAT):
        described = [one.stem + determiner.adjective[case][column] for one in adjectives]
        de.append(" ".join([determiner.de + determiner.endings[case][column], *described, decline(noun, case, plural)]))
    genders = ("he", "she", "") if noun.kind in ("person", "relative") else ("it m", "it f", "it n")
    person, pronoun = ("they", "they") if plural else ("it", genders[noun.gender])
    return Phrase(en, en, tuple(de), person, pronoun, noun, indefinite=determiner in (A, NO))


@dataclass(frozen=True)
class Clause:
    """The content of a clause, without its word order."""

    subject: Phrase
    verb: Verb
    objects: tuple[tuple[Slot, Phrase], ...] = ()
    tense: str = "present"
    """Or past, or future."""
    negated: bool = False
    time: Words = NOTHING
    predicate: Words = NOTHING
    tail: Words = NOTHING
    """What comes last in both languages: "that ...", "to ...", a relative clause."""


def _english_verb(clause: Clause, do: bool) -> tuple[str, str]:
    """The auxiliary, or "", and the rest; `do` asks for an auxiliary in any case."""
    verb, person, past = clause.verb, clause.subject.person, clause.tense == "past"
    if clause.tense == "future":
        return "will", verb.en
    if verb is BE:
        return {"I": ("am", "was"), "it": ("is", "was")}.get(person, ("are", "were"))[past], ""
    if do:
        return "did" if past else "does" if person == "it" else "do", verb.en
    return "", verb.en_past if past else words.third_person(verb.en) if person == "it" else verb.en


def _english_rest(clause: Clause) -> str:
    parts = [clause.verb.particle]
    for slot, phrase in sorted(clause.objects, key=lambda one: bool(one[0].en)):
        at_once = phrase.noun is None and not slot.en  # picked her up
        parts.insert(0 if at_once else len(parts), f"{slot.en} {phrase.en_object}")
    return " ".join([*parts, clause.predicate.en, clause.time.en, clause.tail.en])


def english(clause: Clause, question: bool = False) -> str:
    auxiliary, verb = _english_verb(clause, do=clause.negated or question)
    first, second = (auxiliary, clause.subject.en) if question else (clause.subject.en, auxiliary)
    return f"{first} {second} {'not' * clause.negated} {verb} {_english_rest(clause)}"


_FINITE = {  # ich, er, wir and sie
    "sein": "bin ist sind", "war": "war war waren", "haben": "habe hat haben", "werden": "werde wird werden",
    "wissen": "weiß weiß wissen",
}  # fmt: skip


def _conjugate(verb: str, person: str, third: str = "") -> str:
    forms = _FINITE[verb].split() if verb in _FINITE else [verb.removesuffix("n"), third, verb]
    return forms[{"I": 0, "it": 1}.get(person, 2)]


def _german_verb(clause: Clause) -> tuple[str, str, str]:
    """The finite verb, its separable prefix, and what comes at the end of the clause."""
    verb, person = clause.verb, clause.subject.person
    if clause.tense == "future":
        return _conjugate("werden", person), "", verb.name
    if clause.tense == "past" and verb is BE:
        return _conjugate("war", person), "", ""
    if clause.tense == "past":
        noun = verb.prefix * verb.prefix.endswith(" ")
        return _conjugate(verb.auxiliary, person), "", noun + verb.participle
    return _conjugate(verb.de, person, verb.de_third), verb.prefix, ""


def _with_preposition(preposition: str, phrase: str) -> str:
    article, _, rest = phrase.partition(" ")
    both = f"{preposition} {article}"
    return f"{_SHORT.get(both, both)} {rest}"


def _middle(clause: Clause) -> str:
    """Pronouns, time, dative, accusative, "nicht", objects with a preposition, predicate."""
    bare = [(phrase, phrase.de[slot.case]) for slot, phrase in clause.objects if not slot.de]
    pronouns, others = ([de for phrase, de in bare if (phrase.noun is None) is first] for first in (True, False))
    negation = "nicht" * (clause.negated and not any(phrase.indefinite for phrase, _ in bare))
    prepositional = [_with_preposition(slot.de, phrase.de[slot.case]) for slot, phrase in clause.objects if slot.de]
    return " ".join([*pronouns, clause.time.de, *others, negation, *prepositional, clause.predicate.de])


def german_verb_first(clause: Clause) -> str:
    """The order of a question, and of a statement that starts with something other than its subject."""
    finite, prefix, end = _german_verb(clause)
    return f"{finite} {clause.subject.de[NOM]} {_middle(clause)} {prefix}{end} {clause.tail.de}"


def german(clause: Clause) -> str:
    return f"{clause.subject.de[NOM]} {german_verb_first(replace(clause, subject=replace(clause.subject, de=('',))))}"


def german_verb_last(clause: Clause) -> str:
    finite, prefix, end = _german_verb(clause)
    return f"{clause.subject.de[NOM]} {_middle(clause)} {end} {prefix}{finite} {clause.tail.de}"
