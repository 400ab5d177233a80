"""Class-based n-gram models (Brown et al. 1992).

    p(w | h) = p(c(w) | c(h)) · p(w | c(w))

Each word belongs to one class, and p(w | c) is its share of the occurrences of the class; an unseen word counts as half
an occurrence. The model has fewer parameters than one of words, each estimated from more data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from heed.core.errors import DataError
from heed.statistical.backoff import BackoffModel
from heed.statistical.brown import Clustering
from heed.statistical.predictor import Bools, Floats, Ints, Predictor, log

PAD, BOS, EOS, FIRST = 0, 1, 2, 3
"""Ids of classes: padding and the ends of sentences are classes of their own, followed by the clusters."""
_UNSEEN = 0.5


@dataclass(frozen=True, eq=False)
class ClassModel(Predictor):
    """An n-gram model of classes, and the share of each word in its class."""

    classes: Ints
    """[V]: the class of each word."""
    log_shares: Floats
    """[V]: log p(w | c(w)) in nats; -inf for what is never predicted."""
    model: BackoffModel
    """Of the classes."""
    merges: Ints
    """[C - 1, 2]: the tree of the clusters, as in `Clustering`."""

    @classmethod
    def of(
        cls, classes: Ints, frequencies: Ints, predictable: Bools, model: BackoffModel, clustering: Clustering
    ) -> ClassModel:
        """From the class of each word, its frequency, and a model of the classes."""
        weights = np.where(predictable, np.maximum(frequencies, _UNSEEN), 0.0)
        sums = np.bincount(classes, weights, model.vocab_size)
        shares = weights / np.where(sums > 0, sums, 1)[classes]
        return cls(classes, log(shares), model, clustering.merges)

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[np.generic]], vocab_size: int, num_classes: int) -> ClassModel:
        """Read what `arrays` returned. Raises DataError for arrays of other sizes."""
        if missing := [name for name in ("classes", "log_shares", "merges") if name not in arrays]:
            raise DataError(f"not a class model: {missing[0]!r} is missing.")
        classes, merges = arrays["classes"].astype(np.int64), arrays["merges"].astype(np.int64)
        log_shares = arrays["log_shares"].astype(np.float64)
        fits = classes.shape == log_shares.shape == (vocab_size,) and merges.shape == (max(0, num_classes - 1), 2)
        if not fits or ((classes < 0) | (classes >= num_classes + FIRST)).any() or not (log_shares <= 0).all():
            raise DataError("not a class model: its sizes and numbers are inconsistent.")
        return cls(classes, log_shares, BackoffModel.from_arrays(arrays, num_classes + FIRST, BOS, EOS), merges)

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        return {
            **self.model.arrays(),
            "classes": self.classes.astype(np.int32),
            "log_shares": self.log_shares.astype(np.float32),
            "merges": self.merges.astype(np.int32),
        }

    @property
    def vocab_size(self) -> int:
        return len(self.classes)

    @property
    def start(self) -> Ints:
        return self.model.start

    def follow(self, contexts: Ints, ids: Ints) -> Ints:
        return self.model.follow(contexts, self.classes[ids])

    def log_prob(self, contexts: Ints, words: Ints) -> Floats:
        return np.asarray(self.model.log_prob(contexts, self.classes[words]) + self.log_shares[words])

    def log_probs(self, contexts: Ints) -> Floats:
        return np.asarray(self.model.log_probs(contexts)[:, self.classes] + self.log_shares)

    @cached_property
    def paths(self) -> list[str]:
        """The bit string of the class of each word; empty for padding and the ends of sentences."""
        of_clusters = Clustering(self.classes - FIRST, self.merges, 0.0).paths()
        return [of_clusters[c - FIRST] if c >= FIRST else "" for c in self.classes.tolist()]
