"""Aligners by their definition: sums over all alignments of tiny pairs, without arrays."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from heed.statistical.alignment.aligner import Aligner
from heed.statistical.alignment.hmm import MAX_JUMP, Hmm
from heed.statistical.alignment.pairs import NULL, SentencePairs

THE, HOUSE, BOOK, A = range(2, 6)
DAS, HAUS, BUCH, EIN = range(2, 6)
BOOKS = SentencePairs.of_ids([([THE, HOUSE], [DAS, HAUS]), ([THE, BOOK], [DAS, BUCH]), ([A, BOOK], [EIN, BUCH])])
"""The example of Koehn's "Statistical Machine Translation", section 4.2.2."""
MIXED = SentencePairs.of_ids(
    [
        ([2, 3, 4], [2, 3]),
        ([3, 5], [4, 3, 2]),
        ([4], [5, 2]),
        ([2, 3, 4], [4, 5]),
        ([5, 3], [2, 4, 5]),
        ([3, 2], [3]),
        ([2], [2]),
        ([2, 5, 4], [3, 5, 2]),
    ]
)
"""Pairs of several lengths, repeated shapes included."""

Alignment = tuple[int, ...]
"""The source of each target word: 0 for the empty word, else a position from 1."""


def alignments(num_src: int, num_tgt: int) -> Iterator[Alignment]:
    """Every alignment of a pair."""
    return itertools.product(range(num_src + 1), repeat=num_tgt)


def summed(
    pairs: SentencePairs, joint: Callable[[Sequence[int], Sequence[int], Alignment], float]
) -> tuple[float, list[list[list[float]]]]:
    """log P(targets | sources), and the posteriors, from P(target, alignment | source) of each alignment."""
    total, posteriors = 0.0, []
    for source, target in pairs:
        rows = [[0.0] * (len(source) + 1) for _ in target]
        norm = 0.0
        for alignment in alignments(len(source), len(target)):
            probability = joint(source, target, alignment)
            norm += probability
            for j, i in enumerate(alignment):
                rows[j][i] += probability
        total += math.log(norm)
        posteriors.append([[value / norm for value in row] for row in rows])
    return total, posteriors


def lexical(table: Callable[[int, int], float], source: Sequence[int], target: Sequence[int], a: Alignment) -> float:
    """Π_j t(f_j | e_{a_j})."""
    return math.prod(table(source[i - 1] if i else NULL, f) for f, i in zip(target, a, strict=True))


def t(aligner: Aligner, e: int, f: int) -> float:
    """t(f | e) of an aligner."""
    lexicon = aligner.lexicon
    return float(lexicon.probs[lexicon.find(np.array([e * lexicon.tgt_size + f]))[0]])


def _jump(model: Hmm, before: int, now: int, num_src: int) -> float:
    """p(now | before, I) without the empty word, by the definition; position 0 is the beginning."""

    def weight(i: int) -> float:
        at = 2 * MAX_JUMP + i if before == 0 else MAX_JUMP + i - before
        return float(model.jumps.weights[at])

    scaled = weight(now) / sum(weight(i) for i in range(1, num_src + 1))
    return model.jumps.uniform / num_src + (1 - model.jumps.uniform) * scaled


def joint_of_hmm(model: Hmm, source: Sequence[int], target: Sequence[int], alignment: Alignment) -> float:
    """P(target, alignment | source) of the hidden Markov model."""
    probability, last = 1.0, 0
    for i in alignment:
        probability *= model.p_null if i == 0 else (1 - model.p_null) * _jump(model, last, i, len(source))
        last = i or last
    return probability * lexical(lambda e, f: t(model, e, f), source, target, alignment)
