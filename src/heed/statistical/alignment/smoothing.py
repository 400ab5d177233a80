"""Smoothing of the lexical table: how t(f | e) follows from expected counts c(e, f).

| kind          | t(f | e)                                                                                  |
|---------------|-------------------------------------------------------------------------------------------|
| `none`        | c(e, f) / c(e): maximum likelihood                                                        |
| `variational` | exp ψ(c(e, f) + α) / exp ψ(c(e) + α n): mean-field Variational Bayes, over n entries of e |
| `collapsed`   | (c(e, f) - own + α) / (c(e) - own + α V): collapsed Variational Bayes of order zero       |

`variational` is fast_align's (Riley & Gildea 2012, equation 6). `collapsed` leaves out of the counts what the cell
itself added to them in the last iteration (CVB0; Asuncion et al. 2009, equation 9), so a word that occurs once in the
text gets no evidence from its own pair. Without that, rare source words attract target words which belong to others.
Gibbs samplers of alignment (eflomal) rest on the same formula, with drawn links in place of expected ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from heed.statistical.alignment.digamma import digamma
from heed.statistical.predictor import Floats

SmoothingKind = Literal["none", "variational", "collapsed"]
KINDS: tuple[SmoothingKind, ...] = get_args(SmoothingKind)
FLOOR = 1e-7
"""t of a pair of words that never shared a sentence pair, where the formula above does not give it; GIZA++'s."""


@dataclass(frozen=True)
class Smoothing:
    """A kind, and α, the Dirichlet prior of each entry."""

    kind: SmoothingKind = "collapsed"
    alpha: float = 0.01

    def __post_init__(self) -> None:
        if self.kind != "none" and not 0 < self.alpha < np.inf:
            raise ValueError(f"smoothing needs a prior that is a number above 0, got {self.alpha}")

    def probs(self, counts: Floats, totals: Floats, num_entries: Floats, num_targets: int) -> Floats:
        """t of entries from their counts [N], and the totals and numbers of entries [N] of their source words."""
        if self.kind == "none":
            return counts / np.maximum(totals, np.finfo(np.float64).tiny)
        if self.kind == "collapsed":
            return (counts + self.alpha) / (totals + self.alpha * num_targets)
        return np.asarray(np.exp(digamma(counts + self.alpha) - digamma(totals + self.alpha * num_entries)))

    def floors(self, totals: Floats, num_targets: int) -> Floats:
        """t of a target word that has no entry with a source word, from the totals of source words."""
        if self.kind == "collapsed":
            return self.alpha / (totals + self.alpha * num_targets)
        return np.full(len(totals), FLOOR)

    def without(self, counts: Floats, totals: Floats, own: Floats, num_targets: int) -> Floats:
        """`collapsed` t of cells without their own counts, arrays of one shape."""
        left = np.maximum(counts - own, 0.0) + self.alpha
        left /= np.maximum(totals - own, 0.0) + self.alpha * num_targets
        return left


NONE = Smoothing("none", 0.0)
