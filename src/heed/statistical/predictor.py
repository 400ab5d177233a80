"""Protocol of count-based predictors, which `heed.models.counting` adapts to the contract of generators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from heed.statistical.arrays import Floats, Ints


class Predictor(Protocol):
    """P(w | context), where a context is D whole numbers that stand for all tokens so far."""

    @property
    def vocab_size(self) -> int:
        """V, with the tokens that are never predicted."""
        ...

    @property
    def start(self) -> Ints:
        """The context before the first token, [D]."""
        ...

    def follow(self, contexts: Ints, ids: Ints) -> Ints:
        """The context after each token, [B, D] and [B, T] -> [B, T, D]."""
        ...

    def log_prob(self, contexts: Ints, words: Ints) -> Floats:
        """log p(words[i] | contexts[i]), [N, D] and [N] -> [N] in nats; -inf for what is impossible."""
        ...

    def log_probs(self, contexts: Ints) -> Floats:
        """log p(w | contexts[i]) for every w, [N, D] -> [N, V] in nats."""
        ...

    def arrays(self) -> Mapping[str, NDArray[np.generic]]:
        """All there is to save."""
        ...
