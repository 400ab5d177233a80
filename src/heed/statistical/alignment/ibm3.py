"""IBM Model 3 (Brown et al. 1993, section 4.4): fertilities, and positions of target words given that of their source.

    P(f, a | e) = P(φ_0 | J) Π_i φ_i! n(φ_i | e_i) Π_j t(f_j | e_{a_j}) Π_{j: a_j > 0} d(j | a_j, I, J)

The model is deficient: it gives probability to several words in one position. Positions of lengths that no training
pair has are those which are likely relative to the diagonal.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from heed.statistical.alignment.aligner import Arrays, checked, checked_lengths
from heed.statistical.alignment.fertility import Fertile
from heed.statistical.alignment.lexicon import Lexicon
from heed.statistical.alignment.pairs import Block, SentencePairs
from heed.statistical.alignment.smoothing import NONE, Smoothing
from heed.statistical.alignment.table import NOTHING, Table
from heed.statistical.predictor import Ints

BINS = 81
"""Kinds of entries of d: distances from the diagonal, j / J - i / I from -1 to 1."""


class Ibm3(Fertile):
    """Target positions depend on the position of their source and on both lengths."""

    name = "ibm3"
    title = "IBM Model 3 (Brown et al. 1993)"
    before = (("ibm1", 1), ("hmm", 10))
    iterations = 3
    is_unordered = True

    def __init__(self, lexicon: Lexicon, smoothing: Smoothing = NONE, p_one: float = 0.1) -> None:
        super().__init__(lexicon, smoothing, p_one)
        self.begins: dict[tuple[int, int], int] = {}
        """The number of d(1 | 1, I, J), by I and J."""
        none = np.zeros(0, dtype=np.int64)
        self.tables["distortion"] = Table(np.zeros(0), none, none, smoothing)
        self._kinds = np.full(BINS, 1.0)
        """[BINS]: the mean probability of each kind, for new lengths."""

    def entries(self, block: Block, alignments: Ints) -> dict[str, Ints]:
        num_src, num_tgt = block.shape
        places = self.begins[num_src, num_tgt] + (alignments - 1) * num_tgt + np.arange(num_tgt)
        return {
            "fertility": self.fertility_entries(block, self.fertilities(block, alignments)),
            "distortion": np.where(alignments > 0, places, NOTHING),
        }

    def prepare(self, pairs: SentencePairs) -> None:
        """Add the lengths that the table does not have yet."""
        super().prepare(pairs)
        self._add([shape for shape in pairs.shapes if shape not in self.begins])

    def _add(self, shapes: Iterable[tuple[int, int]]) -> None:
        old = self.tables["distortion"]
        groups, kinds, probs = [old.groups], [old.kinds], [old.probs]
        num_entries, num_groups = len(old.probs), int(old.groups.max(initial=-1)) + 1
        for num_src, num_tgt in shapes:
            self.begins[num_src, num_tgt] = num_entries
            groups.append(num_groups + np.arange(num_src).repeat(num_tgt))
            kinds.append(_bins(num_src, num_tgt).ravel())
            shares = self._kinds[_bins(num_src, num_tgt)]
            probs.append((shares / shares.sum(-1, keepdims=True)).ravel())
            num_entries, num_groups = num_entries + num_src * num_tgt, num_groups + num_src
        arrays = np.concatenate(probs), np.concatenate(groups), np.concatenate(kinds)
        self.tables["distortion"] = Table(*arrays, self.smoothing)

    def finish(self) -> None:
        counts = np.bincount(self.tables["distortion"].kinds, self._counts["distortion"][:-1], BINS)
        self._kinds = (counts + 0.01) / np.maximum(np.bincount(self.tables["distortion"].kinds, minlength=BINS), 1)
        super().finish()

    def parameters(self) -> dict[str, np.ndarray[Any, Any]]:
        shapes = np.array(list(self.begins), dtype=np.int64).reshape(-1, 2)
        return {**super().parameters(), "lengths": shapes, "kinds": self._kinds}

    def restore(self, arrays: Arrays) -> None:
        num_entries = len(checked(arrays, "table_distortion", (None,)))
        self._kinds = checked(arrays, "kinds", (BINS,))
        self._add(checked_lengths(arrays, num_entries, has_empty=False))
        super().restore(arrays)


def _bins(num_src: int, num_tgt: int) -> Ints:
    """The kind of each position of a target word given that of its source, [I, J]."""
    distance = np.arange(1, num_tgt + 1) / num_tgt - np.arange(1, num_src + 1)[:, None] / num_src
    return np.rint((distance + 1) / 2 * (BINS - 1)).astype(np.int64)
