"""Smoothing methods: the probability mass that is reserved for unseen words.

In a context h with counts c(h w), a seen word has the mass c(h w) - given(h w) of a total of Σ_w c(h w) + added(h):

| method | given(h w) | added(h) | source |
| --- | --- | --- | --- |
| kneser-ney | D1, D2 or D3 by its count (1, 2, more) | – | Chen & Goodman 1998, equation 26 |
| absolute | D | – | Ney, Essen & Kneser 1994 |
| witten-bell | – | the number of different words seen after it | Witten & Bell 1991, method C |
| additive | – | δ · V, distributed uniformly and not by shorter n-grams | Lidstone 1920 |
"""

from __future__ import annotations

from typing import Annotated, Literal, NamedTuple

import numpy as np
from pydantic import Field, model_validator

from heed.core.config import Config
from heed.core.errors import DataError
from heed.statistical.predictor import Floats, Ints

FALLBACK = (0.5, 1.0, 1.5)
"""Discounts if they cannot be estimated: lmplz's --discount_fallback."""


class SmoothingConfig(Config):
    """Smoothing of probabilities that are estimated from counts."""

    smoothing: Literal["kneser-ney", "witten-bell", "absolute", "additive"] = "kneser-ney"
    """Smoothing method; kneser-ney is modified Kneser-Ney."""
    interpolate: bool = True
    """Interpolate with shorter n-grams; false: back off to them only for words not seen in a context."""
    interpolate_unigrams: bool = True
    """Interpolate unigrams with the uniform distribution; false (as SRILM): use it only for unseen words."""
    additive: float = Field(default=1.0, ge=0)
    """δ of additive smoothing."""
    prune: Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(max_length=20)] = ()
    """For n = 1, 2, ...: leave out n-grams with at most this many occurrences; the last number is for all longer ones.
    Words are never left out, so the first number is 0."""
    lmplz_quirk: bool = True
    """Compute discounts exactly as KenLM's lmplz: in each order the count of one n-gram is its number of occurrences
    instead of different words before it (kpu/kenlm issue 427)."""
    discount_fallback: bool = True
    """Use 0.5, 1 and 1.5 if Kneser-Ney discounts cannot be estimated; false: an error, as lmplz."""

    @model_validator(mode="after")
    def _check_thresholds(self) -> SmoothingConfig:
        if self.threshold(1):
            raise ValueError("prune must begin with 0: use tokenizer.min_frequency to leave out words")
        if list(self.prune) != sorted(self.prune):
            raise ValueError(f"prune = {list(self.prune)}: a threshold must not be below that of shorter n-grams")
        return self

    def threshold(self, n: int) -> int:
        """The pruning threshold of n-grams of this length."""
        return self.prune[min(n, len(self.prune)) - 1] if self.prune else 0


class Reserved(NamedTuple):
    """The mass reserved for unseen words."""

    given: Floats
    """[M]: subtracted from the count of each n-gram."""
    added: Floats
    """[H]: added to the sum of the counts of each context."""


def reserve(config: SmoothingConfig, counts: Ints, statistics: Ints, contexts: Ints, num_contexts: int) -> Reserved:
    """The mass reserved by the n-grams of one length, [M] and [M] -> [M] and [H].

    `statistics`: the counts that discounts are estimated from; they differ from `counts` only with `lmplz_quirk`.
    Raises DataError if discounts cannot be estimated and there is no fallback.
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
    """D = n1 / (n1 + 2 n2), or 0.5 if n1 or n2 is 0, since D must be inside (0, 1)."""
    n1, n2 = int(np.sum(counts == 1)), int(np.sum(counts == 2))
    return n1 / (n1 + 2 * n2) if n1 and n2 else 0.5


def modified_discounts(counts: Ints, fallback: bool = True, interpolate: bool = True) -> Floats:
    """(0, D1, D2, D3+) with D_j = j - (j + 1) · Y · n_{j+1} / n_j and Y = n1 / (n1 + 2 n2).

    If n1, n2 or n3 is 0, or a discount is not between 0 and j: FALLBACK or, without it, DataError. A discount of j
    leaves no mass to an n-gram, which is possible only with interpolation.
    """
    n = np.bincount(counts[counts < 5], minlength=5).astype(np.float64)
    if (n[1:4] > 0).all():
        j = np.arange(1, 4)
        discounts = j - (j + 1) * n[1] / (n[1] + 2 * n[2]) * n[2:5] / n[1:4]
        if ((discounts >= 0) & ((discounts <= j) if interpolate else (discounts < j))).all():
            return np.array([0.0, *discounts])
    if not fallback:
        seen = ", ".join(f"{int(number):,}" for number in n[1:])
        raise DataError(
            f"Kneser-Ney discounts cannot be estimated: of the n-grams of one length, {seen} were seen 1, 2, 3 and 4 "
            "times, respectively. Small or artificial data has too few of them. Set discount_fallback = true, or "
            "choose another smoothing."
        )
    return np.array([0.0, *FALLBACK])
