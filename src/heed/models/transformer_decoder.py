"""Transformer decoder of any encoder (Vaswani et al. 2017): causal self-attention, attention to the encoder's features.

The blocks are those of `heed.models.transformer`. A linear layer brings the features to the size of the blocks if they
have another one.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal, cast

from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from heed.core.config import Config, KeyOf
from heed.core.errors import UsageError
from heed.models.recurrent_decoder import Encoded
from heed.models.transformer import DECODER_MIXING, DecoderBlock, TransformerConfig, advance_blocks, begin_blocks
from heed.nn.attention import ATTENTION
from heed.nn.contract import Trace
from heed.nn.dropout_keys import DropoutKeys
from heed.nn.feed_forward import ACTIVATIONS
from heed.nn.states import CachedState


class TransformerDecoderConfig(Config):
    """Sizes and choices of a Transformer decoder."""

    kind: Literal["transformer"] = "transformer"
    """Kind of decoder."""
    d_ff: int = Field(default=1024, ge=1)
    """Features inside the feed-forward layers (F)."""
    num_heads: int = Field(default=4, ge=1)
    """Attention heads (H); must divide d_model."""
    num_layers: int = Field(default=3, ge=1, le=1000)
    """Number of blocks."""
    attention_dropout: float = Field(default=0.0, ge=0, lt=1)
    """Dropout of attention weights."""
    norm: Literal["post", "pre"] = "pre"
    """Normalise after the residual sum, as published, or before each sublayer."""
    attention: Annotated[str, KeyOf(ATTENTION)] = "multi_head"
    """The attention of all blocks."""
    decoder_mixing: Annotated[str, KeyOf(DECODER_MIXING)] = "self_attention"
    """How the blocks read the earlier words; all but "self_attention" carry one vector for each row."""
    activation: Annotated[str, KeyOf(ACTIVATIONS)] = "relu"
    """Activation of the feed-forward layers."""

    def blocks(self, d_model: int, dropout: float) -> TransformerConfig:
        """The settings of the blocks. Raises UsageError for sizes that they cannot have."""
        if d_model % self.num_heads or d_model % 2:
            raise UsageError(
                f"model.d_model of a Transformer decoder must be even and a multiple of model.decoder.num_heads, got "
                f"{d_model} and {self.num_heads}."
            )
        values = self.model_dump(exclude={"kind", "num_layers"})
        return TransformerConfig(d_model=d_model, dropout=dropout, num_decoder_layers=self.num_layers, **values)

    def summary(self) -> str:
        """The decoder in a phrase."""
        mixing = "" if self.decoder_mixing == "self_attention" else f" and {self.decoder_mixing}"
        return (
            f"a Transformer decoder ({self.norm}-norm) of {self.num_layers} layers with {self.num_heads} heads{mixing}"
        )


class TransformerDecoder(nn.Module):
    """Features of the next word by attention to earlier words and to the source."""

    positions = "interleaved"
    """Encoding of positions that it needs in the vectors of words."""

    def __init__(
        self, config: TransformerDecoderConfig, d_model: int, dropout: float, memory_size: int,
        num_right_to_left: int, last_sizes: tuple[tuple[int, ...], ...],
    ) -> None:  # fmt: skip
        """A decoder of vectors of words of `d_model` features; the encoder's states are not used."""
        super().__init__()
        settings = config.blocks(d_model, dropout)
        self.num_features = d_model
        self.bridge = nn.Linear(memory_size, d_model) if memory_size != d_model else nn.Identity()
        self.blocks = nn.ModuleList(DecoderBlock(settings) for _ in range(config.num_layers))
        self.norm = nn.LayerNorm(d_model) if config.norm == "pre" else nn.Identity()

    @property
    def _blocks(self) -> Iterable[DecoderBlock]:
        return cast(Iterable[DecoderBlock], self.blocks)

    def start(
        self, encoded: Encoded, rows_per_source: int, reserve: int, dropout_keys: DropoutKeys | None
    ) -> CachedState:
        """The state before the first word, with `rows_per_source` rows for each source."""
        features = self.bridge(encoded.features)
        return begin_blocks(self._blocks, features, encoded.mask, rows_per_source, reserve, dropout_keys)

    @staticmethod
    def columns(state: CachedState) -> tuple[int, Tensor | None]:
        """The column of the next word, and those of the rows' first words, for encodings of positions."""
        return state.columns.length, state.columns.first

    def advance(
        self, words: Float[Tensor, "R T D"], state: CachedState, trace: Trace | None = None
    ) -> tuple[Float[Tensor, "R T D"], CachedState]:
        """Features of the next word after each of the given ones."""
        x, state = advance_blocks(self._blocks, words, state, trace)
        return self.norm(x), state
