"""Transformer encoder-decoder of "Attention Is All You Need" (Vaswani et al. 2017).

As in the paper: embeddings scaled by √D, sinusoidal positions, multi-head scaled dot-product attention, two-layer ReLU
feed-forward, post-norm residual sublayers LayerNorm(x + Dropout(Sublayer(x))), causal decoder, tied embeddings. Options
that differ from the paper: pre-norm, x + Dropout(Sublayer(LayerNorm(x))) with a final normalisation on each side (Xiong
et al. 2020), dropout on attention weights, other activations, separate depths, and the position encodings of Marian and
of McAllester. The attention "multi_head" adds a bias to each product, as most implementations do; the paper writes
none, which is "multi_head_without_bias". The output layer has a bias, too, unless `output_bias` is false.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable
from typing import Annotated, Any, Literal, Protocol, cast

from jaxtyping import Bool, Float, Int
from pydantic import Field, model_validator
from torch import Tensor, nn

from heed.core.config import KeyOf
from heed.core.errors import UsageError
from heed.models.block_step import BlockStep, can_step
from heed.models.model import GenerativeModel, ModelConfig, Shard
from heed.nn.attention import ATTENTION, BEGINNING, Attention, MultiHeadAttention
from heed.nn.causal_mixing import CAUSAL_MIXING, CausalMixing
from heed.nn.contract import Recorder, TokenSource, Trace, Vocabularies, recorder_of
from heed.nn.dropout_keys import DropoutKeys, dropout
from heed.nn.embeddings import TokenEmbedding, embedding_weight
from heed.nn.feed_forward import ACTIVATIONS, FeedForward
from heed.nn.heads import LinearHead
from heed.nn.states import AppendKV, CachedState, Carry, KeysValues, Memory, RowPositions, attention_mask

ENCODER_ATTENTION: ChainMap[str, Any] = ChainMap({"same": Attention}, ATTENTION)
"""The self-attention of an encoder, which may be that of the decoder."""
DECODER_MIXING: dict[str, type[nn.Module]] = {"self_attention": Attention, **CAUSAL_MIXING}
"""What a decoder block reads the earlier tokens with."""


class TransformerConfig(ModelConfig):
    """Sizes and choices of a Transformer encoder-decoder."""

    kind: Literal["transformer"] = "transformer"
    """Kind of model: the key in `MODELS`."""
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
    encoder_attention: Annotated[str, KeyOf(ENCODER_ATTENTION)] = "same"
    """The self-attention of the encoder's blocks: "same" as `attention`, or another one."""
    decoder_mixing: Annotated[str, KeyOf(DECODER_MIXING)] = "self_attention"
    """How the decoder's blocks read the earlier tokens; all but "self_attention" carry one vector for each row."""
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
        return (
            f"a Transformer encoder-decoder ({self.norm}-norm) of {self.num_encoder_layers} + "
            f"{self.num_decoder_layers} layers, {self.d_model} features, {self.num_heads} heads and "
            f"{self.d_ff:,} features inside the feed-forward layers{self._variants()}"
        )

    def _variants(self) -> str:
        """What `encoder_attention` and `decoder_mixing` change, for `summary`."""
        variants = [] if self.encoder_attention == "same" else [f"{self.encoder_attention} attention in the encoder"]
        if not self.decoder_attends:
            variants.append(f"{self.decoder_mixing} in place of the decoder's self-attention")
        return f", with {' and '.join(variants)}" if variants else ""

    def encoder_block(self) -> TransformerConfig:
        """The settings of the encoder's blocks."""
        own = self.encoder_attention != "same"
        return self.model_copy(update={"attention": self.encoder_attention}) if own else self

    @property
    def decoder_attends(self) -> bool:
        """Whether the decoder has keys and values of the earlier tokens, which need a mask."""
        return self.decoder_mixing == "self_attention"


class BlockConfig(Protocol):
    """The settings of one block, which each model with such blocks has in its config."""

    d_model: int
    d_ff: int
    num_heads: int
    dropout: float
    attention_dropout: float
    norm: Literal["post", "pre"]
    attention: str
    activation: str


LAYER_NORM_EPSILON = 1e-5
"""PyTorch's own, added to the variance in layer normalisation."""


class Residual(nn.Module):
    """The residual connection and the normalisation around one sublayer."""

    def __init__(self, config: BlockConfig, epsilon: float = LAYER_NORM_EPSILON) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(config.d_model, epsilon)
        self.pre_norm = config.norm == "pre"
        self.dropout = config.dropout

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        sublayer: Callable[[Tensor], Tensor],
        dropout_keys: DropoutKeys | None,
        site: int,
        offset: int = 0,
    ) -> Float[Tensor, "B T D"]:
        """LayerNorm(x + Dropout(Sublayer(x))), or its pre-norm form."""
        if self.pre_norm:
            return x + dropout(sublayer(self.norm(x)), self.dropout, dropout_keys, site, offset)
        normalised: Tensor = self.norm(x + dropout(sublayer(x), self.dropout, dropout_keys, site, offset))
        return normalised


def _attention(config: BlockConfig) -> Attention:
    return ATTENTION[config.attention].in_block(config.d_model, config.num_heads, config.attention_dropout)


def _decoder_mixing(config: TransformerConfig) -> Attention | CausalMixing:
    if config.decoder_attends:
        return _attention(config)
    return CAUSAL_MIXING[config.decoder_mixing].in_block(config.d_model, config.d_ff, config.activation)


class EncoderBlock(nn.Module):
    """Self-attention over the whole source, then the feed-forward layer."""

    def __init__(self, config: BlockConfig, epsilon: float = LAYER_NORM_EPSILON) -> None:
        super().__init__()
        self.attention = _attention(config)
        self.feed_forward = FeedForward(config.d_model, config.d_ff, config.activation)
        self.attention_residual = Residual(config, epsilon)
        self.feed_forward_residual = Residual(config, epsilon)

    def forward(
        self, x: Float[Tensor, "B S D"], mask: Bool[Tensor, "B 1 1 S"] | None, dropout_keys: DropoutKeys | None,
        trace: Recorder | None = None,
    ) -> Float[Tensor, "B S D"]:  # fmt: skip
        """The same shape; padding is not attended to."""

        def attend(x: Tensor) -> Tensor:
            inner = dropout_keys and dropout_keys.fold(0)
            contexts: Tensor = self.attention(x, self.attention.project(x), mask, BEGINNING, inner, trace)
            return contexts

        x = self.attention_residual(x, attend, dropout_keys, site=1)
        x = self.feed_forward_residual(x, self.feed_forward, dropout_keys, site=2)
        return x


class DecoderBlock(nn.Module):
    """Causal self-attention or another `decoder_mixing`, attention over the source, then the feed-forward layer."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.self_attention = _decoder_mixing(config)
        self.cross_attention = _attention(config)
        self.feed_forward = FeedForward(config.d_model, config.d_ff, config.activation)
        self.self_residual = Residual(config)
        self.cross_residual = Residual(config)
        self.feed_forward_residual = Residual(config)
        self.step: BlockStep | None = None
        """For single tokens, after `make_step`."""

    def make_step(self) -> None:
        """Prepare `step`, if it knows the attentions of this block."""
        cross = self.cross_attention
        if can_step(self.self_attention) and can_step(cross) and isinstance(cross, MultiHeadAttention):
            residuals = (self.self_residual, self.cross_residual, self.feed_forward_residual)
            self.step = BlockStep(
                cast(Any, self.self_attention), cross, self.feed_forward.function(),
                [residual.norm for residual in residuals], self.self_residual.pre_norm,
            )  # fmt: skip

    def forward(
        self, x: Float[Tensor, "R T D"], append_kv: AppendKV | Carry, self_mask: Bool[Tensor, "..."] | None,
        memory: KeysValues, memory_mask: Bool[Tensor, "B 1 1 S"] | None, positions: RowPositions,
        dropout_keys: DropoutKeys | None, trace: Trace | None = None, name: str = "",
    ) -> Float[Tensor, "R T D"]:  # fmt: skip
        """The same shape. `positions` are those before `x`; their keys and values are in the cache of `append_kv`."""

        def attend_self(x: Tensor) -> Tensor:
            inner, recorder = dropout_keys and dropout_keys.fold(0), recorder_of(trace, f"{name}.self")
            contexts: Tensor = self.self_attention(x, append_kv, self_mask, positions, inner, recorder)
            return contexts

        def attend_source(x: Tensor) -> Tensor:
            inner, recorder = dropout_keys and dropout_keys.fold(1), recorder_of(trace, f"{name}.cross")
            contexts: Tensor = self.cross_attention(x, memory, memory_mask, positions, inner, recorder)
            return contexts

        x = self.self_residual(x, attend_self, dropout_keys, 2, positions.length)
        x = self.cross_residual(x, attend_source, dropout_keys, 3, positions.length)
        x = self.feed_forward_residual(x, self.feed_forward, dropout_keys, 4, positions.length)
        return x


def begin_blocks(
    blocks: Iterable[DecoderBlock], encoded: Float[Tensor, "B S D"], mask: Bool[Tensor, "B S"], rows_per_source: int,
    reserve: int, dropout_keys: DropoutKeys | None,
) -> CachedState:  # fmt: skip
    """The state of decoder blocks before the first token, with `rows_per_source` rows for each source."""
    memory = Memory(tuple(block.cross_attention.project(encoded) for block in blocks), mask, rows_per_source)
    caches = tuple(block.self_attention.empty_cache(memory.num_rows, reserve, encoded) for block in blocks)
    return CachedState(caches, RowPositions(), memory, dropout_keys)


def advance_blocks(
    blocks: Iterable[DecoderBlock], x: Float[Tensor, "R T D"], state: CachedState, trace: Trace | None
) -> tuple[Float[Tensor, "R T D"], CachedState]:
    """The features of decoder blocks for the vectors of the next tokens, and the state after them."""
    columns, dropout_keys, num_tokens = state.columns, state.dropout_keys, x.shape[1]
    appending = [cache.appending(columns.length) for cache in state.caches]
    after = columns.after(num_tokens)
    if num_tokens == 1 and columns.first is None and dropout_keys is None and trace is None:
        steps = [block.step for block in blocks]
        if all(step and cast(AppendKV, kv).has_room for step, kv in zip(steps, appending, strict=True)):
            token, memory_mask = x[:, 0], state.memory.attention_mask()
            for step, append_kv, memory in zip(steps, appending, state.memory.layers, strict=True):
                token = cast(BlockStep, step)(token, cast(AppendKV, append_kv), memory, memory_mask)
            return token[:, None], CachedState(state.caches, after, state.memory)
    attends = any(isinstance(block.self_attention, Attention) for block in blocks)
    self_mask = columns.causal_mask(num_tokens, x.device) if attends else None
    memory_mask = state.memory.attention_mask()
    for index, (block, append_kv) in enumerate(zip(blocks, appending, strict=True)):
        x = block(
            x, append_kv, self_mask, state.memory.layers[index], memory_mask, columns,
            dropout_keys and dropout_keys.fold(1 + index), trace, f"decoder.{index}",
        )  # fmt: skip
    caches = tuple(append_kv.cache for append_kv in appending)
    return x, CachedState(caches, after, state.memory, dropout_keys)


class TransformerEncoder(nn.Module):
    """Encoder of self-attention blocks: with `read`, as readers have it."""

    def __init__(self, config: TransformerConfig, embedding: TokenEmbedding) -> None:
        super().__init__()
        self.embedding = embedding
        self.blocks = nn.ModuleList(EncoderBlock(config.encoder_block()) for _ in range(config.num_encoder_layers))
        self.norm = nn.LayerNorm(config.d_model) if config.norm == "pre" else nn.Identity()

    def read(
        self, source: TokenSource, dropout_keys: DropoutKeys | None = None, trace: Trace | None = None
    ) -> Float[Tensor, "B S D"]:
        """One vector for each source position."""
        mask = attention_mask(source.mask)
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
    replayable = True
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
        self.blocks = nn.ModuleList(DecoderBlock(config) for _ in range(config.num_decoder_layers))
        self.norm = nn.LayerNorm(config.d_model) if config.norm == "pre" else nn.Identity()
        self.head = LinearHead(out_weight, vocabularies.pad_id, config.output_bias)

    def _embedding(self, weight: nn.Parameter) -> TokenEmbedding:
        return TokenEmbedding(weight, self.config.d_model, self.config.positions, self.config.dropout)

    def shards(self) -> Iterable[Shard]:
        """The blocks; before each decoder block its attention to the source, which `start` uses alone."""
        for block in self.encoder.blocks:
            yield block, ()
        for block in self._blocks:
            yield block.cross_attention, ("project",)
            yield block, ()

    def start(
        self,
        source: Any,
        rows_per_source: int = 1,
        reserve: int | None = None,
        dropout_keys: DropoutKeys | None = None,
    ) -> CachedState:
        """Encode a source that the encoder reads, and project the keys and values of each decoder block."""
        if source is None:
            raise ValueError("a translation model needs a source")
        encoded = self.encoder.read(source, dropout_keys and dropout_keys.fold(1))
        row_keys = dropout_keys and dropout_keys.fold(2).repeat(rows_per_source)
        return begin_blocks(self._blocks, encoded, source.mask, rows_per_source, reserve or 0, row_keys)

    def advance(
        self, ids: Int[Tensor, "B T"], state: CachedState, trace: Trace | None = None
    ) -> tuple[Float[Tensor, "B T D"], CachedState]:
        columns, dropout_keys = state.columns, state.dropout_keys
        x = self.embedding(ids, dropout_keys and dropout_keys.fold(0), columns.length, columns.first)
        x, state = advance_blocks(self._blocks, x, state, trace)
        return self.norm(x), state

    @property
    def _blocks(self) -> Iterable[DecoderBlock]:
        return cast(Iterable[DecoderBlock], self.blocks)

    def require_ctranslate2(self) -> None:
        """Raises UsageError for another attention than multi-head attention, or in its place."""
        for attention in (self.config.attention, self.config.encoder_block().attention):
            if attention != "multi_head":
                raise UsageError(f"CTranslate2 does not have the attention {attention!r}.")
        if not self.config.decoder_attends:
            raise UsageError(f"CTranslate2 does not have decoders with {self.config.decoder_mixing!r}.")

    def ctranslate2_specification(self, num_positions: int) -> Any:
        from heed.models.ctranslate2 import transformer_specification

        return transformer_specification(self, num_positions)
