"""Two texts in one row of ids, with an end of sentence between them, and attention from each to the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heed.nn.contract import Recorder


def segments_of(ids: Int[Tensor, "B N"], eos_id: int, num_segments: int) -> Int[Tensor, "B N"]:
    """The number of ends of sentence before each position, at most the last segment."""
    ends = (ids == eos_id).long()
    return (ends.cumsum(1) - ends).clamp(max=num_segments - 1)


@dataclass(frozen=True)
class Sides:
    """Which positions are those of the first text, which is the shorter one as a rule, and of the second."""

    first: Bool[Tensor, "B S"]
    second: Bool[Tensor, "B S"]

    @staticmethod
    def of(ids: Int[Tensor, "B S"], mask: Bool[Tensor, "B S"], eos_id: int) -> Sides:
        """The sides of rows of ids; the end of sentence between the texts belongs to the first one."""
        first = segments_of(ids, eos_id, 2) == 0
        return Sides(mask & first, mask & ~first)

    def exchange(
        self, keys: Float[Tensor, "B S K"], values: Float[Tensor, "B S D"], scores: Callable[[Tensor, Tensor], Tensor],
        record: Recorder | None = None,
    ) -> Float[Tensor, "B S D"]:  # fmt: skip
        """For each position the mean of the values of the other text, weighted by attention; 0 without one."""
        size = int(self.first.sum(1).max())  # the first text is at the beginning of each row
        head, beyond = keys[:, :size], keys.shape[1] - size
        to_first = attend(scores(keys, head), self.first[:, None, :size])
        to_second = attend(scores(head, keys), self.second[:, None])
        if record is not None:
            rows = nn.functional.pad(to_second, (0, 0, 0, beyond)), nn.functional.pad(to_first, (0, beyond))
            record(torch.where(self.first[..., None], *rows)[:, None])
        of_second = nn.functional.pad(to_second @ values, (0, 0, 0, beyond))
        return torch.where(self.first[..., None], of_second, to_first @ values[:, :size])

    def across(self) -> Bool[Tensor, "B S S"]:
        """Whether two positions are of different texts."""
        ahead = self.first[:, :, None] & self.second[:, None]
        return ahead | ahead.transpose(1, 2)


def attend(scores: Float[Tensor, "B T S"], mask: Bool[Tensor, "B #T S"]) -> Float[Tensor, "B T S"]:
    """A softmax over the positions where `mask` is True; zeros where it is True nowhere."""
    weights = scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(-1)
    return weights * mask
