"""Interface of count-based predictors, which `heed.models.counting` adapts to the contract of generators.

Also the array types and helpers that they share.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class Predictor(ABC):
    """P(w | context), where a context is D integers that represent all tokens so far."""

    @property
    @abstractmethod
    def vocab_size(self) -> int:
        """V, including the tokens that are never predicted."""

    @property
    @abstractmethod
    def start(self) -> Ints:
        """The context before the first token, [D]."""

    @abstractmethod
    def follow(self, contexts: Ints, ids: Ints) -> Ints:
        """The context after each token, [B, D] and [B, T] -> [B, T, D]."""

    @abstractmethod
    def log_prob(self, contexts: Ints, words: Ints) -> Floats:
        """log p(words[i] | contexts[i]), [N, D] and [N] -> [N] in nats; -inf for impossible tokens."""

    @abstractmethod
    def log_probs(self, contexts: Ints) -> Floats:
        """log p(w | contexts[i]) for every w, [N, D] -> [N, V] in nats."""

    @abstractmethod
    def arrays(self) -> Mapping[str, NDArray[np.generic]]:
        """The arrays to save."""


def log(probabilities: Floats) -> Floats:
    """Natural logarithm; -inf for 0, without a warning."""
    with np.errstate(divide="ignore"):
        return np.log(probabilities)


def starts(lengths: Ints) -> Ints:
    """The start of each of several consecutive parts, and the end of the last, [N] lengths -> [N + 1]."""
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths, dtype=np.int64)])


def members(parts: Ints, bounds: Ints) -> tuple[Ints, Ints]:
    """The members of the given parts, in order: the index in `parts` that each belongs to, and its position.

    Part p has the positions from `bounds[p]` to `bounds[p + 1]`.
    """
    begins = bounds[parts]
    lengths = bounds[parts + 1] - begins
    owners = np.repeat(np.arange(len(parts)), lengths)
    return owners, np.arange(len(owners)) + np.repeat(begins - starts(lengths)[:-1], lengths)
