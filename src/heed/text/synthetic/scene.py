"""What has been decided about the sentence under way: whom it addresses, which words it uses, what it shows?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from heed.text.synthetic.clauses import Tense
from heed.text.synthetic.dice import Dice
from heed.text.synthetic.lexicon import (
    ADJECTIVES_OF,
    CITIES,
    FIRST_NAMES,
    LAST_NAMES,
    MONTHS,
    TAGGED,
    TIMES,
    WEEKDAYS,
    Adjective,
    Name,
    Noun,
    Words,
)
from heed.text.synthetic.numerals import english_clock, english_ordinal, german_clock
from heed.text.synthetic.phrases import NOTHING, PRONOUNS, Phrase, name_phrase, titled_name

ADDRESSEES = ((70, "du"), (20, "Sie"), (10, "ihr"))
ADDRESS_SHOWS = {"du": "familiar", "Sie": "polite", "ihr": "familiar_plural"}
GROUPS_ADDRESSED = (Words("friends", "Freunde"), Words("colleagues", "Kollegen"))
TIMES_OF = {kind: tuple(words for tense, words in TIMES if tense == kind) for kind in ("past", "future", "habit")}
DAYTIMES = (Words("morning", "morgen"), Words("afternoon", "nachmittag"), Words("evening", "abend"))


AnyName = TypeVar("AnyName", Name, Words)


class Combination(NamedTuple):
    """Two parts that meet in a sentence: an adjective and its noun, a verb and its object, ..."""

    kind: str
    first: str
    second: str


@dataclass(slots=True)
class Scene:
    dice: Dice
    addressee: str = "du"
    contracted: bool = False  # isn't, don't
    addressed: bool = False  # "you" has been said
    relative_clauses: int = 0
    used: set[str] = field(default_factory=set)  # nouns and names: none comes twice
    described: set[str] = field(default_factory=set)  # nouns which an adjective has been said of
    phenomena: set[str] = field(default_factory=set)
    combinations: list[Combination] = field(default_factory=list)

    def show(self, *phenomena: str) -> None:
        self.phenomena.update(phenomena)

    def combine(self, kind: str, first: str, second: str) -> None:
        self.combinations.append(Combination(kind, first, second))

    # people

    def you(self) -> Phrase:
        """The reader addressed, as du, ihr or Sie; which one, the vocative at the end of the sentence says."""
        self.addressed = True
        return PRONOUNS[self.addressee]

    def first_name(self) -> Phrase:
        self.show("name")
        return name_phrase(self.unused(FIRST_NAMES))

    def titled(self) -> Phrase:
        self.show("name")
        return titled_name(self.unused(LAST_NAMES).en, self.dice.chance(0.5))

    def vocative(self) -> Words:
        """Who was addressed, if anybody: "you" with Mrs Weber is Sie, with friends ihr, with Anna or nobody du."""
        if not self.addressed:
            return NOTHING
        self.addressed = False
        self.show(ADDRESS_SHOWS[self.addressee])
        if self.addressee == "Sie":
            person = self.titled()
            return Words(person.en, person.de[0])
        if self.addressee == "ihr":
            return self.dice.pick(GROUPS_ADDRESSED)
        if self.dice.chance(0.15):
            person = self.first_name()
            return Words(person.en, person.de[0])
        return NOTHING

    def unused(self, names: Sequence[AnyName]) -> AnyName:
        """One of the names, most likely one that the sentence does not have yet."""
        for _ in range(4):
            name = self.dice.pick(names)
            if name.en not in self.used:
                break
        self.used.add(name.en)
        return name

    # nouns and adjectives

    def noun(self, tags: Sequence[str]) -> Noun:
        """A noun of one of the classes, each class as often as the others, not used before."""
        for _ in range(4):
            noun = self.dice.pick(TAGGED[self.dice.pick(tags)])
            if noun.en not in self.used:
                break
        self.used.add(noun.en)
        if "weak" in noun.tags:
            self.show("weak_noun")
        if "compound" in noun.tags:
            self.show("compound")
        return noun

    def adjective(self, noun: Noun, graded: bool = False, colour: bool = True) -> Adjective | None:
        """An adjective that can be said of the noun, as a predicate too; None if there is none or one has been said."""
        fitting = [
            one
            for one in ADJECTIVES_OF[noun.en]
            if one.kind != "ordinal" and (one.graded or not graded) and (colour or one.kind != "colour")
        ]
        if not fitting or noun.en in self.described:
            return None
        chosen = self.dice.pick(fitting)
        self.describe(chosen, noun)
        return chosen

    def describe(self, adjective: Adjective, noun: Noun) -> None:
        """Note that the adjective is said of the noun."""
        self.described.add(noun.en)
        self.combine("adjective+noun", adjective.en, noun.en)

    # places and times

    def city(self) -> Words:
        self.show("name")
        return self.unused(CITIES)

    def time(self, tense: Tense, timed: bool = False) -> Words:
        """When, in keeping with the tense; `timed` allows clock times in the present."""
        past = tense in (Tense.PAST, Tense.PAST_PROGRESSIVE, Tense.PLUPERFECT)
        if tense is Tense.PRESENT:
            return self.clock_time() if timed and self.dice.chance(0.5) else self.dice.pick(TIMES_OF["habit"])
        kind = self.dice.below(10)
        if kind < 2:
            return self.day()
        if kind < 4:
            return self.date(past)
        return self.clock_time() if kind == 4 else self.dice.pick(TIMES_OF["past" if past else "future"])

    def clock_time(self) -> Words:
        """At half past two: um halb drei. Or with digits: at 2:30 pm: um 14:30 Uhr."""
        hour, minute = self.dice.between(1, 12), 5 * self.dice.below(12)
        self.show("clock_time")
        if self.dice.chance(0.7):
            return Words(f"at {english_clock(hour, minute)}", f"um {german_clock(hour, minute)}")
        hour %= 12
        afternoon = hour == 0 or self.dice.chance(0.6)
        en = f"at {hour or 12}:{minute:02} {'pm' if afternoon else 'am'}"
        return Words(en, f"um {hour + 12 if afternoon else hour}:{minute:02} Uhr")

    def day(self) -> Words:
        """On Monday; on Friday evening."""
        day = self.dice.pick(WEEKDAYS)
        self.show("date")
        if self.dice.chance(0.6):
            return Words(f"on {day.en}", f"am {day.de}")
        daytime = self.dice.pick(DAYTIMES)
        return Words(f"on {day.en} {daytime.en}", f"am {day.de}{daytime.de}")

    def date(self, past: bool) -> Words:
        """On May 3rd, in May; in the past also on 3 May 2019, in May 2019, in 1998."""
        self.show("date")
        month, day = self.dice.pick(MONTHS), self.dice.between(1, 28)
        year = self.dice.between(1950, 2023)
        kind = self.dice.below(12 if past else 5)
        if kind < 3:
            return Words(f"on {month.en} {english_ordinal(day)}", f"am {day}. {month.de}")
        if kind < 5:
            return Words(f"in {month.en}", f"im {month.de}")
        if kind < 9:
            return Words(f"on {day} {month.en} {year}", f"am {day}. {month.de} {year}")
        if kind < 11:
            return Words(f"in {month.en} {year}", f"im {month.de} {year}")
        return Words(f"in {year}", f"im Jahr {year}")
