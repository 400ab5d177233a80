"""Models and rows with given outputs, for tests of search and of logit rules."""

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
        """Number of tokens of each row."""
        return len(self.tokens[0])

    def row_sources(self) -> list[int]:
        """The source of each row; by default its own."""
        return list(self.sources if self.sources is not None else range(len(self.tokens)))

    def row_tokens(self) -> torch.Tensor:
        """The tokens `[R, T]`."""
        return torch.tensor(self.tokens, dtype=torch.long).reshape(len(self.tokens), -1)


class ScriptedModel(HashedModel):
    """A model that gives each source exactly the outputs of a script with their probabilities."""

    def __init__(self, vocab_size: int, script: Mapping[Output, Mapping[Output, float]]) -> None:
        super().__init__(vocab_size)
        self.script = script

    def distribution(self, seen: tuple[int, ...]) -> torch.Tensor:
        """The next tokens of the outputs that begin with the tokens so far."""
        source = tuple(id for id in seen if id >= 0 and id != EOS)
        prefix = tuple(-1 - id for id in seen if id < 0)[1:]
        assert -1 - BOS in seen
        weights = torch.zeros(self.vocab_size)
        for output, probability in self.script[source].items():
            whole = (*output, EOS)
            if whole[: len(prefix)] == prefix and len(whole) > len(prefix):
                weights[whole[len(prefix)]] += probability
        if not weights.any():  # only for rows of probability 0
            weights += 1.0
        return (weights / weights.sum()).log()
