"""Smoothing of the lexical table: how t(f | e) follows from expected counts c(e, f).

| kind          | t(f | e)                                                                                  |
|---------------|-------------------------------------------------------------------------------------------|
| `none`        | c(e, f) / c(e): maximum likelihood                                                        |
| `variational` | exp ψ(c(e, f) + α) / exp ψ(c(e) + α n): mean-field Variational Bayes, over n entries of e |
| `collapsed`   | (c(e, f) - own + α) / (c(e) - own + α V): collapsed Variational Bayes of order zero       |

`variational` is fast_align's (Riley & Gildea 2012, equation 6). `collapsed` leaves out of the counts what the cell
itself added to them in the last iteration (CVB0; Asuncion et al. 2009, equation 9), so a word that occurs once in the
text gets no evidence from its own pair. Without that, rare source words attract target words which belong to others.
Gibbs samplers of alignment (eflomal) rest on the same formula, with drawn links in place of expected ones. In a text
whose words are known by their spelling, the prior of `collapsed` is α + γ m(f | e), where the mean m comes from related
words (`heed.statistical.alignment.related`); its sum over the V words is then α V + γ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np

from heed.statistical.alignment.digamma import digamma
from heed.statistical.predictor import Floats

SmoothingKind = Literal["none", "variational", "collapsed"]
KINDS: tuple[SmoothingKind, ...] = get_args(SmoothingKind)
FLOOR = 1e-7
"""t of a pair of words that never shared a sentence pair, where the formula above does not give it; GIZA++'s."""
STRENGTH = 50.0
"""γ: the counts that related words add to those of a source word; chosen on development data."""
ALPHAS: Mapping[SmoothingKind, float] = {"none": 0.0, "variational": 0.01, "collapsed": 0.005}
"""α of each kind, unless another is asked for: fast_align's, and one that was chosen on development data."""


class Prior(NamedTuple):
    """What a Dirichlet prior adds to the counts of entries, and to the total of a source word."""

    counts: Floats | float
    total: float


@dataclass(frozen=True)
class Smoothing:
    """A kind, and α, the Dirichlet prior of each entry."""

    kind: SmoothingKind = "collapsed"
    alpha: float = ALPHAS["collapsed"]

    def __post_init__(self) -> None:
        if self.kind != "none" and not 0 < self.alpha < np.inf:
            raise ValueError(f"smoothing needs a prior that is a number above 0, got {self.alpha}")

    def prior(self, num_targets: int, means: Floats | None = None) -> Prior:
        """The `collapsed` prior of entries or cells, from the means m that related words give them, if any."""
        if means is None:
            return Prior(self.alpha, self.alpha * num_targets)
        return Prior(self.alpha + STRENGTH * means, self.alpha * num_targets + STRENGTH)

    def probs(self, counts: Floats, totals: Floats, num_entries: Floats, prior: Prior) -> Floats:
        """t of entries from their counts [N], and the totals and numbers of entries [N] of their source words."""
        if self.kind == "none":
            return counts / np.maximum(totals, np.finfo(np.float64).tiny)
        if self.kind == "collapsed":
            return (counts + prior.counts) / (totals + prior.total)
        return np.asarray(np.exp(digamma(counts + self.alpha) - digamma(totals + self.alpha * num_entries)))

    def floors(self, totals: Floats, prior: Prior) -> Floats:
        """t of a target word that has no entry with a source word, from the totals of source words."""
        if self.kind == "collapsed":
            return np.asarray(prior.counts / (totals + prior.total))
        return np.full(len(totals), FLOOR)

    def without(self, counts: Floats, totals: Floats, own: Floats, prior: Prior) -> Floats:
        """`collapsed` t of cells without their own counts, arrays of one shape."""
        left = np.maximum(counts - own, 0.0) + prior.counts
        left /= np.maximum(totals - own, 0.0) + prior.total
        return left


NONE = Smoothing("none", 0.0)
