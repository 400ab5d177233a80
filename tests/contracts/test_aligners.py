"""Laws of aligners (`heed.nn.contract.Aligner`), checked on members defined here: heed has none of its own yet."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence

import pytest

from heed.nn.contract import Aligner, Links, Pair

THE, BOOK, HOUSE, DAS, BUCH, HAUS, EIN, A = range(8)
PAIRS: list[Pair] = [([THE, HOUSE], [DAS, HAUS]), ([THE, BOOK], [DAS, BUCH]), ([A, BOOK], [EIN, BUCH])]
"""The example of Koehn's "Statistical Machine Translation", section 4.2.2."""


class Lexical:
    """IBM Model 1 without an empty word (Brown et al. 1993): P(t | s) ∝ Π_j Σ_i t(t_j | s_i)."""

    def __init__(self) -> None:
        self.table: defaultdict[tuple[int, int], float] = defaultdict(lambda: 0.25)

    def estimate(self, pairs: Sequence[Pair]) -> None:
        counts: defaultdict[tuple[int, int], float] = defaultdict(float)
        totals: defaultdict[int, float] = defaultdict(float)
        for source, target in pairs:
            for t in target:
                norm = sum(self.table[t, s] for s in source)
                for s in source:
                    counts[t, s] += self.table[t, s] / norm
                    totals[s] += self.table[t, s] / norm
        self.table = defaultdict(float, {(t, s): count / totals[s] for (t, s), count in counts.items()})

    def links(self, pairs: Sequence[Pair]) -> list[Links]:
        return [
            frozenset(
                (max(range(len(source)), key=lambda i: self.table[t, source[i]]), j) for j, t in enumerate(target)
            )
            for source, target in pairs
        ]

    def log_likelihood(self, pairs: Sequence[Pair]) -> float:
        words = ((source, t) for source, target in pairs for t in target)
        return sum(math.log(sum(self.table[t, s] for s in source) / len(source)) for source, t in words)


ALIGNERS: dict[str, Callable[[], Aligner]] = {"lexical": Lexical}
every_aligner = pytest.mark.parametrize("name", ALIGNERS)


@every_aligner
def test_an_iteration_never_lowers_the_likelihood(name: str) -> None:
    aligner, likelihoods = ALIGNERS[name](), []
    for _ in range(8):
        aligner.estimate(PAIRS)
        likelihoods.append(aligner.log_likelihood(PAIRS))
    assert likelihoods == sorted(likelihoods)
    assert likelihoods[-1] > likelihoods[0]


@every_aligner
def test_links_are_positions_of_the_pair(name: str) -> None:
    aligner = ALIGNERS[name]()
    aligner.estimate(PAIRS)
    links = aligner.links(PAIRS)
    assert len(links) == len(PAIRS)
    for (source, target), of_pair in zip(PAIRS, links, strict=True):
        assert all(0 <= i < len(source) and 0 <= j < len(target) for i, j in of_pair)


def test_the_example_of_the_book_is_aligned() -> None:
    aligner = Lexical()
    for _ in range(8):
        aligner.estimate(PAIRS)
    assert aligner.links(PAIRS) == [{(0, 0), (1, 1)}] * 3
