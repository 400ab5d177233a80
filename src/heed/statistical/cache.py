"""Cache models: a mixture of a model with the recent past (Kuhn & De Mori 1990).

    p(w | h) = (1 - λ) p_m(w | h) + λ (1 - p_m(end | h)) · Σ_i r^i [w_i = w] / Σ_i r^i        for a word w
    p(end | h) = p_m(end | h)

w_0, w_1, ... are the last K words, the newest first, and r <= 1 lets older ones count less (Clarkson & Robinson 1997).
The cache says which word comes, not whether the sentence ends, and begins and ends of sentences are not in it; where a
text is read as one stream, it goes on over them. While it is empty, the model speaks alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from pydantic import Field

from heed.core.config import Config
from heed.statistical.arrays import Bools, Floats, Ints, log
from heed.statistical.predictor import Predictor

_EMPTY = -1
_ELEMENTS = 1 << 22
"""Words of caches that are looked at at once."""


class CacheConfig(Config):
    """A cache of the words that came last."""

    cache_share: float = Field(default=0.0, ge=0, lt=1)
    """λ: the share of the cache in every word's probability; 0: there is none. With data.text_as = "stream" it holds
    the lines before, else only what came before in the line."""
    cache_size: int = Field(default=500, ge=1, le=100_000)
    """K: so many words are in it."""
    cache_decay: float = Field(default=1.0, gt=0, le=1)
    """r: a word counts so many times what the next newer one does."""


class Cached:
    """A predictor with a cache. A context is the predictor's, and behind it the K last words, the newest last."""

    def __init__(self, model: Predictor, config: CacheConfig, eos_id: int, not_words: tuple[int, ...]) -> None:
        self.model = model
        self.config = config
        self.eos_id = eos_id
        self.not_words = np.array(not_words)
        """Ids that never get into the cache: padding, begin and end of sentence."""
        ages = np.arange(config.cache_size)[::-1]
        self._weights = config.cache_decay ** ages.astype(np.float64)

    @property
    def vocab_size(self) -> int:
        """V, with the tokens that are never predicted."""
        return self.model.vocab_size

    @property
    def start(self) -> Ints:
        """The predictor's, and an empty cache, [D]."""
        return np.concatenate([self.model.start, np.full(self.config.cache_size, _EMPTY)])

    def follow(self, contexts: Ints, ids: Ints) -> Ints:
        """The context after each token, [B, D] and [B, T] -> [B, T, D]."""
        inner, recent = self._split(contexts)
        is_word = ~np.isin(ids, self.not_words)
        num_words = np.cumsum(is_word, axis=1)
        size = self.config.cache_size
        words = np.concatenate([recent, np.full(ids.shape, _EMPTY)], axis=1)  # those of each row without gaps
        rows, columns = np.nonzero(is_word)
        words[rows, size - 1 + num_words[rows, columns]] = ids[rows, columns]
        windows = sliding_window_view(words, size, axis=1)
        caches = windows[np.arange(len(ids))[:, None], num_words]
        return np.concatenate([self.model.follow(inner, ids), caches], axis=2)

    def log_prob(self, contexts: Ints, words: Ints) -> Floats:
        """log p(words[i] | contexts[i]), [N, D] and [N] -> [N] in nats."""
        found = np.empty(len(words))
        for part in self._parts(len(words)):
            inner, recent = self._split(contexts[part])
            wanted = words[part]
            alone = self.model.log_prob(inner, wanted)
            end = self.model.log_prob(inner, np.full(len(inner), self.eos_id))
            hits = (recent == wanted[:, None]).astype(np.float64) @ self._weights
            mixed = self._mixed(np.exp(alone), np.exp(end), hits, self._filled(recent))
            found[part] = np.where(self._speaks(recent) & (wanted != self.eos_id), log(mixed), alone)
        return found

    def log_probs(self, contexts: Ints) -> Floats:
        """log p(w | contexts[i]) for every w, [N, D] -> [N, V] in nats."""
        inner, recent = self._split(contexts)
        alone = self.model.log_probs(inner)
        rows, columns = np.nonzero(recent != _EMPTY)
        places = rows * self.vocab_size + recent[rows, columns]
        hits = np.asarray(np.bincount(places, self._weights[columns], minlength=alone.size), dtype=np.float64)
        hits = hits.reshape(alone.shape)
        ends = np.exp(alone[:, self.eos_id])
        mixed = log(self._mixed(np.exp(alone), ends[:, None], hits, self._filled(recent)[:, None]))
        mixed[:, self.eos_id] = alone[:, self.eos_id]
        return np.where(self._speaks(recent)[:, None], mixed, alone)

    def arrays(self) -> Mapping[str, NDArray[np.generic]]:
        """The predictor's: a cache is filled by what is read."""
        return self.model.arrays()

    def _mixed(self, alone: Floats, end: Floats, hits: Floats, filled: Floats) -> Floats:
        share = self.config.cache_share
        return np.asarray((1 - share) * alone + share * (1 - end) * hits / filled)

    def _split(self, contexts: Ints) -> tuple[Ints, Ints]:
        width = contexts.shape[1] - self.config.cache_size
        return contexts[:, :width], contexts[:, width:]

    def _filled(self, recent: Ints) -> Floats:
        """The weights of what is in each cache, [N]; 1 for an empty one."""
        return np.where(self._speaks(recent), (recent != _EMPTY).astype(np.float64) @ self._weights, 1.0)

    def _speaks(self, recent: Ints) -> Bools:
        """Whether a cache holds anything: the newest word is the last one."""
        return np.asarray(recent[:, -1] != _EMPTY)

    def _parts(self, num_rows: int) -> Iterator[slice]:
        step = max(1, _ELEMENTS // self.config.cache_size)
        return (slice(begin, begin + step) for begin in range(0, num_rows, step))
