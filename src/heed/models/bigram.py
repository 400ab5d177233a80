"""A bigram with interpolated absolute discounting (Ney, Essen & Kneser 1994): nothing to choose.

    p(w | v) = max(c(v w) - D, 0) / c(v)  +  D · N1+(v ·) / c(v) · p(w)        D = n1 / (n1 + 2 n2)
    p(w)     = (c(w) + 1) / (N + V)

It is the n-gram model of order 2 with `smoothing = "absolute"`. Runs of heed's first days hold the counts themselves
and are estimated as they are loaded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np

from heed.core.errors import DataError
from heed.models.counting import Arrays, Counting
from heed.models.model import ModelConfig
from heed.nn.contract import Vocabularies
from heed.statistical.backoff import BackoffModel
from heed.statistical.estimation import estimate
from heed.statistical.ngram_counts import Level, NgramCounts
from heed.statistical.predictor import Ints, Predictor, starts
from heed.statistical.smoothing import SmoothingConfig

_SMOOTHING = SmoothingConfig(smoothing="absolute")


class BigramConfig(ModelConfig):
    """A bigram has nothing to choose: its discount comes from the counts."""

    kind: Literal["bigram"] = "bigram"
    """Which model this is."""

    def summary(self) -> str:
        """The model in a phrase, for reports."""
        return "a bigram model with interpolated absolute discounting"


class Bigram(Counting):
    """P(w_t | w_{t-1}), counted."""

    Config = BigramConfig
    papers = "absolute discounting (Ney, Essen & Kneser 1994)"

    def __init__(self, config: BigramConfig, vocabularies: Vocabularies) -> None:
        super().__init__(vocabularies)
        self.config = config
        self.estimate(())

    def estimated(self, sequences: Iterable[Sequence[int]]) -> Predictor:
        """Count pairs, and discount them."""
        ids = self.vocabularies
        counts = NgramCounts.of(sequences, 2, ids.tgt_size, ids.bos_id, ids.eos_id, ids.pad_id)
        return estimate(counts, _SMOOTHING, self.predictable)

    def restored(self, arrays: Arrays) -> Predictor:
        """The tree of n-grams; of an old run, its counts."""
        ids = self.vocabularies
        if "counts" in arrays:
            return estimate(self._counts_of(arrays), _SMOOTHING, self.predictable)
        return BackoffModel.from_arrays(arrays, ids.tgt_size, ids.bos_id, ids.eos_id)

    def _counts_of(self, arrays: Arrays) -> NgramCounts:
        """Counts as old runs hold them: offsets [V + 1] of each context's pairs; words and counts [P] of the pairs."""
        ids = self.vocabularies
        if missing := [name for name in ("offsets", "words") if name not in arrays]:
            raise DataError(f"not bigram counts: {missing[0]!r} is missing.")
        found = [arrays[name].ravel() for name in ("offsets", "words", "counts")]
        if not all(np.issubdtype(array.dtype, np.integer) for array in found):
            raise DataError("not bigram counts: they are not whole numbers.")
        offsets, words, counts = (array.astype(np.int64) for array in found)
        if len(offsets) != ids.tgt_size + 1:
            here, there = ids.tgt_size, len(offsets) - 1
            raise DataError(f"the counts are for {there} tokens, but the tokenizer has {here}.")
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
        """Whether they can be predicted, and are sorted behind each context."""
        if ((words < 0) | (words >= self.vocabularies.tgt_size)).any() or not self.predictable[words].all():
            return False
        keys = np.repeat(np.arange(len(lengths)), lengths) * len(lengths) + words
        return bool((np.diff(keys) > 0).all())
