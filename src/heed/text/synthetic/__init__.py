"""Built-in corpus: English-German sentence pairs from a small grammar, for `heed demo` and the benchmarks.

`train`, `valid` and `test` have one distribution. `combinations` is harder: each of its sentences contains two words
that never occur together in the other parts, though each is frequent in training: an adjective and a noun ("old",
"table"), a verb and its object ("lesen", "letter"), or a conjunction and a separable verb ("weil", "anrufen").
A checksum of the combination decides whether it is held out, whatever the seed and the size of the corpus.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, TypeVar

from heed.core.errors import StorageError, UsageError
from heed.text.synthetic import grammar as g
from heed.text.synthetic import words as w
from heed.text.synthetic.words import NOTHING, Noun, Slot, Verb, Words

T = TypeVar("T")
PEOPLE = ("person", "relative")
TENSES = ("past", "past", "present", "future")
HELD_OUT_ONE_IN = {"adjective+noun": 14, "verb+object": 14, "separable+clause": 7}


class Combination(NamedTuple):
    """Two words that occur together in a sentence."""

    kind: str  # a key of HELD_OUT_ONE_IN
    first: str
    second: str

    @property
    def held_out(self) -> bool:
        """Whether it occurs in `Corpus.combinations` only."""
        return zlib.crc32("|".join(self).encode()) % HELD_OUT_ONE_IN[self.kind] == 0


class Sentence:
    """One random sentence in both languages (`en`, `de`) and the combinations that it contains."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._used: set[Noun] = set()
        self.combinations: set[Combination] = set()
        patterns = [self._plain] * 4 + [self._linked] * 4 + [self._reported, self._relative] * 2 + [self._question]
        self.en, self.de = map(_polish, self._pick(patterns)())

    def _pick(self, options: Sequence[T]) -> T:
        return options[int(self._rng.random() * len(options))]

    def _chance(self, probability: float) -> bool:
        return self._rng.random() < probability

    def _noun_phrase(self, kinds: Sequence[str], negated: bool = False) -> g.Phrase:
        """A noun with its article and often an adjective; no noun comes twice in a sentence."""
        noun = self._pick([one for one in w.NOUNS if one.kind in kinds and one not in self._used])
        self._used.add(noun)
        if noun.kind == "relative":
            determiner = self._pick((g.MY, g.OUR))
        else:
            determiner = self._pick((g.THE, g.THE, g.THE, g.THIS, g.MY, g.MANY, g.NO if negated else g.A))
        plural = determiner is g.MANY or (determiner in (g.THE, g.THIS) and self._chance(0.3))
        fitting = [one for one in w.ADJECTIVES if noun.kind in one.kinds]
        adjectives = [self._pick(fitting)] if self._chance(0.4) else []
        self.combinations |= {Combination("adjective+noun", one.en, noun.en) for one in adjectives}
        return g.noun_phrase(determiner, adjectives, noun, plural)

    def _name(self) -> g.Phrase:
        pronoun = self._pick(("he", "she"))
        name = self._pick(w.NAMES[pronoun])
        return g.Phrase(name, name, (name, name, name), pronoun=pronoun)

    def _subject(self) -> g.Phrase:
        if self._chance(0.4):
            return self._name() if self._chance(0.5) else g.PRONOUNS[self._pick(("I", "he", "she", "we", "they"))]
        return self._noun_phrase(PEOPLE)

    def _object(self, verb: Verb, slot: Slot, negated: bool) -> g.Phrase:
        if slot.kinds[0] == "person" and self._chance(0.2):
            return self._name() if self._chance(0.5) else g.PRONOUNS[self._pick(("he", "she", "they"))]
        phrase = self._noun_phrase(slot.kinds, negated and slot.case == w.ACC and not slot.de)
        return self._meets(verb, phrase)

    def _meets(self, verb: Verb, phrase: g.Phrase) -> g.Phrase:
        self.combinations |= {Combination("verb+object", verb.name, phrase.noun.en)} if phrase.noun else set()
        return phrase

    def _clause(self, tense: str, subject: g.Phrase, timed: float = 0.2) -> g.Clause:
        """A clause with a verb and its objects."""
        separable = self._chance(0.2)
        verb = self._pick([one for one in w.VERBS if one.prefix or not separable])
        negated = self._chance(0.12)
        time = self._pick(w.TIMES[tense]) if self._chance(timed) else NOTHING
        objects = tuple((slot, self._object(verb, slot, negated)) for slot in verb.slots)
        return g.Clause(subject, verb, objects, tense, negated, time)

    def _quality(self, tense: str, subject: g.Phrase) -> g.Clause:
        """A clause with an adjective: somebody or something is tired or very tired."""
        kind = subject.noun.kind if subject.noun else "person"
        adjective = self._pick([one for one in w.ADJECTIVES if kind in one.kinds])
        manner = self._pick((NOTHING, NOTHING, Words("very", "sehr")))
        predicate = Words(f"{manner.en} {adjective.en}", f"{manner.de} {adjective.de}")
        return g.Clause(subject, w.BE, tense=tense, negated=self._chance(0.1), predicate=predicate)

    def _sub_clause(self, conjunction: Words, clause: g.Clause) -> Words:
        if clause.verb.prefix:
            self.combinations.add(Combination("separable+clause", clause.verb.name, conjunction.de))
        return Words(f"{conjunction.en} {g.english(clause)}", f"{conjunction.de} {g.german_verb_last(clause)}")

    def _plain(self) -> Words:
        clause = self._clause(self._pick(TENSES), self._subject(), timed=0.7)
        if not clause.time.en or self._chance(0.6):
            return Words(g.english(clause), g.german(clause))
        rest = replace(clause, time=NOTHING)
        return Words(f"{clause.time.en} {g.english(rest)}", f"{clause.time.de} {g.german_verb_first(rest)}")

    def _linked(self) -> Words:
        """Main clause and sub-clause in either order; the second often refers to the subject of the first."""
        tense, sub_first, subject = self._pick(TENSES), self._chance(0.4), self._subject()
        sub_tense = "past" if tense == "past" else "present"
        conjunction = self._pick(w.CONJUNCTIONS[sub_tense])
        again = g.PRONOUNS[subject.pronoun] if subject.pronoun and self._chance(0.6) else self._subject()
        main = self._clause(tense, again if sub_first else subject)
        sub_subject = subject if sub_first else again
        things = [phrase for _, phrase in main.objects if phrase.pronoun.startswith("it")]
        if conjunction.en not in ("because", "although") or self._chance(0.5):
            sub = self._clause(sub_tense, sub_subject, timed=0.1)
        elif things and not sub_first:  # the book ... because it was long
            sub = self._quality(sub_tense, replace(g.PRONOUNS[things[-1].pronoun], noun=things[-1].noun))
        else:
            sub = self._quality(sub_tense, sub_subject)
        link = self._sub_clause(conjunction, sub)
        if sub_first:
            return Words(f"{link.en} , {g.english(main)}", f"{link.de} , {g.german_verb_first(main)}")
        return Words(f"{g.english(main)} {link.en}", f"{g.german(main)} , {link.de}")

    def _with_tail(self, clause: g.Clause, en: str, de: str) -> Words:
        clause = replace(clause, tail=Words(en, f", {de}"))
        return Words(g.english(clause), g.german(clause))

    def _reported(self) -> Words:
        tense, subject = self._pick(("present", "past")), self._subject()
        inner = self._clause(tense, subject) if self._chance(0.7) else self._quality(tense, subject)
        outer = g.Clause(self._subject(), self._pick(w.THAT_VERBS), tense=tense)
        return self._with_tail(outer, *self._sub_clause(Words("that", "dass"), inner))

    def _relative(self) -> Words:
        """The last object with a clause: the children who play football, the letter that Anna wrote."""
        main = self._clause(self._pick(TENSES), self._subject(), timed=0)
        phrase = main.objects[-1][1] if main.objects else main.subject
        if phrase.noun is None or phrase is main.subject or main.objects[-1][0].case == w.DAT:
            self.combinations.clear()
            return self._plain()
        column = w.PLURAL if phrase.person == "they" else phrase.noun.gender
        if phrase.noun.kind in PEOPLE:
            who = g.Phrase("who", "who", (g.ARTICLES[w.NOM][column],), phrase.person)
            inner = self._clause("past" if main.tense == "past" else "present", who)
            return self._with_tail(main, g.english(inner), g.german_verb_last(inner))
        direct = [one for one in w.VERBS if len(one.slots) == 1 and one.slots[0][:3] == ("", "", w.ACC)]
        verb = self._pick([one for one in direct if phrase.noun.kind in one.slots[0].kinds])
        self._meets(verb, phrase)
        inner = g.Clause(self._subject(), verb, tense="past")
        de = f"{g.ARTICLES[w.ACC][column]} {g.german_verb_last(inner)}"
        return self._with_tail(main, f"that {g.english(inner)}", de)

    def _question(self) -> Words:
        clause = self._clause(self._pick(TENSES), self._subject())
        why = self._pick((NOTHING, Words("why", "warum")))
        return Words(f"{why.en} {g.english(clause, question=True)}?", f"{why.de} {g.german_verb_first(clause)}?")


def _polish(text: str) -> str:
    text = " ".join(text.split()).replace(" ,", ",").replace(" ?", "?")
    return text[0].upper() + text[1:] + ("" if text.endswith("?") else ".")


class Pair(NamedTuple):
    src: str  # English
    tgt: str  # German


class Corpus(NamedTuple):
    """The four parts; no English sentence occurs twice."""

    train: tuple[Pair, ...]
    valid: tuple[Pair, ...]
    test: tuple[Pair, ...]
    combinations: tuple[Pair, ...]


def build_corpus(num_train: int = 30_000, num_valid: int = 500, num_test: int = 500, seed: int = 1) -> Corpus:
    """Build the corpus; `combinations` is as large as `test`. Raises UsageError for a negative size."""
    if (fewest := min(num_train, num_valid, num_test)) < 0:
        raise UsageError(f"the size of a part of the built-in corpus is {fewest}; give 0 or more")
    num_pool = num_train + num_valid + num_test
    pool: dict[str, Pair] = {}
    combined: dict[str, Pair] = {}
    rng = random.Random(seed)
    while len(pool) < num_pool or len(combined) < num_test:
        sentence = Sentence(rng)
        part, limit = (combined, num_test) if any(one.held_out for one in sentence.combinations) else (pool, num_pool)
        if len(part) < limit:
            part.setdefault(sentence.en, Pair(sentence.en, sentence.de))
    # short sentences come early, since they repeat later: shuffle before cutting
    mixed = list(pool.values())
    rng.shuffle(mixed)
    train, valid, test = mixed[:num_train], mixed[num_train : num_train + num_valid], mixed[num_train + num_valid :]
    return Corpus(tuple(train), tuple(valid), tuple(test), tuple(combined.values()))


def write_corpus(folder: Path, corpus: Corpus, overwrite: bool = False) -> None:
    """Write train.en, train.de, valid.en and so on: UTF-8, one sentence a line.

    Raises StorageError, and UsageError for files that have other text, unless `overwrite`.
    """
    files = {
        folder / f"{name}.{language}": "".join(f"{getattr(pair, side)}\n" for pair in pairs).encode()
        for name, pairs in corpus._asdict().items()
        for language, side in (("en", "src"), ("de", "tgt"))
    }
    try:
        if not overwrite and (others := [path for path, text in files.items() if _has_other_text(path, text)]):
            raise UsageError(
                f"{others[0]} is a file with other text. Name another folder, or replace the file with --overwrite."
            )
        folder.mkdir(parents=True, exist_ok=True)
        for path, text in files.items():
            path.write_bytes(text)
    except OSError as error:
        raise StorageError(f"cannot write the built-in corpus to {folder}: {error}; choose another folder") from error


def _has_other_text(path: Path, text: bytes) -> bool:
    return path.exists() and path.read_bytes() != text
