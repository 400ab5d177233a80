"""Derivations: which phrase became which, with the value of each feature; the n best of a search.

The ways to a hypothesis and the n best ways to each of its parents give its n best derivations, lazily (Huang & Chiang
2005, algorithm 3).
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from heed.statistical.phrases.extraction import DISCONTINUOUS, MONOTONE
from heed.statistical.phrases.features import AFTER, BEFORE, DISTORTION, FEATURES, LANGUAGES, NUM_STATIC
from heed.statistical.phrases.options import COPIED
from heed.statistical.phrases.search import SearchGraph, Stack
from heed.statistical.predictor import Floats


@dataclass(frozen=True)
class PhraseApplication:
    """A source phrase that became a target phrase; the last step is the end of the sentence."""

    begin: int
    end: int
    """The source words, by position."""
    target: tuple[int, ...]
    row: int
    """Its row in the table, or COPIED."""
    features: tuple[float, ...]
    """In the order of the translator's weights."""


@dataclass(frozen=True, eq=False)
class PhraseDerivation:
    """A translation, how it came about, and its score."""

    target: tuple[int, ...]
    score: float
    steps: tuple[PhraseApplication, ...]

    @property
    def features(self) -> Floats:
        """The sum of the features of all steps."""
        return np.asarray(np.sum([step.features for step in self.steps], axis=0))


_Way = tuple[int, int]
"""A way to a hypothesis by its place in its stack, and which of the derivations of its parent it extends."""


@dataclass
class _Node:
    """The derivations of one hypothesis, as many as were asked for, the best first."""

    found: list[tuple[float, _Way]]
    waiting: list[tuple[float, _Way]]
    """A heap of the next candidates, with negative scores."""


class BestDerivations:
    """The derivations of a finished search, the best first."""

    def __init__(self, graph: SearchGraph) -> None:
        self.graph = graph
        self._nodes: dict[tuple[int, int], _Node] = {}
        self._firsts = [stack.first for stack in graph.stacks]
        self._applications: dict[tuple[int, bytes], PhraseApplication] = {}

    def __iter__(self) -> Iterator[PhraseDerivation]:
        """All derivations that the search kept."""
        last = len(self.graph.stacks) - 1
        ends = self.graph.ends.tolist()
        heap: list[tuple[float, int, int]] = []
        for place, end in enumerate(ends):
            if (score := self._score((last, place), 0)) is not None:
                heap.append((-score - end, place, 0))
        heapq.heapify(heap)
        while heap:
            negative, place, rank = heapq.heappop(heap)
            yield self._derivation((last, place), rank, -negative)
            if (score := self._score((last, place), rank + 1)) is not None:
                heapq.heappush(heap, (-score - ends[place], place, rank + 1))

    def _score(self, key: tuple[int, int], rank: int) -> float | None:
        """The score of a derivation of a hypothesis, at most the first one not yet found; None if there is none.

        Before the next derivation of a hypothesis is found, its parent may need one more, and so on. They are in a
        list, since a long line has more phrases than Python has levels of recursion.
        """
        incomplete: list[tuple[int, int]] = []
        while key[0] and rank and len((node := self._node(key)).found) <= rank:
            incomplete.append(key)
            _, (way, above) = node.found[-1]
            key, rank = self._parent(key[0], way), above + 1
        score = self._known(key, rank)
        for child in reversed(incomplete):
            score = self._next(child, score)
        return score

    def _known(self, key: tuple[int, int], rank: int) -> float | None:
        """The score of a derivation that was found; the empty hypothesis has one."""
        if rank == 0:
            return self._best(key)
        return self._node(key).found[rank][0] if key[0] else None

    def _node(self, key: tuple[int, int]) -> _Node:
        """The best way of each hypothesis is the first, with the best derivation of its parent."""
        if key not in self._nodes:
            stack = self.graph.stacks[key[0]]
            begin, end = stack.bounds[key[1]], stack.bounds[key[1] + 1]
            ranked = [(-score, (way, 0)) for way, score in enumerate(stack.ways.scores[begin:end].tolist(), begin)]
            self._nodes[key] = _Node([(-ranked[0][0], ranked[0][1])], ranked[1:])
        return self._nodes[key]

    def _next(self, key: tuple[int, int], of_parent: float | None) -> float | None:
        """Find the next derivation of a hypothesis and return its score; None if there is none.

        `of_parent`: the score of the derivation of the parent that follows the one in the last derivation found.
        """
        node = self._node(key)
        if of_parent is not None:
            _, (way, above) = node.found[-1]
            step = float(self.graph.stacks[key[0]].ways.scores[way]) - self._best(self._parent(key[0], way))
            heapq.heappush(node.waiting, (-of_parent - step, (way, above + 1)))
        if not node.waiting:
            return None
        negative, place = heapq.heappop(node.waiting)
        node.found.append((-negative, place))
        return -negative

    def _parent(self, level: int, way: int) -> tuple[int, int]:
        number = int(self.graph.stacks[level].ways.parents[way])
        above = bisect_right(self._firsts, number, hi=level) - 1
        return above, number - self.graph.stacks[above].first

    def _best(self, key: tuple[int, int]) -> float:
        if key[0] == 0:
            return 0.0
        stack: Stack = self.graph.stacks[key[0]]
        return float(stack.ways.scores[stack.bounds[key[1]]])

    def _derivation(self, key: tuple[int, int], rank: int, score: float) -> PhraseDerivation:
        end = self.graph.end_language[key[1]]
        places: list[tuple[int, int]] = []
        while key[0]:
            way, above = self._node(key).found[rank][1] if rank else (int(self.graph.stacks[key[0]].bounds[key[1]]), 0)
            places.append((key[0], way))
            key, rank = self._parent(key[0], way), above
        steps = self._steps(places[::-1], end)
        return PhraseDerivation(tuple(word for step in steps for word in step.target), score, steps)

    def _steps(self, places: list[tuple[int, int]], end_language: Floats) -> tuple[PhraseApplication, ...]:
        options = self.graph.options
        ways = [(self.graph.stacks[level].ways, way) for level, way in places]
        chosen = np.array([each.options[way] for each, way in ways])
        turns = [int(each.turns[way]) for each, way in ways]
        features = np.zeros((len(ways) + 1, len(FEATURES) - 1 + len(end_language)))
        features[:-1, :NUM_STATIC] = options.static[chosen]
        of_languages = list(LANGUAGES[: len(end_language)])
        features[:-1, of_languages] = [each.language[way] for each, way in ways]
        features[-1, of_languages] = end_language
        ends = [0, *options.ends[chosen].tolist()]
        features[:-1, DISTORTION] = -np.abs(options.begins[chosen] - ends[:-1])
        turns.append(MONOTONE if ends[-1] == options.num_words else DISCONTINUOUS)
        for place, (option, turn) in enumerate(zip(chosen.tolist(), turns, strict=False)):
            features[place, BEFORE + turn] = options.turns[option, turn]
            features[place, AFTER + turns[place + 1]] = options.turns[option, AFTER - BEFORE + turns[place + 1]]
        end = PhraseApplication(options.num_words, options.num_words, (), COPIED, tuple(features[-1].tolist()))
        return (*(self._step(option, row) for option, row in zip(chosen.tolist(), features, strict=False)), end)

    def _step(self, option: int, features: Floats) -> PhraseApplication:
        """The application of an option, shared by all derivations with the same one."""
        key = option, features.tobytes()
        if key not in self._applications:
            self._applications[key] = self._new_step(option, features)
        return self._applications[key]

    def _new_step(self, option: int, features: Floats) -> PhraseApplication:
        options = self.graph.options
        target = tuple(options.words[option, : options.lengths[option]].tolist())
        begin, end = int(options.begins[option]), int(options.ends[option])
        return PhraseApplication(begin, end, target, int(options.rows[option]), tuple(features.tolist()))
