"""How does the grammar become a corpus: which sentences are generated, and which are held out?

Four disjoint parts. `train`, `valid` and `test` come from one distribution. `combinations` is harder: each of
its sentences holds at least one combination of two things which never meet in the other three parts, though
each of the two occurs in training many times:

    adjective+noun      "old" is said of "table"
    verb+object         "lesen" has the object "letter"
    separable+clause    the separable verb "anrufen" stands in a clause with "weil"

Which combinations are held out, a checksum of the combination decides (`is_held_out`), so that it depends
neither on the seed nor on the size of the corpus.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from heed.core.errors import StorageError, UsageError
from heed.text.synthetic import descriptions, facts, questions, sentences
from heed.text.synthetic.dice import Dice
from heed.text.synthetic.scene import ADDRESSEES, Combination, Scene
from heed.text.synthetic.wording import Sentence, polish

PATTERNS: tuple[tuple[int, Callable[[Scene], Sentence | None]], ...] = (
    (170, sentences.plain),
    (110, sentences.linked),
    (55, sentences.reported),
    (12, sentences.indirect_question),
    (40, sentences.infinitive),
    (16, sentences.conditional),
    (36, sentences.joined),
    (12, sentences.not_this_but_that),
    (18, sentences.direct_speech),
    (30, sentences.order),
    (10, sentences.proposal),
    (12, sentences.likes_doing),
    (10, sentences.idiom),
    (8, sentences.weather),
    (30, questions.yes_or_no),
    (20, questions.circumstance),
    (10, questions.who_does),
    (14, questions.whom_or_what),
    (12, questions.which),
    (10, questions.about_a_thing),
    (3, questions.is_it_so),
    (26, descriptions.quality),
    (22, descriptions.comparison),
    (10, descriptions.superlative),
    (14, descriptions.profession),
    (30, descriptions.position),
    (14, descriptions.existence),
    (30, descriptions.passive),
    (16, descriptions.taken_up),
    (12, descriptions.where_is_it),
    (10, descriptions.measured),
    (8, facts.age),
    (10, facts.birth),
    (12, facts.price),
    (6, facts.weight),
    (6, facts.duration),
    (4, facts.population),
    (4, facts.distance),
    (4, facts.share),
    (8, facts.opening_hours),
    (10, facts.appointment),
    (4, facts.what_time),
    (10, facts.ever_since),
    (12, facts.because_of),
    (5, facts.temperature),
    (4, facts.set_phrase),
)
WHEEL = tuple(pattern for weight, pattern in PATTERNS for _ in range(weight))
ONE_IN = {"adjective+noun": 14, "verb+object": 14, "separable+clause": 7}  # the share of combinations held out
SHORTEST, LONGEST = 3, 25  # words of a sentence in either language
SPLITS = ("train", "valid", "test", "combinations")


@dataclass(frozen=True)
class Pair:
    """A sentence in English (`src`) and German (`tgt`), and the names of the phenomena that it shows."""

    src: str
    tgt: str
    phenomena: frozenset[str]


@dataclass(frozen=True)
class Corpus:
    """The four parts; no English sentence comes twice."""

    train: tuple[Pair, ...]
    valid: tuple[Pair, ...]
    test: tuple[Pair, ...]
    combinations: tuple[Pair, ...]


@dataclass(frozen=True)
class Draft:
    """A pair with the combinations it holds, some of which may be held out."""

    pair: Pair
    combinations: tuple[Combination, ...]


def is_held_out(combination: Combination) -> bool:
    """Whether a combination occurs in `Corpus.combinations` only."""
    return zlib.crc32("|".join(combination).encode()) % ONE_IN[combination.kind] == 0


def drafts(seed: int) -> Iterator[Draft]:
    """Pairs without end, with what is needed to split them; the same for a seed on every machine."""
    dice = Dice(seed)
    while True:
        draft = write_pair(dice)
        lengths = len(draft.pair.src.split()), len(draft.pair.tgt.split())
        if min(lengths) >= SHORTEST and max(lengths) <= LONGEST:
            yield draft


def write_pair(dice: Dice) -> Draft:
    """One sentence of a random pattern, with the vocative that says who "you" is."""
    sentence = None
    while sentence is None:  # a pattern finds no fitting words now and then
        scene = Scene(dice, dice.weighted(ADDRESSEES), contracted=dice.chance(0.4))
        sentence = dice.pick(WHEEL)(scene)
    vocative = scene.vocative()
    en, de = f"{sentence.en} , {vocative.en}", f"{sentence.de} , {vocative.de}"
    pair = Pair(polish(en, sentence.mark), polish(de, sentence.mark), frozenset(scene.phenomena))
    return Draft(pair, tuple(scene.combinations))


def generate(seed: int) -> Iterator[Pair]:
    """English-German sentence pairs without end, the same for a seed on every machine. Pairs may come again."""
    return (draft.pair for draft in drafts(seed))


def build_corpus(num_train: int = 30_000, num_valid: int = 500, num_test: int = 500, seed: int = 1) -> Corpus:
    """The corpus: distinct pairs, no English sentence in two parts; `combinations` is as large as `test`.

    Raises UsageError for a negative size.
    """
    sizes = (num_train, num_valid, num_test)
    if min(sizes) < 0:
        raise UsageError(f"a part of the built-in corpus cannot have {min(sizes)} pairs: give 0 or more")
    num_pool = sum(sizes)
    pool: list[Pair] = []
    combined: list[Pair] = []
    seen: set[str] = set()
    for draft in drafts(seed):
        if len(pool) == num_pool and len(combined) == num_test:
            break
        part, limit = (combined, num_test) if any(map(is_held_out, draft.combinations)) else (pool, num_pool)
        if len(part) < limit and draft.pair.src not in seen:
            seen.add(draft.pair.src)
            part.append(draft.pair)
    # the first sentences found are the likelier ones: mix before cutting
    mixed = tuple(Dice(seed).shuffled(pool))
    valid_end = num_train + num_valid
    return Corpus(mixed[:num_train], mixed[num_train:valid_end], mixed[valid_end:], tuple(combined))


def write_corpus(folder: Path, corpus: Corpus) -> None:
    """Write train.en, train.de, valid.en and so on: UTF-8, one sentence a line. Raises StorageError."""
    parts: Sequence[tuple[str, tuple[Pair, ...]]] = [(name, getattr(corpus, name)) for name in SPLITS]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, pairs in parts:
            write_lines(folder / f"{name}.en", [pair.src for pair in pairs])
            write_lines(folder / f"{name}.de", [pair.tgt for pair in pairs])
    except OSError as error:
        raise StorageError(f"cannot write the built-in corpus to {folder}: {error}; choose another folder") from error


def write_lines(path: Path, lines: Sequence[str]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)
