"""Trellis network (Bai, Kolter & Koltun 2019): a temporal convolution with weights shared across levels.

Level i + 1 at time t is computed from level i and from the input, both at times t - 1 and t, with the same weights at
every level: ẑ = W_1 [x_{t-1}; z^i_{t-1}] + W_2 [x_t; z^i_t], and z^{i+1}_t from ẑ as in an LSTM:
c^{i+1}_t = σ(ẑ_1) ⊙ c^i_{t-1} + σ(ẑ_2) ⊙ tanh(ẑ_3), z^{i+1}_t = σ(ẑ_4) ⊙ tanh(c^{i+1}_t). Level 0 is zero, and so is
everything before the first token. With block-sparse weights it is a recurrent network truncated to M steps (theorem 1
of the paper); tests/models/test_trellisnet.py builds one.

Differs from the published code: the state holds the last column of each level, so a text may be cut anywhere; no
auxiliary losses at middle levels, no weight normalisation, no mixture of softmaxes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn.functional import linear

from heed.models.model import LanguageModel, ModelConfig
from heed.nn.contract import Trace, Vocabularies
from heed.nn.dropout_keys import DropoutKeys
from heed.nn.embeddings import uniform_weight
from heed.nn.heads import LinearHead
from heed.nn.states import RowState


class TrellisNetConfig(ModelConfig):
    """Sizes and regularisation of a trellis network."""

    kind: Literal["trellisnet"] = "trellisnet"
    """Kind of model: the key in `MODELS`."""
    d_model: int = Field(default=256, ge=1)
    """Size of the embeddings and of the output, which share one weight."""
    hidden_size: int = Field(default=512, ge=1)
    """Features of each level; the last d_model of them are the output, so it must be at least d_model."""
    num_levels: int = Field(default=20, ge=1, le=10000)
    """Number of levels; a prediction sees one token more than this."""
    dropout: float = Field(default=0.2, ge=0, lt=1)
    """Dropout of embeddings and output, the same at all positions (all dropout is rounded to 1/256)."""
    hidden_dropout: float = Field(default=0.0, ge=0, lt=1)
    """Dropout between levels, the same at all positions and levels."""
    weight_dropout: float = Field(default=0.0, ge=0, lt=1)
    """DropConnect: share of the weights between levels that are dropped in an update."""

    @model_validator(mode="after")
    def _check(self) -> TrellisNetConfig:
        if self.hidden_size < self.d_model:
            raise ValueError(
                f"model.hidden_size must be at least d_model, since the output is a part of the last level: got "
                f"{self.hidden_size} and {self.d_model}"
            )
        return self

    def summary(self) -> str:
        return (
            f"a trellis network of {self.num_levels} levels, {self.hidden_size} features and embeddings of "
            f"{self.d_model}"
        )


@dataclass(frozen=True)
class TrellisState(RowState):
    """The last column: the vector of the last token, and z and c of all levels below the last."""

    x: Float[Tensor, "B E"]
    z: Float[Tensor, "B L N"]
    c: Float[Tensor, "B L N"]
    dropout_keys: DropoutKeys | None = None


class TrellisNet(LanguageModel):
    """P(w_t | w_<t) by a trellis network over the last `num_levels` + 1 tokens."""

    Config = TrellisNetConfig
    reads = "stream"
    papers = "the trellis network (Bai et al. 2019)"

    def __init__(self, config: TrellisNetConfig, vocabularies: Vocabularies) -> None:
        super().__init__()
        self.config = config
        size, d_model = config.hidden_size, config.d_model
        self.embedding = uniform_weight(vocabularies.tgt_size, d_model, 0.1)
        # W_1 and W_2 as one matrix, applied to [previous; current]
        self.input = nn.Linear(2 * d_model, 4 * size)
        self.between = nn.Linear(2 * size, 4 * size, bias=False)
        for parameter in (*self.input.parameters(), *self.between.parameters()):
            if not parameter.is_meta:
                nn.init.normal_(parameter, std=0.01)
        self.head = LinearHead(self.embedding, vocabularies.pad_id)

    def initial_state(self, num_rows: int, reserve: int | None, dropout_keys: DropoutKeys | None) -> TrellisState:
        """Rows that have read nothing: all zeros."""
        column = self.embedding.new_zeros(num_rows, self.config.num_levels, self.config.hidden_size)
        return TrellisState(self.embedding.new_zeros(num_rows, self.config.d_model), column, column, dropout_keys)

    def advance(
        self, ids: Int[Tensor, "B T"], state: TrellisState, trace: Trace | None = None
    ) -> tuple[Float[Tensor, "B T D"], TrellisState]:
        """Features of the next token after each of the given ones: the last level's last features."""
        dropout_keys, config = state.dropout_keys, self.config
        x = self._locked(nn.functional.embedding(ids, self.embedding), config.dropout, dropout_keys, 0)
        injected = self.input(_with_before(state.x, x))
        between: Callable[[Tensor], Tensor] = self.between
        if dropout_keys is not None:
            between = partial(linear, weight=dropout_keys.weights(self.between.weight, config.weight_dropout, 0))
        z = x.new_zeros(*ids.shape, config.hidden_size)
        c, last_z, last_c = z, [], []
        for level in range(config.num_levels):
            last_z.append(z[:, -1])
            last_c.append(c[:, -1])
            gates = injected + between(_with_before(state.z[:, level], z))
            z, c = _gated(gates, _shifted(state.c[:, level], c))
            z = self._locked(z, config.hidden_dropout, dropout_keys, 1)
        features = self._locked(z[..., -config.d_model :], config.dropout, dropout_keys, 2)
        return features, TrellisState(x[:, -1], torch.stack(last_z, 1), torch.stack(last_c, 1), dropout_keys)

    @staticmethod
    def _locked(x: Tensor, probability: float, dropout_keys: DropoutKeys | None, site: int) -> Tensor:
        return x if dropout_keys is None else dropout_keys.locked(x, probability, site)


def _shifted(before: Float[Tensor, "B N"], x: Float[Tensor, "B T N"]) -> Float[Tensor, "B T N"]:
    """Vectors of one position earlier; `before` is that of the position before the first."""
    return torch.cat((before[:, None], x[:, :-1]), dim=1)


def _with_before(before: Float[Tensor, "B N"], x: Float[Tensor, "B T N"]) -> Float[Tensor, "B T M"]:
    """[previous; current] at each position (M = 2 N)."""
    return torch.cat((_shifted(before, x), x), dim=-1)


def _gated(gates: Float[Tensor, "B T G"], before: Float[Tensor, "B T N"]) -> tuple[Tensor, Tensor]:
    """z and c of the next level."""
    forget, enter, new, output = gates.chunk(4, dim=-1)
    c = torch.sigmoid(forget) * before + torch.sigmoid(enter) * torch.tanh(new)
    return torch.sigmoid(output) * torch.tanh(c), c
