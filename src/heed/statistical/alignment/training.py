"""From two texts to aligners of both directions, and to links.

An aligner with `before` begins with the table of simpler ones, which are estimated first (Och & Ney 2003, section 4.4).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np

from heed.core.errors import UsageError
from heed.statistical.alignment.aligner import Aligner, in_order
from heed.statistical.alignment.diagonal import Diagonal
from heed.statistical.alignment.hmm import Hmm
from heed.statistical.alignment.hmm_ibm3 import HmmIbm3
from heed.statistical.alignment.ibm1 import Ibm1
from heed.statistical.alignment.ibm2 import Ibm2
from heed.statistical.alignment.ibm3 import Ibm3
from heed.statistical.alignment.ibm4 import Ibm4
from heed.statistical.alignment.ibm5 import Ibm5
from heed.statistical.alignment.pairs import FIRST, Links, SentencePairs, Words
from heed.statistical.alignment.smoothing import Smoothing
from heed.statistical.alignment.symmetrise import AGREEMENT, SYMMETRISATIONS, agreed

ALIGNERS: dict[str, type[Aligner]] = {
    "ibm1": Ibm1,
    "ibm2": Ibm2,
    "diagonal": Diagonal,
    "hmm": Hmm,
    "ibm3": Ibm3,
    "ibm4": Ibm4,
    "ibm5": Ibm5,
    "hmm_ibm3": HmmIbm3,
}
"""The aligners by name: one file and one key each."""

Direction = Literal["forward", "backward"]
"""P(target | source), or P(source | target)."""
FORWARD: Final = "forward"
BACKWARD: Final = "backward"


class Iteration(NamedTuple):
    """One iteration of expectation maximisation, for people."""

    direction: Direction
    aligner: str
    number: int
    log_likelihood: float
    """Of the training text, before the iteration."""
    num_targets: int


DEFAULT = Smoothing()
Report = Callable[[Iteration], None]


def aligner_type(name: str) -> type[Aligner]:
    """The aligner of this name. Raises UsageError for an unknown one."""
    if name not in ALIGNERS:
        raise UsageError(f"unknown aligner {name!r}; the aligners are {', '.join(ALIGNERS)}.")
    return ALIGNERS[name]


def train(
    name: str, pairs: SentencePairs, iterations: int | None = None, smoothing: Smoothing = DEFAULT,
    report: Report = lambda _: None, direction: Direction = FORWARD,
) -> Aligner:  # fmt: skip
    """An aligner estimated from pairs, after those that come before it. `iterations` are those of the last one."""
    kind = aligner_type(name)
    own = kind.iterations if iterations is None else iterations
    aligner: Aligner | None = None
    for each, times in (*((ALIGNERS[before], times) for before, times in kind.before), (kind, own)):
        aligner = each.new(pairs, smoothing) if aligner is None else each.after(aligner)
        for number in range(1, times + 1):
            aligner.estimate(pairs)
            report(Iteration(direction, each.name, number, aligner.last_log_likelihood, pairs.num_targets))
    assert aligner is not None
    return aligner


@dataclass(frozen=True)
class AlignerPair:
    """Aligners of both directions, and the words that they were estimated from."""

    src_words: Words
    tgt_words: Words
    aligners: Mapping[Direction, Aligner]
    """`forward`, P(target | source), and `backward`."""
    own: SentencePairs | None = None
    """The pairs that they were estimated from; None if they come from a run folder."""

    def links(
        self, sources: Sequence[Sequence[str]], targets: Sequence[Sequence[str]], symmetrise: str | None
    ) -> list[Links]:
        """The links of tokenised pairs: of both directions combined, or of `forward` alone if `symmetrise` is None."""
        pairs = SentencePairs.of(sources, targets, self.src_words, self.tgt_words)
        return in_order(len(pairs), self.each_links(pairs, symmetrise))

    def own_links(self, symmetrise: str | None) -> list[Links]:
        """As `links`, of the pairs that the aligners were estimated from."""
        if self.own is None:
            raise ValueError("these aligners come from a run folder, which does not have their pairs")
        return in_order(len(self.own), self.each_links(self.own, symmetrise))

    def each_links(self, pairs: SentencePairs, symmetrise: str | None) -> Iterator[tuple[int, Links]]:
        """As `links`, each with the number of its pair, block by block, so that few are in memory."""
        if symmetrise == AGREEMENT:
            yield from self._agreed(pairs)
            return
        forward = self.aligners[FORWARD].each_links(pairs)
        if symmetrise is None:
            yield from forward
            return
        combine = SYMMETRISATIONS[symmetrise]
        for (row, ours), (_, theirs) in zip(forward, self.aligners[BACKWARD].each_links(pairs.turned), strict=True):
            yield row, combine(ours, frozenset((i, j) for j, i in theirs))

    def _agreed(self, pairs: SentencePairs) -> Iterator[tuple[int, Links]]:
        both = zip(self.aligners[FORWARD].expected(pairs), self.aligners[BACKWARD].expected(pairs.turned), strict=True)
        for (block, forward, _), (_, backward, _) in both:
            for row, linked in zip(block.rows.tolist(), agreed(forward, backward), strict=True):
                tgt, src = np.nonzero(linked)
                yield row, frozenset(zip(src.tolist(), tgt.tolist(), strict=True))

    def translations(self, word: str, most: int) -> list[tuple[str, str, float]]:
        """The likeliest translations of a word: the direction, the other word and t, likeliest first.

        A word of the source has those of P(target | source), one of the target those of the other direction.
        """
        sides: dict[Direction, tuple[Words, Words]] = {
            FORWARD: (self.src_words, self.tgt_words),
            BACKWARD: (self.tgt_words, self.src_words),
        }
        rows: list[tuple[str, str, float]] = []
        for direction, aligner in self.aligners.items():
            given, other = sides[direction]
            if (number := given.numbers.get(word)) is not None:
                names = list(other)
                best = aligner.lexicon.best(number, most)
                rows += [(direction, names[target - FIRST], prob) for target, prob in best if target >= FIRST]
        return rows


def train_pair(
    name: str, sources: Sequence[Sequence[str]], targets: Sequence[Sequence[str]], iterations: int | None = None,
    smoothing: Smoothing = DEFAULT, both: bool = True, report: Report = lambda _: None, lowercase: bool = False,
    spelled: bool = True,
) -> AlignerPair:  # fmt: skip
    """Aligners of tokenised sentences, in both directions or in one. `spelled`: whether words alike are related."""
    src_words, tgt_words = Words.of(sources, lowercase), Words.of(targets, lowercase)
    pairs = SentencePairs.of(sources, targets, src_words, tgt_words, spelled)
    aligners: dict[Direction, Aligner] = {FORWARD: train(name, pairs, iterations, smoothing, report)}
    if both:
        aligners[BACKWARD] = train(name, pairs.turned, iterations, smoothing, report, BACKWARD)
    return AlignerPair(src_words, tgt_words, aligners, pairs)


def align(
    sources: Sequence[Sequence[str]], targets: Sequence[Sequence[str]], name: str = "diagonal",
    symmetrise: str | None = "grow-diag-final-and", iterations: int | None = None, smoothing: Smoothing = DEFAULT,
    spelled: bool = True,
) -> list[Links]:  # fmt: skip
    """The links of tokenised sentence pairs, by an aligner that is estimated from them.

    Each is a set of (source, target) positions, counted from 0. `symmetrise`: `intersection`, `union`, `grow-diag`,
    `grow-diag-final-and`, `agreement`, or None for one direction. `spelled`: whether words that look alike are related;
    False for words that are numbers of tokens. A pair with an empty side has no links. Raises ValueError for different
    numbers of sentences, and UsageError for an unknown aligner.
    """
    trained = train_pair(name, sources, targets, iterations, smoothing, symmetrise is not None, spelled=spelled)
    return trained.own_links(symmetrise)
