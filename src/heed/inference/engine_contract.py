"""Engine contract: a program or a model that searches by itself, instead of the common loop."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from heed.decoding.hypothesis import Hypothesis
from heed.decoding.options import Request, SearchOptions


class Engine(Protocol):
    """Searches whole batches of requests."""

    num_workers: int
    """Batches that are searched at the same time."""

    def can_search(self, options: SearchOptions) -> bool:
        """Whether searches with these options are its own; others are left to the common loop."""
        ...

    def search(
        self, requests: Sequence[Request], options: SearchOptions, with_tokens: bool = True, num_batches: int = 0
    ) -> dict[Request, list[Hypothesis]]:
        """The hypotheses of each request, best first and without texts; a missing request is left to the loop.

        `with_tokens`: with the log-probability of each token, if it has them. `num_batches`: into how many batches the
        requests are split (0: one for each worker).
        """
        ...
