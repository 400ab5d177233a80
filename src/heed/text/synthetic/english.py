"""How are English words inflected? Plurals, verb forms, comparatives, a or an."""

from __future__ import annotations

from typing import NamedTuple

VOWELS = "aeiou"
DOUBLED = ("forget", "begin", "travel")  # polysyllables whose last consonant is doubled
A_DESPITE_VOWEL = ("uni", "use", "eu", "one")
AN_DESPITE_CONSONANT = ("hour", "honest")

FIRST, YOU, THIRD, PLURAL = range(4)  # what an English verb agrees with
BE = {"present": ("am", "are", "is", "are"), "past": ("was", "were", "was", "were")}
NEGATED = {"can": "cannot"}
CONTRACTED = {
    "is": "isn't",
    "are": "aren't",
    "was": "wasn't",
    "were": "weren't",
    "do": "don't",
    "does": "doesn't",
    "did": "didn't",
    "has": "hasn't",
    "have": "haven't",
    "had": "hadn't",
    "will": "won't",
    "would": "wouldn't",
    "can": "can't",
    "could": "couldn't",
    "should": "shouldn't",
    "must": "mustn't",
}


class Forms(NamedTuple):
    """An English verb; `tail` is what follows it unchanged: "up", "the piano"."""

    base: str
    third: str
    past: str
    participle: str
    ing: str
    tail: str = ""


def conjugate(base: str, past: str = "", participle: str = "", tail: str = "") -> Forms:
    """All forms of a verb; the past and the participle are derived where they are not given."""
    if base == "be":
        past, participle = "was", "been"
    past = past or past_form(base)
    return Forms(base, third_person(base), past, participle or past, ing_form(base), tail)


def plural(noun: str) -> str:
    """books, boxes, parties, days."""
    if noun.endswith("y") and noun[-2] not in VOWELS:
        return f"{noun[:-1]}ies"
    return noun + ("es" if noun.endswith(("s", "x", "z", "ch", "sh")) else "s")


def third_person(base: str) -> str:
    """reads, carries, washes, goes, has, is."""
    special = {"have": "has", "be": "is"}
    if base in special:
        return special[base]
    return f"{base}es" if base.endswith("o") else plural(base)


def doubles(base: str) -> bool:
    """Whether the last consonant is doubled before -ed and -ing: plan, run, travel, but not look, show, open."""
    if base in DOUBLED:
        return True
    vowels = sum(letter in VOWELS for letter in base)
    return vowels == 1 and base[-1] not in VOWELS + "wxy" and base[-2] in VOWELS


def ing_form(base: str) -> str:
    """writing, running, being, seeing."""
    if base.endswith("e") and base[-2] not in "eo" and base != "be":
        return f"{base[:-1]}ing"
    return f"{base}{base[-1]}ing" if doubles(base) else f"{base}ing"


def past_form(base: str) -> str:
    """called, loved, tidied, planned."""
    if base.endswith("e"):
        return f"{base}d"
    if base.endswith("y") and base[-2] not in VOWELS:
        return f"{base[:-1]}ied"
    return f"{base}{base[-1]}ed" if doubles(base) else f"{base}ed"


def a_or_an(phrase: str) -> str:
    """The phrase with its indefinite article: an old car, a university, an hour."""
    word = phrase.lower()
    an = word[0] in VOWELS and not word.startswith(A_DESPITE_VOWEL)
    return ("an " if an or word.startswith(AN_DESPITE_CONSONANT) else "a ") + phrase


def genitive(noun_phrase: str, plural: bool = False) -> str:
    """the teacher's, the teachers', Thomas's."""
    return f"{noun_phrase}'" if plural and noun_phrase.endswith("s") else f"{noun_phrase}'s"


def negate(operator: str, contracted: bool) -> str:
    """The finite auxiliary with its "not": is not, isn't, cannot."""
    if contracted and operator in CONTRACTED:
        return CONTRACTED[operator]
    return NEGATED.get(operator, f"{operator} not")
