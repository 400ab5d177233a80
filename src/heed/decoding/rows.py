"""What may a rule of the search know of the rows that it judges?"""

from __future__ import annotations

from typing import Protocol

from jaxtyping import Int
from torch import Tensor


class Rows(Protocol):
    """The rows of one step; all of them are equally far."""

    @property
    def num_tokens(self) -> int:
        """Tokens of each row so far, those of a forced prefix included."""
        ...

    def row_sources(self) -> list[int]:
        """For each row the number of its source in the batch."""
        ...

    def row_tokens(self) -> Int[Tensor, "R T"]:
        """The tokens of each row so far, without begin of sentence."""
        ...
