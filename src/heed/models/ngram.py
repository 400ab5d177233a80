"""n-gram models of any order, with modified Kneser-Ney or older smoothing, with or without a cache; the bigram model.

Order 1 is the unigram model, order 0 the uniform one. An end of sentence begins a new sentence, as begin of sentence
does, so lines get the same scores alone and in a stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np
from pydantic import Field

from heed.core.errors import DataError
from heed.models.counting import Counting
from heed.models.model import ModelConfig
from heed.statistical.backoff import BackoffModel
from heed.statistical.cache import CacheConfig
from heed.statistical.estimation import estimate, uniform
from heed.statistical.ngram_counts import Level, NgramCounts
from heed.statistical.predictor import Ints, Predictor, starts
from heed.statistical.saved_arrays import Arrays
from heed.statistical.smoothing import SmoothingConfig

SMOOTHINGS = {
    "kneser-ney": "modified Kneser-Ney smoothing", "witten-bell": "Witten-Bell smoothing",
    "absolute": "absolute discounting", "additive": "additive smoothing",
}  # fmt: skip


def describe_ngrams(order: int, smoothing: SmoothingConfig, cache: CacheConfig) -> str:
    """`a 5-gram model with interpolated modified Kneser-Ney smoothing and a cache of 500 words`."""
    if order == 0:
        return "the uniform model"
    way = "interpolated" if smoothing.interpolate else "backed-off"
    words = f" and a cache of {cache.cache_size:,} words" if cache.cache_share else ""
    return f"a {order}-gram model with {way} {SMOOTHINGS[smoothing.smoothing]}{words}"


class NgramConfig(SmoothingConfig, CacheConfig, ModelConfig):
    """An n-gram model."""

    kind: Literal["ngram"] = "ngram"
    """Kind of model: the key in `MODELS`."""
    order: int = Field(default=5, ge=0, le=20)
    """n: a word depends on the n - 1 words before it; 1 is the unigram model, 0 the uniform one."""

    def summary(self) -> str:
        return describe_ngrams(self.order, self, self)


class Ngram(Counting):
    """P(w_t | the last n - 1 words) from counts."""

    Config = NgramConfig
    config: NgramConfig
    papers = "smoothed n-grams (Chen & Goodman 1998; Heafield et al. 2013)"

    def unestimated(self) -> Predictor:
        """The uniform distribution."""
        ids = self.vocabularies
        return self.with_cache(uniform(self.predictable, ids.bos_id, ids.eos_id), self.config)

    def estimated(self, sequences: Iterable[Sequence[int]]) -> Predictor:
        """Counted and smoothed."""
        if self.config.order == 0:
            return self.unestimated()
        counts = self.counts(sequences, self.config.order)
        return self.with_cache(estimate(counts, self.config, self.predictable), self.config)

    def restored(self, arrays: Arrays) -> Predictor:
        """The tree of n-grams."""
        ids = self.vocabularies
        return self.with_cache(BackoffModel.from_arrays(arrays, ids.tgt_size, ids.bos_id, ids.eos_id), self.config)


class BigramConfig(ModelConfig):
    """A bigram model has no settings: its discount is estimated from the counts."""

    kind: Literal["bigram"] = "bigram"
    """Kind of model: the key in `MODELS`."""

    def summary(self) -> str:
        return "a bigram model with interpolated absolute discounting"


class Bigram(Counting):
    """P(w_t | w_{t-1}) with interpolated absolute discounting (Ney, Essen & Kneser 1994).

        p(w | v) = max(c(v w) - D, 0) / c(v)  +  D · N1+(v ·) / c(v) · p(w)        D = n1 / (n1 + 2 n2)
        p(w)     = (c(w) + 1) / (N + V)

    It is the n-gram model of order 2 with `smoothing = "absolute"`. The earliest run folders hold unsmoothed counts,
    which are smoothed when they are loaded.
    """

    Config = BigramConfig
    config: BigramConfig
    papers = "absolute discounting (Ney, Essen & Kneser 1994)"

    def estimated(self, sequences: Iterable[Sequence[int]]) -> Predictor:
        """Counted and smoothed."""
        return self._smoothed(self.counts(sequences, order=2))

    def restored(self, arrays: Arrays) -> Predictor:
        """The tree of n-grams, or the counts of an old run folder."""
        if "counts" in arrays:
            return self._smoothed(self._old_counts(arrays))
        ids = self.vocabularies
        return BackoffModel.from_arrays(arrays, ids.tgt_size, ids.bos_id, ids.eos_id)

    def _smoothed(self, counts: NgramCounts) -> Predictor:
        return estimate(counts, SmoothingConfig(smoothing="absolute"), self.predictable)

    def _old_counts(self, arrays: Arrays) -> NgramCounts:
        """Counts of an old run folder: offsets [V + 1] of each context's pairs, words and counts [P] of the pairs."""
        ids = self.vocabularies
        if missing := [name for name in ("offsets", "words") if name not in arrays]:
            raise DataError(f"not bigram counts: {missing[0]!r} is missing.")
        stored = [arrays[name].ravel() for name in ("offsets", "words", "counts")]
        if not all(np.issubdtype(array.dtype, np.integer) for array in stored):
            raise DataError("not bigram counts: they are not integers.")
        offsets, words, counts = (array.astype(np.int64) for array in stored)
        if len(offsets) != ids.tgt_size + 1:
            raise DataError(f"the counts are for {len(offsets) - 1} tokens, but the tokenizer has {ids.tgt_size}.")
        lengths = np.diff(offsets)
        whole = len(words) == len(counts) and (lengths >= 0).all() and np.array_equal(offsets, starts(lengths))
        if not whole or offsets[-1] != len(words) or (counts <= 0).any() or not self._are_words(words, lengths):
            raise DataError("not bigram counts: their sizes and numbers are inconsistent.")
        unigrams = np.bincount(words, counts, ids.tgt_size).astype(np.int64)
        nothing = np.zeros_like(unigrams)
        first = Level(nothing, np.arange(ids.tgt_size), nothing, unigrams)
        pairs = Level(np.repeat(np.arange(ids.tgt_size), lengths), words, words, counts)
        return NgramCounts((first, pairs), nothing, int(unigrams.sum()), ids.bos_id, ids.eos_id)

    def _are_words(self, words: Ints, lengths: Ints) -> bool:
        """Whether they can be predicted, and ascend within each context."""
        if ((words < 0) | (words >= self.vocabularies.tgt_size)).any() or not self.predictable[words].all():
            return False
        keys = np.repeat(np.arange(len(lengths)), lengths) * len(lengths) + words
        return bool((np.diff(keys) > 0).all())
