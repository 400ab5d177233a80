"""Exact top-k over a vocabulary, faster on CPU than `torch.topk`.

`torch.topk` over a vocabulary costs as much on CPU as the output projection of a small model. Two stages do less work:
the k largest values lie in the k groups with the largest maxima, so only those groups are sorted.
"""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

GROUP_SIZE = 64
SMALL_ROW = 1024
"""Rows up to this size are sorted whole."""


def top_k(scores: Float[Tensor, "R V"], k: int) -> tuple[Float[Tensor, "R k"], Int[Tensor, "R k"]]:
    """Values and indices of the k largest of each row, largest first. Equal to `torch.topk` up to ties."""
    num_rows, size = scores.shape
    num_groups = size // GROUP_SIZE
    if scores.device.type != "cpu" or num_groups < 4 * k:
        return scores.topk(k, dim=-1)
    whole = num_groups * GROUP_SIZE
    groups = scores[:, :whole].view(num_rows, num_groups, GROUP_SIZE)
    best_groups = groups.amax(dim=-1).topk(k, dim=-1).indices  # [R, k]
    candidates = groups.gather(1, best_groups[..., None].expand(-1, -1, GROUP_SIZE)).flatten(1)
    index = (best_groups[..., None] * GROUP_SIZE + torch.arange(GROUP_SIZE)).flatten(1)
    if whole < size:
        candidates = torch.cat((candidates, scores[:, whole:]), dim=1)
        index = torch.cat((index, torch.arange(whole, size).expand(num_rows, -1)), dim=1)
    values, chosen = candidates.topk(k, dim=-1)
    return values, index.gather(1, chosen)


def stable_top_k(scores: Float[Tensor, "R V"], k: int) -> tuple[Float[Tensor, "R k"], Int[Tensor, "R k"]]:
    """As `top_k`, and of equal values the one with the smaller index comes first."""
    if 2 * k < scores.shape[1] and scores.shape[1] > SMALL_ROW:
        values, tokens = top_k(scores, k)
        if int((scores >= values[:, -1:]).sum()) == values.numel():  # the last of them has no equal outside
            tokens, order = tokens.sort(dim=-1)
            values, order = values.gather(1, order).sort(dim=-1, descending=True, stable=True)
            return values, tokens.gather(1, order)
    values, tokens = scores.sort(dim=-1, descending=True, stable=True)
    return values[:, :k], tokens[:, :k]
