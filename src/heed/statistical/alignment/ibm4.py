"""IBM Model 4 (Brown et al. 1993, section 4.5): positions relative to the words of the source before.

The words that a source word produces are its cept. The first one (the head) is placed relative to the centre of the
cept before it, each further one relative to the word before it in the cept:

    Π_j d_1(j - ⌈centre⌉ | A(e before), B(f_j))  for heads        Π_j d_>1(j - j before | B(f_j))  for others

A and B are word classes. The centre before the first cept is 0. Displacements beyond `MAX_JUMP` share an entry. The
model is deficient, as Model 3, and also gives probability to positions outside the sentence.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

import numpy as np

from heed.core.errors import DataError
from heed.core.run_files import RESTORE
from heed.statistical.alignment.aligner import Arrays
from heed.statistical.alignment.classes import NUM_CLASSES, word_classes
from heed.statistical.alignment.fertility import Fertile
from heed.statistical.alignment.hmm import MAX_JUMP
from heed.statistical.alignment.lexicon import Lexicon
from heed.statistical.alignment.pairs import Block, SentencePairs
from heed.statistical.alignment.smoothing import NONE, Smoothing
from heed.statistical.alignment.table import NOTHING, Table
from heed.statistical.predictor import Bools, Ints

WIDTH = 2 * MAX_JUMP + 1
"""Displacements, from -100 to 100."""
GROUPS = NUM_CLASSES + 1


class Cepts(NamedTuple):
    """The target words of alignments, sorted by their source and then by position; each array is [B, K, J]."""

    sources: Ints
    """The source of each word: 0 for the empty word, else a position from 1."""
    positions: Ints
    """Its position from 0."""
    is_head: Bools
    """Whether it is the first of its cept."""
    is_other: Bools
    """Whether it is a further one."""
    previous: Ints
    """The source of the word before, 0 for none."""
    centres: Ints
    """⌈centre⌉, from 1, of the cept up to the word before; 0 for none."""

    @classmethod
    def of(cls, alignments: Ints) -> Cepts:
        """The cepts of alignments [B, K, J]."""
        num_tgt = alignments.shape[-1]
        keys = np.sort(alignments * num_tgt + np.arange(num_tgt), axis=-1)
        sources, positions = np.divmod(keys, num_tgt)
        previous = np.zeros_like(sources)
        previous[..., 1:] = sources[..., :-1]
        starts = sources != previous
        starts[..., 0] = True
        places = np.arange(num_tgt)
        first = np.maximum.accumulate(np.where(starts, places, 0), axis=-1)
        sums = np.cumsum(positions + 1, axis=-1)
        before = np.take_along_axis(sums - positions - 1, first, axis=-1)
        sizes = places - first + 1
        centres = np.zeros_like(sources)
        centres[..., 1:] = (-((before - sums) // sizes))[..., :-1]
        centres[previous == 0] = 0
        return cls(sources, positions, starts & (sources > 0), ~starts & (sources > 0), previous, centres)


class Ibm4(Fertile):
    """Target positions depend on those of the cept before."""

    name = "ibm4"
    title = "IBM Model 4 (Brown et al. 1993)"
    before: ClassVar[tuple[tuple[str, int], ...]] = (("ibm1", 1), ("hmm", 10), ("ibm3", 3))
    iterations = 3

    def __init__(self, lexicon: Lexicon, smoothing: Smoothing = NONE, p_one: float = 0.1) -> None:
        super().__init__(lexicon, smoothing, p_one)
        self.tables["heads"] = Table.rectangle(GROUPS * GROUPS, WIDTH, smoothing)
        self.tables["others"] = Table.rectangle(GROUPS, WIDTH, smoothing)
        self.src_classes: Ints | None = None
        self.tgt_classes: Ints | None = None

    def prepare(self, pairs: SentencePairs) -> None:
        """Cluster the words of the first pairs."""
        super().prepare(pairs)
        if self.src_classes is None:
            self.src_classes = word_classes(pairs.src, self.lexicon.src_size)
            self.tgt_classes = word_classes(pairs.tgt, self.lexicon.tgt_size)

    def entries(self, block: Block, alignments: Ints) -> dict[str, Ints]:
        return {
            "fertility": self.fertility_entries(block, self.fertilities(block, alignments)),
            **self.displacements(block, Cepts.of(alignments)),
        }

    def displacements(self, block: Block, cepts: Cepts) -> dict[str, Ints]:
        """The entries of heads and of other words, [B, K, J]."""
        assert self.src_classes is not None
        of_before = np.append(np.zeros((len(block.src), 1), dtype=np.int64), self.src_classes[block.src], axis=1)
        rows = np.arange(len(block.src))[:, None, None]
        target = self.target_classes(block, cepts)
        heads = of_before[rows, cepts.previous] * GROUPS + target
        jumps = _clipped(cepts.positions + 1 - cepts.centres)
        steps = np.zeros_like(cepts.positions)
        steps[..., 1:] = np.diff(cepts.positions, axis=-1)
        return {
            "heads": np.where(cepts.is_head, heads * WIDTH + jumps, NOTHING),
            "others": np.where(cepts.is_other, target * WIDTH + _clipped(steps), NOTHING),
        }

    def target_classes(self, block: Block, cepts: Cepts) -> Ints:
        """B(f) of each word, [B, K, J]."""
        assert self.tgt_classes is not None
        rows = np.arange(len(block.src))[:, None, None]
        return np.asarray(self.tgt_classes[block.tgt][rows, cepts.positions])

    def parameters(self) -> dict[str, np.ndarray[Any, Any]]:
        assert self.src_classes is not None and self.tgt_classes is not None
        return {**super().parameters(), "src_classes": self.src_classes, "tgt_classes": self.tgt_classes}

    def restore(self, arrays: Arrays) -> None:
        super().restore(arrays)
        self.src_classes = _classes(arrays, "src_classes", self.lexicon.src_size)
        self.tgt_classes = _classes(arrays, "tgt_classes", self.lexicon.tgt_size)


def _clipped(displacements: Ints) -> Ints:
    return np.clip(displacements, -MAX_JUMP, MAX_JUMP) + MAX_JUMP


def _classes(arrays: Arrays, name: str, size: int) -> Ints:
    classes = arrays.get(name)
    if classes is None or classes.dtype != np.int64 or classes.shape != (size,):
        raise DataError(f"{name!r} are not the classes of these words. {RESTORE}")
    if bool(((classes < 0) | (classes > NUM_CLASSES)).any()):
        raise DataError(f"{name!r} are not classes from 0 to {NUM_CLASSES}. {RESTORE}")
    return classes
