"""Transformer encoder-decoder of "Attention Is All You Need" (Vaswani et al. 2017).

As in the paper: embeddings scaled by √D, sinusoidal positions, multi-head scaled dot-product attention,
two-layer ReLU feed-forward, LayerNorm(x + Dropout(Sublayer(x))), causal decoder, tied embeddings. Options that
differ from the paper: pre-norm (with a final normalisation on each side), dropout on attention weights, other
activations, separate depths, and the position encodings of Marian and of McAllester.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal, cast

from jaxtyping import Float, Int
from pydantic import Field, model_validator
from torch import Tensor, nn

from heed.core.config import KeyOf
from heed.models.model import GenerativeModel, ModelConfig, Shard
from heed.nn.attention import ATTENTION
from heed.nn.blocks import ACTIVATIONS, DecoderBlock, EncoderBlock
from heed.nn.contract import TokenSource, Trace, Vocabularies, recorder_of
from heed.nn.dropout_keys import DropoutKeys
from heed.nn.embeddings import TokenEmbedding, embedding_weight
from heed.nn.heads import LinearHead
from heed.nn.states import AppendKV, CachedState, Memory, RowPositions


class TransformerConfig(ModelConfig):
    """Sizes and choices of a Transformer encoder-decoder."""

    kind: Literal["transformer"] = "transformer"
    """Which model this is."""
    d_model: int = Field(default=256, ge=2)
    """Features of each position (D)."""
    d_ff: int = Field(default=1024, ge=1)
    """Features inside the feed-forward layers (F)."""
    num_heads: int = Field(default=4, ge=1)
    """Attention heads (H); must divide d_model."""
    num_encoder_layers: int = Field(default=3, ge=0, le=1000)
    """Number of encoder blocks."""
    num_decoder_layers: int = Field(default=3, ge=1, le=1000)
    """Number of decoder blocks."""
    dropout: float = Field(default=0.1, ge=0, lt=1)
    """Dropout of each sublayer's output and of the embeddings (rounded to 1/256)."""
    attention_dropout: float = Field(default=0.0, ge=0, lt=1)
    """Dropout of attention weights; none in the paper, but present in its published code."""
    norm: Literal["post", "pre"] = "post"
    """Normalise after the residual sum, as published, or before each sublayer."""
    attention: Annotated[str, KeyOf(ATTENTION)] = "multi_head"
    """The attention of all blocks."""
    activation: Annotated[str, KeyOf(ACTIVATIONS)] = "relu"
    """Activation of the feed-forward layers."""
    positions: Literal["interleaved", "half_split", "concatenated", "none"] = "interleaved"
    """Layout of the sinusoidal position encoding; "concatenated" appends it to the embedding, "none" omits it."""
    tie: Literal["all", "target", "none"] = "all"
    """Share weights: source and target embedding and output ("all"), target embedding and output, or nothing."""
    output_bias: bool = True
    """Add a bias for each word in the output layer."""

    @model_validator(mode="after")
    def _check(self) -> TransformerConfig:
        if self.d_model % self.num_heads:
            raise ValueError(f"num_heads must divide d_model, got {self.num_heads} and {self.d_model}")
        if self.d_model % 2:
            raise ValueError(f"d_model must be even for sinusoidal positions, got {self.d_model}")
        if self.positions == "concatenated" and self.tie != "none":
            raise ValueError('positions = "concatenated" makes embeddings smaller than d_model: set tie = "none"')
        if self.positions == "concatenated" and self.d_model % 8:
            raise ValueError("concatenated positions take a quarter of d_model, which must be a multiple of 8")
        return self

    def summary(self) -> str:
        """The model in a phrase, for reports."""
        return (
            f"a Transformer encoder-decoder ({self.norm}-norm) of {self.num_encoder_layers} + "
            f"{self.num_decoder_layers} layers, {self.d_model} features, {self.num_heads} heads and "
            f"{self.d_ff:,} features inside the feed-forward layers"
        )


class TransformerEncoder(nn.Module):
    """Encoder of self-attention blocks: a reader (`heed.nn.contract.Reader`)."""

    def __init__(self, config: TransformerConfig, embedding: TokenEmbedding) -> None:
        super().__init__()
        self.embedding = embedding
        self.blocks = nn.ModuleList(
            EncoderBlock(
                config.d_model, config.num_heads, config.d_ff, config.dropout, config.attention_dropout,
                config.norm == "pre", config.activation, config.attention,
            )
            for _ in range(config.num_encoder_layers)
        )  # fmt: skip
        self.norm = nn.LayerNorm(config.d_model) if config.norm == "pre" else nn.Identity()

    def read(
        self, source: TokenSource, dropout_keys: DropoutKeys | None = None, trace: Trace | None = None
    ) -> Float[Tensor, "B S D"]:
        """One vector for each source position."""
        mask = None if bool(source.mask.all()) else source.mask[:, None, None]
        x = self.embedding(source.ids, dropout_keys and dropout_keys.fold(0))
        for index, block in enumerate(self.blocks):
            recorder = recorder_of(trace, f"encoder.{index}.self")
            x = block(x, mask, dropout_keys and dropout_keys.fold(1 + index), recorder)
        memory: Tensor = self.norm(x)
        return memory


class Transformer(GenerativeModel):
    """P(w_t | w_<t, source) by attention only."""

    Config = TransformerConfig
    needs_source = True
    papers = "the Transformer (Vaswani et al. 2017)"

    def __init__(self, config: TransformerConfig, vocabularies: Vocabularies) -> None:
        super().__init__()
        if config.tie == "all":
            vocabularies.require_equal_sizes()
        self.config = config
        size = config.d_model * 3 // 4 if config.positions == "concatenated" else config.d_model
        tgt_weight = embedding_weight(vocabularies.tgt_size, size)
        src_weight = tgt_weight if config.tie == "all" else embedding_weight(vocabularies.src_size, size)
        out_weight = tgt_weight if config.tie != "none" else embedding_weight(vocabularies.tgt_size, config.d_model)
        self.encoder = TransformerEncoder(config, self._embedding(src_weight))
        self.embedding = self._embedding(tgt_weight)
        self.blocks = nn.ModuleList(
            DecoderBlock(
                config.d_model, config.num_heads, config.d_ff, config.dropout, config.attention_dropout,
                config.norm == "pre", config.activation, config.attention,
            )
            for _ in range(config.num_decoder_layers)
        )  # fmt: skip
        self.norm = nn.LayerNorm(config.d_model) if config.norm == "pre" else nn.Identity()
        self.head = LinearHead(out_weight, vocabularies.pad_id, config.output_bias)

    def _embedding(self, weight: nn.Parameter) -> TokenEmbedding:
        return TokenEmbedding(weight, self.config.d_model, self.config.positions, self.config.dropout)

    def shards(self) -> Iterable[Shard]:
        """The blocks; before each decoder block its attention to the source, which `start` uses alone."""
        for block in self.encoder.blocks:
            yield block, ()
        for block in cast(Iterable[DecoderBlock], self.blocks):
            yield block.cross_attention, ("project",)
            yield block, ()

    def start(
        self,
        source: TokenSource | None,
        rows_per_source: int = 1,
        reserve: int | None = None,
        dropout_keys: DropoutKeys | None = None,
    ) -> CachedState:
        """Encode the source and project the keys and values of each decoder block."""
        if source is None:
            raise ValueError("a translation model needs a source")
        encoded = self.encoder.read(source, dropout_keys and dropout_keys.fold(1))
        blocks = cast(Sequence[DecoderBlock], self.blocks)
        layers = tuple(block.cross_attention.project(encoded) for block in blocks)
        memory = Memory(layers, source.mask, rows_per_source)
        caches = tuple(block.self_attention.empty_cache(memory.num_rows, reserve or 0, encoded) for block in blocks)
        row_keys = dropout_keys and dropout_keys.fold(2).repeat(rows_per_source)
        return CachedState(caches, RowPositions(), memory, row_keys)

    def advance(
        self, ids: Int[Tensor, "B T"], state: CachedState, trace: Trace | None = None
    ) -> tuple[Float[Tensor, "B T D"], CachedState]:
        """Features of the next token after each of the given ones."""
        columns, dropout_keys = state.columns, state.dropout_keys
        x = self.embedding(ids, dropout_keys and dropout_keys.fold(0), columns.length, columns.first)
        self_mask = columns.causal_mask(ids.shape[1], ids.device)
        memory_mask = state.memory.attention_mask()
        appending = [AppendKV(cache, columns.length) for cache in state.caches]
        for index, (block, append_kv) in enumerate(zip(self.blocks, appending, strict=True)):
            x = block(
                x, append_kv, self_mask, state.memory.layers[index], memory_mask, columns,
                dropout_keys and dropout_keys.fold(1 + index), trace, f"decoder.{index}",
            )  # fmt: skip
        caches = tuple(append_kv.cache for append_kv in appending)
        return self.norm(x), CachedState(caches, columns.after(ids.shape[1]), state.memory, dropout_keys)
