"""Models and rows that are written down: what does a search or a rule make of exactly these?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from hashed_model import HashedModel
from random_models import BOS, EOS

Output = tuple[int, ...]


@dataclass(frozen=True)
class FixedRows:
    """Rows with these tokens."""

    tokens: Sequence[Sequence[int]]
    sources: Sequence[int] | None = None

    @property
    def num_tokens(self) -> int:
        """Of each."""
        return len(self.tokens[0])

    def row_sources(self) -> list[int]:
        """Each its own, where nothing else is said."""
        return list(self.sources if self.sources is not None else range(len(self.tokens)))

    def row_tokens(self) -> torch.Tensor:
        """`[R, T]`"""
        return torch.tensor(self.tokens, dtype=torch.long).reshape(len(self.tokens), -1)


class ScriptedModel(HashedModel):
    """Gives each source the outputs that are written down for it, with these probabilities, and nothing else."""

    def __init__(self, vocab_size: int, script: Mapping[Output, Mapping[Output, float]]) -> None:
        super().__init__(vocab_size)
        self.script = script

    def distribution(self, seen: tuple[int, ...]) -> torch.Tensor:
        """What the outputs that begin with the tokens so far go on with."""
        source = tuple(id for id in seen if id >= 0 and id != EOS)
        said = tuple(-1 - id for id in seen if id < 0)[1:]
        assert -1 - BOS in seen
        weights = torch.zeros(self.vocab_size)
        for output, probability in self.script[source].items():
            whole = (*output, EOS)
            if whole[: len(said)] == said and len(whole) > len(said):
                weights[whole[len(said)]] += probability
        if not weights.any():  # nobody comes here but rows of probability 0
            weights += 1.0
        return (weights / weights.sum()).log()
