"""Cache models: a mixture of a model with the recent past (Kuhn & De Mori 1990).

    p(w | h) = (1 - λ) p_m(w | h) + λ (1 - p_m(end | h)) · Σ_i r^i [w_i = w] / Σ_i r^i        for a word w
    p(end | h) = p_m(end | h)

w_0, w_1, ... are the last K words, the newest first, and r <= 1 discounts older ones (Clarkson & Robinson 1997). The
cache does not predict the end of a sentence and does not contain begins and ends of sentences; in a text that is read
as one stream, it continues over them. While it is empty, only the model counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from pydantic import Field

from heed.core.config import Config
from heed.statistical.predictor import Bools, Floats, Ints, Predictor, log

_EMPTY = -1
_ELEMENTS = 1 << 22
"""Words of caches that are processed at once."""


class CacheConfig(Config):
    """A cache of the most recent words."""

    cache_share: float = Field(default=0.0, ge=0, lt=1)
    """λ: the share of the cache in the probability of each word; 0: no cache. With data.text_as = "stream" the cache
    contains the lines before, otherwise only the words before in the same line."""
    cache_size: int = Field(default=500, ge=1, le=100_000)
    """K: number of words in the cache."""
    cache_decay: float = Field(default=1.0, gt=0, le=1)
    """r: weight of a word relative to the next newer one."""


class Cached(Predictor):
    """A predictor with a cache. A context is that of the predictor, followed by the last K words, the newest last."""

    def __init__(self, model: Predictor, config: CacheConfig, eos_id: int, not_words: tuple[int, ...]) -> None:
        self.model = model
        self.config = config
        self.eos_id = eos_id
        self.not_words = np.array(not_words)
        """Ids that are not cached: padding, begin and end of sentence."""
        ages = np.arange(config.cache_size)[::-1]
        self._weights = config.cache_decay ** ages.astype(np.float64)

    @property
    def vocab_size(self) -> int:
        return self.model.vocab_size

    @property
    def start(self) -> Ints:
        return np.concatenate([self.model.start, np.full(self.config.cache_size, _EMPTY)])

    def follow(self, contexts: Ints, ids: Ints) -> Ints:
        inner, recent = self._split(contexts)
        is_word = ~np.isin(ids, self.not_words)
        num_words = np.cumsum(is_word, axis=1)
        size = self.config.cache_size
        words = np.concatenate([recent, np.full(ids.shape, _EMPTY)], axis=1)  # the words of each row without gaps
        rows, columns = np.nonzero(is_word)
        words[rows, size - 1 + num_words[rows, columns]] = ids[rows, columns]
        windows = sliding_window_view(words, size, axis=1)
        caches = windows[np.arange(len(ids))[:, None], num_words]
        return np.concatenate([self.model.follow(inner, ids), caches], axis=2)

    def log_prob(self, contexts: Ints, words: Ints) -> Floats:
        log_probs = np.empty(len(words))
        for part in self._parts(len(words)):
            inner, recent = self._split(contexts[part])
            predicted = words[part]
            alone = self.model.log_prob(inner, predicted)
            end = self.model.log_prob(inner, np.full(len(inner), self.eos_id))
            hits = (recent == predicted[:, None]).astype(np.float64) @ self._weights
            mixed = self._mixed(np.exp(alone), np.exp(end), hits, self._weight(recent))
            log_probs[part] = np.where(self._is_filled(recent) & (predicted != self.eos_id), log(mixed), alone)
        return log_probs

    def log_probs(self, contexts: Ints) -> Floats:
        inner, recent = self._split(contexts)
        alone = self.model.log_probs(inner)
        rows, columns = np.nonzero(recent != _EMPTY)
        places = rows * self.vocab_size + recent[rows, columns]
        hits = np.asarray(np.bincount(places, self._weights[columns], minlength=alone.size), dtype=np.float64)
        hits = hits.reshape(alone.shape)
        ends = np.exp(alone[:, self.eos_id])
        mixed = log(self._mixed(np.exp(alone), ends[:, None], hits, self._weight(recent)[:, None]))
        mixed[:, self.eos_id] = alone[:, self.eos_id]
        return np.where(self._is_filled(recent)[:, None], mixed, alone)

    def arrays(self) -> Mapping[str, NDArray[np.generic]]:
        return self.model.arrays()  # the cache itself is not saved

    def _mixed(self, alone: Floats, end: Floats, hits: Floats, weight: Floats) -> Floats:
        share = self.config.cache_share
        return np.asarray((1 - share) * alone + share * (1 - end) * hits / weight)

    def _split(self, contexts: Ints) -> tuple[Ints, Ints]:
        width = contexts.shape[1] - self.config.cache_size
        return contexts[:, :width], contexts[:, width:]

    def _weight(self, recent: Ints) -> Floats:
        """The total weight of the words in each cache, [N]; 1 for an empty one."""
        return np.where(self._is_filled(recent), (recent != _EMPTY).astype(np.float64) @ self._weights, 1.0)

    def _is_filled(self, recent: Ints) -> Bools:
        """Whether a cache contains any word: the newest one is last."""
        return np.asarray(recent[:, -1] != _EMPTY)

    def _parts(self, num_rows: int) -> Iterator[slice]:
        step = max(1, _ELEMENTS // self.config.cache_size)
        return (slice(begin, begin + step) for begin in range(0, num_rows, step))
