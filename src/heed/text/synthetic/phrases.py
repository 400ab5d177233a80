"""How is a noun phrase built in both languages at once? Building blocks without any choice in them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from heed.text.synthetic import english, german
from heed.text.synthetic.german import (
    ACC,
    CONTRACTIONS,
    DAT,
    DU,
    ER,
    FEM,
    GEN,
    ICH,
    IHR,
    MASC,
    NEUT,
    NOM,
    PLURAL,
    SIE,
    WIR,
)
from heed.text.synthetic.lexicon import Name, Noun, Words

NOTHING = Words("", "")
FourCases = tuple[str, str, str, str]


@dataclass(frozen=True, slots=True)
class Phrase:
    """Somebody or something, ready to stand in any case."""

    en: str  # as subject
    en_object: str
    de: FourCases
    person: int  # of the German verb, german.ICH to german.SIE
    en_person: int  # of the English verb, english.FIRST to english.PLURAL
    column: int  # German gender or plural, for what refers to it
    pronoun: bool = False
    definite: bool = True
    contracts: bool = False  # the definite article may melt into a preposition (im, zum)
    noun: Noun | None = None
    possessive: Words | None = None  # "his", "sein": what belongs to it
    reference: str = ""  # the key in PRONOUNS of the pronoun that takes it up again
    relative: str = ""  # the German relative clause it ends in, with its commas


class Determiner(NamedTuple):
    """`kind` is declined (see german.article); `word` stands before it unchanged: drei, Annas."""

    en: str
    kind: str
    word: str = ""
    definite: bool = True


THE = Determiner("the", "der")
A = Determiner("a", "ein", definite=False)
NO = Determiner("a", "kein", definite=False)
NO_PLURAL = Determiner("any", "kein", definite=False)
BARE = Determiner("", "", definite=False)
THIS = Determiner("this", "dies")
THESE = Determiner("these", "dies")
EVERY = Determiner("every", "jed")
WHICH = Determiner("which", "welch")
ALL = Determiner("all the", "all")
MANY = Determiner("many", "viel", definite=False)
SOME = Determiner("some", "einig", definite=False)


def join(*parts: str) -> str:
    return " ".join(filter(None, parts))


def noun_phrase(
    determiner: Determiner,
    noun: Noun,
    plural: bool = False,
    adjectives: Sequence[Words] = (),
    tail: Words = NOTHING,
    clause: bool = False,
) -> Phrase:
    """Determiner, adjectives and noun agree; `tail` follows the noun in every case.

    `clause` says that the tail is a relative clause.
    """
    column = PLURAL if plural else noun.column
    forms = noun.de.plural if plural else noun.de.singular
    pattern = german.pattern_after(determiner.kind)

    def decline(case: int) -> str:
        described = [german.adjective(adjective.de, pattern, column, case) for adjective in adjectives]
        article = german.article(determiner.kind, column, case)
        return join(determiner.word, article, *described, forms[case], tail.de)

    core = join(*(adjective.en for adjective in adjectives), noun.en_plural if plural else noun.en, tail.en)
    en = english.a_or_an(core) if determiner.en == "a" else join(determiner.en, core)
    reference = reference_to(noun, plural)
    return Phrase(
        en,
        en,
        (decline(NOM), decline(ACC), decline(DAT), decline(GEN)),
        SIE if plural else ER,
        english.PLURAL if plural else english.THIRD,
        column,
        definite=determiner.definite,
        contracts=determiner.kind == "der" and not plural and not clause,
        noun=noun,
        possessive=PRONOUNS[reference].possessive if reference else None,
        reference=reference,
        relative=tail.de if clause else "",
    )


def reference_to(noun: Noun, plural: bool) -> str:
    """The key of the pronoun that refers to a noun: by gender in German, by sex or "it" in English.

    Empty for neuter persons (das Mädchen, das Kind), about whom the two languages disagree.
    """
    if plural:
        return "they"
    if "person" in noun.tags:
        return ("he", "she", "")[noun.column]
    return ("it m", "it f", "it n")[noun.column]


def pronoun(en: str, en_object: str, de: str, possessive: str, person: int, en_person: int, column: int) -> Phrase:
    nominative, accusative, dative = de.split()
    en_possessive, de_possessive = possessive.split()
    key = en if en != "it" else f"it {'mfn'[column]}"
    owned = Words(en_possessive, de_possessive)
    cases = (nominative, accusative, dative, "")
    return Phrase(en, en_object, cases, person, en_person, column, pronoun=True, possessive=owned, reference=key)


PRONOUNS = {
    "I": pronoun("I", "me", "ich mich mir", "my mein", ICH, english.FIRST, MASC),
    "du": pronoun("you", "you", "du dich dir", "your dein", DU, english.YOU, MASC),
    "ihr": pronoun("you", "you", "ihr euch euch", "your euer", IHR, english.YOU, PLURAL),
    "Sie": pronoun("you", "you", "Sie Sie Ihnen", "your Ihr", SIE, english.YOU, PLURAL),
    "he": pronoun("he", "him", "er ihn ihm", "his sein", ER, english.THIRD, MASC),
    "she": pronoun("she", "her", "sie sie ihr", "her ihr", ER, english.THIRD, FEM),
    "we": pronoun("we", "us", "wir uns uns", "our unser", WIR, english.PLURAL, PLURAL),
    "they": pronoun("they", "them", "sie sie ihnen", "their ihr", SIE, english.PLURAL, PLURAL),
    "it m": pronoun("it", "it", "er ihn ihm", "its sein", ER, english.THIRD, MASC),
    "it f": pronoun("it", "it", "sie sie ihr", "its ihr", ER, english.THIRD, FEM),
    "it n": pronoun("it", "it", "es es ihm", "its sein", ER, english.THIRD, NEUT),
}
WHO = Phrase("who", "whom", ("wer", "wen", "wem", "wessen"), ER, english.THIRD, MASC)
WHAT = Phrase("what", "what", ("was", "was", "was", "wessen"), ER, english.THIRD, NEUT)


def name_phrase(name: Name) -> Phrase:
    """A first name: no article; Annas in the genitive."""
    de = (name.de, name.de, name.de, german.genitive_name(name.de))
    reference = "she" if name.female else "he"
    column = FEM if name.female else MASC
    owned = PRONOUNS[reference].possessive
    return Phrase(name.en, name.en, de, ER, english.THIRD, column, possessive=owned, reference=reference)


def titled_name(last_name: str, female: bool) -> Phrase:
    """Mrs Weber, Frau Weber; Mr Weber, Herr Weber, but Herrn Weber in the other cases."""
    en = f"{'Mrs' if female else 'Mr'} {last_name}"
    reference = "she" if female else "he"
    oblique = f"{'Frau' if female else 'Herrn'} {last_name}"
    genitive = german.genitive_name(oblique)
    de = (f"{'Frau' if female else 'Herr'} {last_name}", oblique, oblique, genitive)
    owned = PRONOUNS[reference].possessive
    return Phrase(en, en, de, ER, english.THIRD, FEM if female else MASC, possessive=owned, reference=reference)


def coordinate(first: Phrase, second: Phrase) -> Phrase:
    """Two joined by "and": plural; "my brother and I" takes the verb of "we"."""
    nominative, accusative, dative, genitive = (
        join(left, "und", right) for left, right in zip(first.de, second.de, strict=True)
    )
    reference = "we" if ICH in (first.person, second.person) else "they"
    return Phrase(
        f"{first.en} and {second.en}",
        f"{first.en_object} and {second.en_object}",
        (nominative, accusative, dative, genitive),
        PRONOUNS[reference].person,
        english.PLURAL,
        PLURAL,
        possessive=PRONOUNS[reference].possessive,
        reference=reference,
    )


def owned_by(possessor: Phrase) -> Determiner:
    """The determiner "his", "sein" of what belongs to somebody already named."""
    assert possessor.possessive is not None
    return Determiner(possessor.possessive.en, possessor.possessive.de)


def with_preposition(preposition: str, case: int, phrase: Phrase) -> str:
    """A German prepositional phrase; "in" with "dem Park" is "im Park"."""
    words = phrase.de[case]
    if phrase.contracts:
        article, _, rest = words.partition(" ")
        if (preposition, article) in CONTRACTIONS:
            return f"{CONTRACTIONS[preposition, article]} {rest}"
    return f"{preposition} {words}"


def genitive_tail(possessor: Phrase) -> Words:
    """What follows the noun for a possessor that English puts before it: "des Lehrers"."""
    return Words("", possessor.de[GEN])
