"""Tuning of the weights for BLEU on validation data: n-best lists and line searches in turn (Och 2003).

The n best derivations with the current weights are added to those of earlier rounds, and the weights are improved on
all of them, from the best so far and from random ones. The weights whose own translations have the highest BLEU are
kept. Improved weights are good for the derivations that are known, and lead to others that may be far worse; after such
a round, half as long a step is made from the best weights. The weight of unknown words is not tuned: each derivation
copies nearly the same words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from heed.statistical.derivation import never
from heed.statistical.phrases.bleu import NUM_STATISTICS, bleu, statistics
from heed.statistical.phrases.derivations import PhraseDerivation
from heed.statistical.phrases.features import FEATURES, UNKNOWN
from heed.statistical.phrases.line_search import Candidates, ascend
from heed.statistical.predictor import Floats, Ints

NBEST = 100
_RESTARTS = 3
_RANDOM_DIRECTIONS = 6
_FEWEST_NEW = 0.002
"""Tuning ends when a smaller share of the candidates is new."""

Translate = Callable[[Floats], Iterable[Sequence[PhraseDerivation]]]
"""The n best derivations of each validation sentence with the given weights, one sentence after the other.

Those of all sentences together may need gigabytes."""


Word = tuple[int, ...]
"""A word by its tokens."""
WordsOf = Callable[[tuple[int, ...]], Iterable[Word]]


class Pool:
    """The candidates of all rounds."""

    def __init__(self, references: Sequence[Sequence[Word]], words_of: WordsOf) -> None:
        self.references = references
        self.words_of = words_of
        self._seen: list[set[bytes]] = [set() for _ in references]
        self._features: list[list[Floats]] = [[] for _ in references]
        self._statistics: list[list[Ints]] = [[] for _ in references]
        self._known: list[dict[tuple[int, ...], Ints]] = [{} for _ in references]

    def __len__(self) -> int:
        """The number of candidates."""
        return sum(map(len, self._features))

    def add(self, row: int, derivations: Sequence[PhraseDerivation]) -> None:
        """Add the derivations of a sentence that are new."""
        for each in derivations:
            features = each.features
            key = np.round(features, 4).tobytes()
            if key not in self._seen[row]:
                self._seen[row].add(key)
                self._features[row].append(features)
                self._statistics[row].append(self.statistics(row, each.target))

    def statistics(self, row: int, target: tuple[int, ...]) -> Ints:
        """The statistics of a target, computed once."""
        known = self._known[row]
        if target not in known:
            known[target] = statistics(list(self.words_of(target)), self.references[row])
        return known[target]

    def candidates(self) -> Candidates:
        """The features and statistics of all candidates."""
        lists = zip(self._features, self._statistics, strict=True)
        return Candidates.of([(np.array(features), np.array(counts)) for features, counts in lists if features])


def tune(
    translate: Translate, references: Sequence[Sequence[Word]], words_of: WordsOf, weights: Floats, rounds: int,
    seed: int, report: Callable[[str], None], is_late: Callable[[], bool] = never,
) -> Floats:  # fmt: skip
    """The weights with the best translations of all rounds. `words_of`: the words of the tokens of a target.

    No round begins once `is_late`.
    """
    rng = np.random.default_rng(seed)
    pool = Pool(references, words_of)
    best, best_bleu, step = weights, -1.0, 1.0
    for number in range(rounds + 1):
        sums, num_known = np.zeros(NUM_STATISTICS, dtype=np.int64), len(pool)
        for row, derivations in enumerate(translate(weights)):
            sums += pool.statistics(row, derivations[0].target if derivations else ())
            pool.add(row, derivations)
        value = float(bleu(sums))
        report(f"tuning: round {number}, BLEU of words {value:.2f}")
        if value > best_bleu:
            best, best_bleu, step = weights, value, 1.0
        else:
            step /= 2
        if number == rounds or len(pool) - num_known < _FEWEST_NEW * len(pool):
            break
        if is_late():
            report("tuning: the time limit is reached")
            break
        weights = best + step * (improve(pool.candidates(), best, rng) - best)
    return best


def improve(candidates: Candidates, weights: Floats, rng: np.random.Generator) -> Floats:
    """The weights with the highest BLEU on these candidates, from several beginnings; the sum of sizes is kept."""
    beginnings = [weights, *(weights * rng.uniform(0.3, 1.7, len(weights)) for _ in range(_RESTARTS))]
    reached: list[tuple[float, int, Floats]] = []
    for number, beginning in enumerate(beginnings):
        beginning = _with_fixed(beginning, weights)
        tuned, value = ascend(candidates, beginning, _directions(rng))
        reached.append((value, -number, tuned))
    return _scaled(max(reached, key=lambda each: each[:2])[2], weights)


def _directions(rng: np.random.Generator) -> Floats:
    """Each feature alone, and random ones."""
    tuned = np.arange(len(FEATURES)) != UNKNOWN
    alone = np.eye(len(FEATURES))[tuned]
    mixed = rng.normal(size=(_RANDOM_DIRECTIONS, len(FEATURES))) * tuned
    return np.concatenate([alone, mixed])


def _with_fixed(weights: Floats, fixed: Floats) -> Floats:
    weights = weights.copy()
    weights[UNKNOWN] = fixed[UNKNOWN]
    return weights


def _scaled(weights: Floats, like: Floats) -> Floats:
    tuned = np.arange(len(FEATURES)) != UNKNOWN
    scale = np.abs(like[tuned]).sum() / max(1e-9, np.abs(weights[tuned]).sum())
    return _with_fixed(weights * scale, like)
