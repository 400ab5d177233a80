"""Decoder-only Transformer language model of GPT-2 (Radford et al. 2019).

As in its published code: learned positions, pre-norm blocks with a final normalisation, GELU in its tanh form, biases,
the embedding as the output weight. Weights are initialised as N(0, 0.02), those of layers that write to the residual
stream as N(0, 0.02 / √(2 L)).

There are `max_len` positions; `models/limited_context.py` describes how longer texts are read.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, cast

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from pydantic import Field, model_validator
from torch import Tensor, nn

from heed.core.config import KeyOf
from heed.core.errors import DataError, UsageError
from heed.models.block_step import BlockStep, can_step
from heed.models.limited_context import LimitedContext
from heed.models.model import ModelConfig, Shard
from heed.nn.affine import Linear
from heed.nn.attention import ATTENTION
from heed.nn.contract import Recorder, Trace, Vocabularies, recorder_of
from heed.nn.dropout_keys import DropoutKeys, dropout
from heed.nn.heads import LinearHead
from heed.nn.packing import function_of, gelu_function_of
from heed.nn.states import AppendKV, KeyValueCache, RowPositions


class GptConfig(ModelConfig):
    """Sizes and choices of a decoder-only Transformer."""

    kind: Literal["gpt"] = "gpt"
    """Kind of model: the key in `MODELS`."""
    d_model: int = Field(default=256, ge=1)
    """Features of each position (D)."""
    d_ff: int = Field(default=1024, ge=1)
    """Features inside the feed-forward layers (F); four times d_model in GPT-2."""
    num_heads: int = Field(default=4, ge=1)
    """Attention heads (H); must divide d_model."""
    num_layers: int = Field(default=4, ge=1, le=1000)
    """Blocks (L)."""
    max_len: int = Field(default=256, ge=2)
    """Number of positions: the maximum number of tokens that are visible at once."""
    dropout: float = Field(default=0.1, ge=0, lt=1)
    """Dropout of the embeddings and of each sublayer's output (rounded to 1/256)."""
    attention: Annotated[str, KeyOf(ATTENTION)] = "fused_multi_head"
    """The attention of all blocks."""
    attention_dropout: float = Field(default=0.1, ge=0, lt=1)
    """Dropout of attention weights."""
    output_bias: bool = False
    """Add a bias for each token in the output layer; GPT-2 has none."""

    @model_validator(mode="after")
    def _check(self) -> GptConfig:
        if self.d_model % self.num_heads:
            raise ValueError(f"num_heads must divide d_model, got {self.num_heads} and {self.d_model}")
        return self

    @property
    def max_positions(self) -> int:
        return self.max_len

    def summary(self) -> str:
        return (
            f"a decoder-only Transformer of {self.num_layers} layers, {self.d_model} features, {self.num_heads} heads, "
            f"{self.d_ff:,} features inside the feed-forward layers and {self.max_len} positions"
        )


class GptBlock(nn.Module):
    """x + Attention(LayerNorm(x)), then x + W_2 gelu(W_1 LayerNorm(x) + b_1) + b_2."""

    def __init__(self, config: GptConfig) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(config.d_model)
        attention = ATTENTION[config.attention]
        self.attention = attention.in_block(config.d_model, config.num_heads, config.attention_dropout)
        self.feed_forward_norm = nn.LayerNorm(config.d_model)
        self.expand = Linear(config.d_model, config.d_ff)
        self.contract = Linear(config.d_ff, config.d_model)
        self.dropout = config.dropout
        self.step: BlockStep | None = None
        """For single tokens, after `make_step`."""

    def make_step(self) -> None:
        """Prepare `step`, if it knows the attention of this block."""
        if can_step(self.attention):
            expand, contract = gelu_function_of(self.expand), function_of(self.contract)
            self.step = BlockStep(
                cast(Any, self.attention), None, lambda x: contract(expand(x)),
                [self.attention_norm, self.feed_forward_norm], pre_norm=True,
            )  # fmt: skip

    def forward(
        self, x: Float[Tensor, "B T D"], append_kv: AppendKV, mask: Bool[Tensor, "..."] | None, columns: RowPositions,
        dropout_keys: DropoutKeys | None, trace: Recorder | None,
    ) -> Float[Tensor, "B T D"]:  # fmt: skip
        """The same shape. `columns` are those before `x`; their keys and values are in the cache of `append_kv`."""
        inner = dropout_keys and dropout_keys.fold(0)
        attended = self.attention(self.attention_norm(x), append_kv, mask, columns, inner, trace)
        x = x + dropout(attended, self.dropout, dropout_keys, 1, columns.length)
        hidden = F.gelu(self.expand(self.feed_forward_norm(x)), approximate="tanh")
        return x + dropout(self.contract(hidden), self.dropout, dropout_keys, 2, columns.length)


class Gpt(LimitedContext):
    """P(w_t | w_<t) by causal self-attention."""

    Config = GptConfig
    replayable = True
    papers = "the decoder-only Transformer of GPT-2 (Radford et al. 2019)"

    def __init__(self, config: GptConfig, vocabularies: Vocabularies) -> None:
        super().__init__(config.max_len)
        self.config = config
        self.embedding = nn.Parameter(torch.empty(vocabularies.tgt_size, config.d_model))
        self.positions = nn.Parameter(torch.empty(config.max_len, config.d_model))
        self.blocks = nn.ModuleList(GptBlock(config) for _ in range(config.num_layers))
        self.norm = nn.LayerNorm(config.d_model)
        self.head = LinearHead(self.embedding, vocabularies.pad_id, config.output_bias)
        self._initialise()

    def _initialise(self) -> None:
        if self.embedding.is_meta:  # only shapes are needed
            return
        into_residual = 0.02 / math.sqrt(2 * self.config.num_layers)
        for name, parameter in self.named_parameters():
            if name.endswith(("attention.output.weight", "contract.weight")):
                nn.init.normal_(parameter, std=into_residual)
            elif parameter.ndim == 2:
                nn.init.normal_(parameter, std=0.02)
            elif "norm" not in name:
                nn.init.zeros_(parameter)

    def empty_caches(self, num_rows: int, capacity: int, like: Tensor) -> Iterable[KeyValueCache]:
        """One cache for each block."""
        return (
            block.attention.empty_cache(num_rows, capacity, like) for block in cast(Iterable[GptBlock], self.blocks)
        )

    def shards(self) -> Iterable[Shard]:
        """The blocks."""
        return ((block, ()) for block in self.blocks)

    def compute(
        self, ids: Int[Tensor, "B T"], columns: RowPositions, caches: Sequence[AppendKV],
        dropout_keys: DropoutKeys | None, trace: Trace | None,
    ) -> Float[Tensor, "B T D"]:  # fmt: skip
        """LayerNorm(h_L), h_0 = E[w] + P[t]."""
        if ids.shape[1] == 1 and columns.first is None and dropout_keys is None and trace is None:
            steps = [block.step for block in cast(Iterable[GptBlock], self.blocks)]
            if all(step and append_kv.has_room for step, append_kv in zip(steps, caches, strict=True)):
                x = F.embedding(ids[:, 0], self.embedding) + self.positions[columns.length]
                for step, append_kv in zip(steps, caches, strict=True):
                    x = cast(BlockStep, step)(x, append_kv)
                return cast(Tensor, self.norm(x))[:, None]
        return self._layers(ids, columns, caches, dropout_keys, trace)[-1]

    def hidden_layers(
        self, ids: Int[Tensor, "B T"], dropout_keys: DropoutKeys | None = None
    ) -> list[Float[Tensor, "B T D"]]:
        """The embeddings with their positions, and the output of each block; that of the last one is normalised.

        Raises DataError for a text that is longer than the positions.
        """
        if ids.shape[1] > self.max_len:
            raise DataError(
                f"a text of {ids.shape[1]:,} tokens is longer than the {self.max_len:,} positions of the language "
                "model (model.max_len): shorten it."
            )
        caches = [AppendKV(cache, 0) for cache in self.empty_caches(len(ids), 0, self.embedding)]
        return self._layers(ids, RowPositions(), caches, dropout_keys, None)

    def require_ctranslate2(self) -> None:
        """Raises UsageError for another attention than multi-head attention."""
        if self.config.attention != "fused_multi_head":
            raise UsageError(f"CTranslate2 does not have the attention {self.config.attention!r}.")

    def ctranslate2_specification(self, num_positions: int) -> Any:
        """As the base class, for texts of up to `max_len` tokens."""
        from heed.models.ctranslate2 import gpt_specification

        return gpt_specification(self)

    def _layers(
        self, ids: Int[Tensor, "B T"], columns: RowPositions, caches: Sequence[AppendKV],
        dropout_keys: DropoutKeys | None, trace: Trace | None,
    ) -> list[Float[Tensor, "B T D"]]:  # fmt: skip
        """h_0 … LayerNorm(h_L)."""
        x = F.embedding(ids, self.embedding) + F.embedding(columns.positions(ids.shape[1], ids.device), self.positions)
        x = dropout(x, self.config.dropout, dropout_keys and dropout_keys.fold(0), 0, columns.length)
        mask, layers = columns.causal_mask(ids.shape[1], ids.device), [x]
        for number, (block, append_kv) in enumerate(zip(self.blocks, caches, strict=True)):
            inner, recorder = (
                dropout_keys and dropout_keys.fold(1 + number),
                recorder_of(trace, f"decoder.{number}.self"),
            )
            x = block(x, append_kv, mask, columns, inner, recorder)
            layers.append(x)
        return [*layers[:-1], self.norm(layers[-1])]
