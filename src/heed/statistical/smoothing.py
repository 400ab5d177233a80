"""Smoothing methods: what n-grams give up, and what their contexts gain, for unseen words.

Of a context with counts c(h w), seen words keep c(h w) - given(h w), out of Σ_w c(h w) + added(h):

| method | given up by an n-gram | added to its context | source |
| --- | --- | --- | --- |
| kneser-ney | D1, D2 or D3 by its count (1, 2, more) | – | Chen & Goodman 1998, equation 26 |
| absolute | D | – | Ney, Essen & Kneser 1994 |
| witten-bell | – | the number of different words seen behind it | Witten & Bell 1991, method C |
| additive | – | δ · V, shared out evenly and not by shorter n-grams | Lidstone 1920 |
"""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple

import numpy as np
from pydantic import Field, model_validator

from heed.core.config import Config
from heed.core.errors import DataError
from heed.statistical.predictor import Floats, Ints

FALLBACK = (0.5, 1.0, 1.5)
"""Discounts where the counts of counts give none: lmplz's --discount_fallback."""


class SmoothingConfig(Config):
    """How probabilities are estimated from counts."""

    smoothing: Literal["kneser-ney", "witten-bell", "absolute", "additive"] = "kneser-ney"
    """What seen n-grams give up for unseen ones; kneser-ney is the modified one."""
    interpolate: bool = True
    """Shorter n-grams have a share in every probability; false: only in those of words not seen in a context."""
    interpolate_unigrams: bool = True
    """The uniform distribution has a share in every word's; false (as SRILM): only in that of unseen words."""
    additive: float = Field(default=1.0, ge=0)
    """δ of additive smoothing."""
    prune: Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(max_length=20)] = ()
    """For n = 1, 2, ...: n-grams that occur at most so often are left out; the last number holds for all longer ones.
    Words are never left out, so the first number is 0."""
    lmplz_quirk: bool = True
    """Discounts to the last digit as KenLM's lmplz computes them: in each order one n-gram is counted as often as it
    occurs, and not once for each word before it (kpu/kenlm issue 427)."""
    discount_fallback: bool = True
    """Where a text is too small or too odd for Kneser-Ney's discounts, 0.5, 1 and 1.5; false: an error, as lmplz."""

    @model_validator(mode="after")
    def _check_thresholds(self) -> SmoothingConfig:
        if self.threshold(1):
            raise ValueError("prune begins with 0: words are left out of a vocabulary by tokenizer.min_frequency")
        if list(self.prune) != sorted(self.prune):
            raise ValueError(f"prune = {list(self.prune)}: no threshold may be below that of shorter n-grams")
        return self

    def threshold(self, n: int) -> int:
        """n-grams of this length that occur at most so often are left out."""
        return self.prune[min(n, len(self.prune)) - 1] if self.prune else 0


class Reserved(NamedTuple):
    """What is kept back for unseen words."""

    given: Floats
    """[M]: by each n-gram, of its count."""
    added: Floats
    """[H]: to the sum of the counts of each context."""


def reserve(config: SmoothingConfig, counts: Ints, statistics: Ints, contexts: Ints, num_contexts: int) -> Reserved:
    """What the n-grams of one length keep back, [M] and [M] -> [M] and [H].

    `statistics` are the counts that discounts are estimated from; they differ from `counts` in lmplz's quirk alone.
    Raises DataError where they give no discounts and none are to be put in their place.
    """
    nothing = np.zeros(num_contexts)
    if config.smoothing == "witten-bell":
        different = np.bincount(contexts[counts > 0], minlength=num_contexts)
        return Reserved(np.zeros(len(counts)), different.astype(np.float64))
    if config.smoothing == "absolute":
        return Reserved(np.minimum(counts, absolute_discount(statistics)), nothing)
    discounts = modified_discounts(statistics, config.discount_fallback, config.interpolate)
    return Reserved(discounts[np.minimum(counts, 3)], nothing)


def absolute_discount(counts: Ints) -> float:
    """D = n1 / (n1 + 2 n2), or 0.5 when nothing was seen once or nothing twice: D must lie inside (0, 1)."""
    n1, n2 = int(np.sum(counts == 1)), int(np.sum(counts == 2))
    return n1 / (n1 + 2 * n2) if n1 and n2 else 0.5


def modified_discounts(counts: Ints, fallback: bool = True, interpolate: bool = True) -> Floats:
    """(0, D1, D2, D3+) with D_j = j - (j + 1) · Y · n_{j+1} / n_j and Y = n1 / (n1 + 2 n2).

    Where one of n1, n2, n3 is 0 or a discount not between 0 and j, FALLBACK or, without it, DataError. A discount of
    all of j leaves an n-gram nothing: that will do only where the level below is added to it (`interpolate`).
    """
    n = np.bincount(counts[counts < 5], minlength=5).astype(np.float64)
    if (n[1:4] > 0).all():
        j = np.arange(1, 4)
        found = j - (j + 1) * n[1] / (n[1] + 2 * n[2]) * n[2:5] / n[1:4]
        if ((found >= 0) & ((found <= j) if interpolate else (found < j))).all():
            return np.array([0.0, *found])
    if not fallback:
        seen = ", ".join(f"{int(number):,}" for number in n[1:])
        raise DataError(
            f"Kneser-Ney's discounts cannot be estimated: {seen} n-grams of one length were seen 1, 2, 3 and 4 times. "
            "Is this small or artificial data? Set discount_fallback = true, or choose another smoothing."
        )
    return np.array([0.0, *FALLBACK])
