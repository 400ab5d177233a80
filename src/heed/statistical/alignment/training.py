"""From two texts to aligners of both directions, and to links.

An aligner with `before` begins with the table of simpler ones, which are estimated first (Och & Ney 2003, section 4.4).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from heed.core.errors import UsageError
from heed.statistical.alignment.aligner import Aligner
from heed.statistical.alignment.diagonal import Diagonal
from heed.statistical.alignment.ibm1 import Ibm1
from heed.statistical.alignment.ibm2 import Ibm2
from heed.statistical.alignment.pairs import FIRST, Links, SentencePairs, Words
from heed.statistical.alignment.symmetrise import SYMMETRISATIONS

ALIGNERS: dict[str, type[Aligner]] = {aligner.name: aligner for aligner in (Ibm1, Ibm2, Diagonal)}
"""The aligners by name: one file and one key each."""

ALPHA = 0.01
"""The Dirichlet prior of lexical tables; fast_align's with -v."""
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


Report = Callable[[Iteration], None]


def aligner_type(name: str) -> type[Aligner]:
    """The aligner of this name. Raises UsageError for an unknown one."""
    if name not in ALIGNERS:
        raise UsageError(f"unknown aligner {name!r}; the aligners are {', '.join(ALIGNERS)}.")
    return ALIGNERS[name]


def train(
    name: str, pairs: SentencePairs, iterations: int | None = None, alpha: float = ALPHA,
    report: Report = lambda _: None, direction: Direction = FORWARD,
) -> Aligner:  # fmt: skip
    """An aligner estimated from pairs, after those that come before it. `iterations` are those of the last one."""
    kind = aligner_type(name)
    chain = [*(ALIGNERS[each] for each in kind.before), kind]
    aligner: Aligner | None = None
    for each in chain:
        aligner = each.new(pairs, alpha) if aligner is None else each.after(aligner)
        for number in range(each.iterations if each is not kind or iterations is None else iterations):
            aligner.estimate(pairs)
            report(Iteration(direction, each.name, number + 1, aligner.last_log_likelihood, pairs.num_targets))
    assert aligner is not None
    return aligner


@dataclass(frozen=True)
class AlignerPair:
    """Aligners of both directions, and the words that they were estimated from."""

    src_words: Words
    tgt_words: Words
    aligners: Mapping[Direction, Aligner]
    """`forward`, P(target | source), and `backward`."""

    def pairs(self, sources: Sequence[Sequence[str]], targets: Sequence[Sequence[str]]) -> SentencePairs:
        """Tokenised sentences by number."""
        return SentencePairs.of(sources, targets, self.src_words, self.tgt_words)

    def links(
        self, sources: Sequence[Sequence[str]], targets: Sequence[Sequence[str]], symmetrise: str | None
    ) -> list[Links]:
        """The links of each pair: of both directions combined, or of `forward` alone if `symmetrise` is None."""
        return self.links_of(self.pairs(sources, targets), symmetrise)

    def links_of(self, pairs: SentencePairs, symmetrise: str | None) -> list[Links]:
        """As `links`, of pairs by number."""
        forward = self.aligners[FORWARD].links(pairs)
        if symmetrise is None:
            return forward
        combine = SYMMETRISATIONS[symmetrise]
        backward = self.aligners[BACKWARD].links(pairs.reversed())
        turned = (frozenset((i, j) for j, i in links) for links in backward)
        return [combine(*both) for both in zip(forward, turned, strict=True)]

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
    alpha: float = ALPHA, both: bool = True, report: Report = lambda _: None,
) -> AlignerPair:  # fmt: skip
    """Aligners of tokenised sentences, in both directions or in one."""
    src_words, tgt_words = Words.of(sources), Words.of(targets)
    pairs = SentencePairs.of(sources, targets, src_words, tgt_words)
    aligners: dict[Direction, Aligner] = {FORWARD: train(name, pairs, iterations, alpha, report)}
    if both:
        aligners[BACKWARD] = train(name, pairs.reversed(), iterations, alpha, report, BACKWARD)
    return AlignerPair(src_words, tgt_words, aligners)


def align(
    sources: Sequence[Sequence[str]], targets: Sequence[Sequence[str]], name: str = "diagonal",
    symmetrise: str | None = "grow-diag-final-and", iterations: int | None = None, alpha: float = ALPHA,
) -> list[Links]:  # fmt: skip
    """The links of tokenised sentence pairs, by an aligner that is estimated from them.

    Each is a set of (source, target) positions, counted from 0. `symmetrise`: `intersection`, `union`, `grow-diag`,
    `grow-diag-final-and`, or None for one direction. A pair with an empty side has no links. Raises ValueError for
    different numbers of sentences, and UsageError for an unknown aligner.
    """
    trained = train_pair(name, sources, targets, iterations, alpha, symmetrise is not None)
    return trained.links(sources, targets, symmetrise)
