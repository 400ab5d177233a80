"""IBM Model 2 (Brown et al. 1993, section 4.3): a table of source positions for each target position and lengths.

    P(f | e) = Π_j Σ_i a(i | j, I, J) t(f_j | e_i)

Lengths that no training pair has are uniform, as in Model 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from heed.statistical.alignment.aligner import Arrays, checked, checked_lengths
from heed.statistical.alignment.ibm1 import Independent
from heed.statistical.alignment.lexicon import Lexicon
from heed.statistical.alignment.pairs import Block
from heed.statistical.alignment.smoothing import NONE, Smoothing
from heed.statistical.predictor import Floats


class Ibm2(Independent):
    """Each target position has a distribution over source positions, for each pair of lengths."""

    name = "ibm2"
    title = "IBM Model 2 (Brown et al. 1993)"
    before = (("ibm1", 5),)

    def __init__(self, lexicon: Lexicon, smoothing: Smoothing = NONE) -> None:
        super().__init__(lexicon, smoothing)
        self.tables: dict[tuple[int, int], Floats] = {}
        """a [J, I + 1] of each pair of lengths I and J."""
        self._counts: dict[tuple[int, int], Floats] = {}

    def prior(self, num_src: int, num_tgt: int) -> Floats:
        table = self.tables.get((num_src, num_tgt))
        return np.array(1.0 / (num_src + 1)) if table is None else table

    def begin(self) -> None:
        self._counts = {}

    def count(self, block: Block, posteriors: Floats) -> None:
        of_block = posteriors.sum(0)
        self._counts[block.shape] = self._counts.get(block.shape, 0.0) + of_block

    def finish(self) -> None:
        self.tables.update({shape: counts / counts.sum(-1, keepdims=True) for shape, counts in self._counts.items()})

    def parameters(self) -> dict[str, np.ndarray[Any, Any]]:
        shapes = np.array(list(self.tables), dtype=np.int64).reshape(-1, 2)
        flat = [np.empty(0), *(table.ravel() for table in self.tables.values())]
        return {"lengths": shapes, "positions": np.concatenate(flat)}

    def restore(self, arrays: Arrays) -> None:
        flat = checked(arrays, "positions", (None,))
        lengths = checked_lengths(arrays, len(flat), has_empty=True)
        ends = np.cumsum([(num_src + 1) * num_tgt for num_src, num_tgt in lengths], dtype=np.int64)
        self.tables = {
            (num_src, num_tgt): part.reshape(num_tgt, num_src + 1)
            for (num_src, num_tgt), part in zip(lengths, np.split(flat, ends), strict=False)
        }
