"""n-gram models of any order: modified Kneser-Ney and older smoothings, with or without a cache.

The counting is `heed.statistical`; order 1 is the unigram model, order 0 the uniform one. Behind an end of sentence, as
behind a begin, a sentence begins: so lines are scored alike alone and in a stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from pydantic import Field

from heed.models.counting import Arrays, Counting
from heed.models.model import ModelConfig
from heed.nn.contract import Vocabularies
from heed.statistical.backoff import BackoffModel
from heed.statistical.cache import CacheConfig, Cached
from heed.statistical.estimation import estimate, uniform
from heed.statistical.ngram_counts import NgramCounts
from heed.statistical.predictor import Predictor
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
    """Which model this is."""
    order: int = Field(default=5, ge=0, le=20)
    """n: a word depends on the n - 1 before it; 1 is the unigram model, 0 the uniform one."""

    def summary(self) -> str:
        """The model in a phrase, for reports."""
        return describe_ngrams(self.order, self, self)


class Ngram(Counting):
    """P(w_t | the last n - 1 words), counted."""

    Config = NgramConfig
    papers = "smoothed n-grams (Chen & Goodman 1998; Heafield et al. 2013)"

    def __init__(self, config: NgramConfig, vocabularies: Vocabularies) -> None:
        super().__init__(vocabularies)
        self.config = config
        self.hold(self._with_cache(uniform(self.predictable, vocabularies.bos_id, vocabularies.eos_id)))

    def estimated(self, sequences: Iterable[Sequence[int]]) -> Predictor:
        """Count and smooth."""
        ids = self.vocabularies
        if self.config.order == 0:
            return self._with_cache(uniform(self.predictable, ids.bos_id, ids.eos_id))
        counts = NgramCounts.of(sequences, self.config.order, ids.tgt_size, ids.bos_id, ids.eos_id, ids.pad_id)
        return self._with_cache(estimate(counts, self.config, self.predictable))

    def restored(self, arrays: Arrays) -> Predictor:
        """The tree of n-grams."""
        ids = self.vocabularies
        return self._with_cache(BackoffModel.from_arrays(arrays, ids.tgt_size, ids.bos_id, ids.eos_id))

    def _with_cache(self, model: BackoffModel) -> Predictor:
        ids = self.vocabularies
        if not self.config.cache_share:
            return model
        return Cached(model, self.config, ids.eos_id, (ids.pad_id, ids.bos_id, ids.eos_id))
