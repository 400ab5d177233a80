"""Sentence pairs with the links of an aligner, the first word of each sentence as it is inside one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from heed.statistical.alignment import align
from heed.statistical.alignment.pairs import Links
from heed.statistical.alignment.smoothing import Smoothing
from heed.statistical.derivation import Bitext
from heed.statistical.phrases.casing import SentenceCase


@dataclass(frozen=True)
class AlignedBitext:
    """The training pairs of a bitext, and which of their tokens are linked."""

    sources: Sequence[list[int]]
    targets: Sequence[list[int]]
    links: Sequence[Links]

    @classmethod
    def of(cls, bitext: Bitext, case: SentenceCase, aligner: str, smoothing: Smoothing) -> AlignedBitext:
        """Align with an aligner that is estimated from these pairs. `smoothing` is that of its table."""
        sources, targets = (inside(case, side) for side in zip(*bitext.pairs, strict=True))
        bitext.report(f"aligning the words of {len(sources):,} pairs ({aligner})")
        links = align(_spelled(sources), _spelled(targets), aligner, smoothing=smoothing, spelled=False)
        return cls(sources, targets, links)


def inside(case: SentenceCase, sentences: Iterable[Sequence[int]]) -> list[list[int]]:
    """The tokens of sentences, the first word of each as it is inside one."""
    return [[id for word in case.enter(ids)[0] for id in word] for ids in sentences]


def _spelled(sentences: Iterable[list[int]]) -> list[list[str]]:
    """Tokens as the words of an aligner."""
    return [[str(id) for id in ids] for ids in sentences]
