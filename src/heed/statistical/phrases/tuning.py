"""Tuning of the weights for BLEU on validation data: n-best lists and better weights in turn (Och 2003).

The n best derivations with the current weights are added to those of earlier rounds, and the weights are improved on
all of them by line searches, from the best so far and from random ones. The weights whose own translations have the
highest BLEU are kept. Improved weights are good for the derivations that are known, and lead to others that may be far
worse. So the first step, and one after a round that was worse, is a careful one, from the best weights to a higher BLEU
of expected counts close to them. The weight of unknown words is not tuned: each derivation copies nearly the same
words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from heed.statistical.derivation import never
from heed.statistical.phrases.bleu import NUM_STATISTICS, bleu, statistics
from heed.statistical.phrases.candidates import Candidates
from heed.statistical.phrases.derivations import PhraseDerivation
from heed.statistical.phrases.expected_bleu import maximise
from heed.statistical.phrases.features import UNKNOWN
from heed.statistical.phrases.line_search import ascend
from heed.statistical.predictor import Bools, Floats, Ints

NBEST = 100
_RESTARTS = 3
_RANDOM_DIRECTIONS = 6
_FEWEST_NEW = 0.002
"""After a line search, a smaller share of new candidates ends the tuning."""
_FIRST_SEARCH = 1
"""The round after which a line search may follow: the n-best lists of one round are too few for it."""
_PENALTY = 0.1
"""λ of `heed.statistical.phrases.expected_bleu`; four times as much after each further round that is worse."""

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
    best, best_bleu, num_worse, searched = weights, -1.0, 0, False
    for number in range(rounds + 1):
        sums, num_known = np.zeros(NUM_STATISTICS, dtype=np.int64), len(pool)
        for row, derivations in enumerate(translate(weights)):
            sums += pool.statistics(row, derivations[0].target if derivations else ())
            pool.add(row, derivations)
        value = float(bleu(sums))
        report(f"tuning: round {number}, BLEU of words {value:.2f}")
        if value > best_bleu:
            best, best_bleu, num_worse = weights, value, 0
        else:
            num_worse += 1
        is_new = len(pool) - num_known >= _FEWEST_NEW * len(pool)
        if number == rounds or not len(pool) or (searched and not is_new):
            break
        if is_late():
            report("tuning: the time limit is reached")
            break
        searched = number >= _FIRST_SEARCH and (not num_worse or not is_new)
        if searched:
            weights = improve(pool.candidates(), best, rng)
        else:
            weights = _scaled(
                maximise(pool.candidates(), best, _are_tuned(best), _PENALTY * 4 ** max(0, num_worse - 1)), best
            )
    return best


def improve(candidates: Candidates, weights: Floats, rng: np.random.Generator) -> Floats:
    """The weights with the highest BLEU on these candidates, from several beginnings; the sum of sizes is kept."""
    beginnings = [weights, *(weights * rng.uniform(0.3, 1.7, len(weights)) for _ in range(_RESTARTS))]
    reached: list[tuple[float, int, Floats]] = []
    for number, beginning in enumerate(beginnings):
        beginning = _with_fixed(beginning, weights)
        tuned, value = ascend(candidates, beginning, _directions(rng, _are_tuned(weights)))
        reached.append((value, -number, tuned))
    return _scaled(max(reached, key=lambda each: each[:2])[2], weights)


def _are_tuned(weights: Floats) -> Bools:
    """Which of the weights are tuned."""
    return np.asarray(np.arange(len(weights)) != UNKNOWN)


def _directions(rng: np.random.Generator, are_tuned: Bools) -> Floats:
    """Each feature alone, and random ones."""
    alone = np.eye(len(are_tuned))[are_tuned]
    mixed = rng.normal(size=(_RANDOM_DIRECTIONS, len(are_tuned))) * are_tuned
    return np.concatenate([alone, mixed])


def _with_fixed(weights: Floats, fixed: Floats) -> Floats:
    weights = weights.copy()
    weights[UNKNOWN] = fixed[UNKNOWN]
    return weights


def _scaled(weights: Floats, like: Floats) -> Floats:
    tuned = _are_tuned(like)
    scale = np.abs(like[tuned]).sum() / max(1e-9, np.abs(weights[tuned]).sum())
    return _with_fixed(weights * scale, like)
