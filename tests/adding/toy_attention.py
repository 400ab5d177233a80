"""An attention from outside heed: every position reads the average of all that it may attend to."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from heed.nn.attention import BEGINNING, Attention
from heed.nn.states import KeysValues, RowPositions


class Averaging(Attention):
    """Contexts Σ_s V x_s / S: uniform weights, so that the query does not matter."""

    name = "averaging"

    def __init__(self, d_model: int, num_heads: int, dropout: float) -> None:
        super().__init__()
        self.key_size, self.value_size = 1, d_model
        self.value = torch.nn.Linear(d_model, d_model)

    def project(self, memory: Float[Tensor, "B S D"], positions: RowPositions = BEGINNING) -> KeysValues:
        values = self.value(memory)[:, None]  # [B, 1, S, D]
        return torch.zeros_like(values[..., :1]), values

    def forward(self, x, memory, mask=None, positions=BEGINNING, dropout_keys=None, trace=None):  # type: ignore[no-untyped-def]
        _, values = self.keys_values(x, memory, positions)
        weights = x.new_zeros(values.shape[0], 1, x.shape[0] // values.shape[0] * x.shape[1], values.shape[2])
        if mask is not None:
            weights = weights.masked_fill(~mask, float("-inf"))
        contexts = weights.softmax(-1) @ values  # [B, 1, W T, D]
        return contexts.reshape(x.shape)
