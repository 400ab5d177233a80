"""Transformer encoder: a reader of self-attention blocks, as in BERT (Devlin et al. 2019).

With its defaults it computes what BERT computes: the sum of token, position and segment embeddings, normalised; blocks
of bidirectional self-attention and a two-layer GELU network, LayerNorm(x + Dropout(Sublayer(x))). Options: pre-norm
with a final normalisation; sinusoidal positions, which scale the embeddings by √D (Vaswani et al. 2017), rotary ones
(`model.attention = "rotary"`), or none.

The segment of a position is the number of ends of sentence before it. So two texts, each followed by its end, are
segments 0 and 1, as in BERT.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field, model_validator
from torch import Tensor, nn

from heed.core.config import KeyOf
from heed.core.errors import DataError
from heed.models.model import ModelConfig, ReaderModel
from heed.models.transformer import EncoderBlock
from heed.nn.attention import ATTENTION
from heed.nn.contract import Trace, Vocabularies, recorder_of
from heed.nn.dropout_keys import DropoutKeys, dropout
from heed.nn.embeddings import TokenEmbedding, embedding_weight
from heed.nn.feed_forward import ACTIVATIONS
from heed.nn.states import attention_mask
from heed.nn.two_texts import segments_of

INITIAL_SIZE = 0.02
"""Standard deviation of the initial weights in BERT."""


class EncoderConfig(ModelConfig):
    """Sizes and choices of a Transformer encoder."""

    kind: Literal["encoder"] = "encoder"
    """Kind of model: the key in `MODELS`."""
    d_model: int = Field(default=256, ge=2)
    """Features of each position (D)."""
    d_ff: int = Field(default=1024, ge=1)
    """Features inside the feed-forward layers (F)."""
    num_heads: int = Field(default=4, ge=1)
    """Attention heads (H); must divide d_model."""
    num_layers: int = Field(default=4, ge=0, le=1000)
    """Number of blocks (L)."""
    max_len: int = Field(default=512, ge=2)
    """Maximum number of positions, for learned positions."""
    positions: Literal["learned", "interleaved", "half_split", "none"] = "learned"
    """Position embeddings: learned, sinusoidal in one of two layouts, or none (for rotary attention)."""
    scale_embeddings: bool = False
    """Multiply the vectors of tokens by √D, as translators do (sinusoidal positions always do)."""
    num_segments: int = Field(default=2, ge=0, le=100)
    """Segment embeddings; 0: none."""
    begin: bool = False
    """Read a begin-of-sentence token before each row, as BERT reads [CLS]."""
    embedding_norm: bool = True
    """Normalise the embeddings before the first block."""
    norm: Literal["post", "pre"] = "post"
    """Normalise after the residual sum, as in BERT, or before each sublayer."""
    norm_epsilon: float = Field(default=1e-12, gt=0, lt=1)
    """Added to the variance in normalisations."""
    attention: Annotated[str, KeyOf(ATTENTION)] = "multi_head"
    """The attention of all blocks."""
    activation: Annotated[str, KeyOf(ACTIVATIONS)] = "gelu"
    """Activation of the feed-forward layers."""
    dropout: float = Field(default=0.1, ge=0, lt=1)
    """Dropout of each sublayer's output and of the embeddings (rounded to 1/256)."""
    attention_dropout: float = Field(default=0.0, ge=0, lt=1)
    """Dropout of attention weights; 0.1 in BERT."""

    @model_validator(mode="after")
    def _check(self) -> EncoderConfig:
        if self.d_model % self.num_heads:
            raise ValueError(f"num_heads must divide d_model, got {self.num_heads} and {self.d_model}")
        if self.positions in ("interleaved", "half_split") and self.d_model % 2:
            raise ValueError(f"d_model must be even for sinusoidal positions, got {self.d_model}")
        return self

    @property
    def sinusoidal(self) -> bool:
        """Whether positions are computed, and embeddings scaled by √D."""
        return self.positions in ("interleaved", "half_split")

    @property
    def max_positions(self) -> int | None:
        return self.max_len - self.begin if self.positions == "learned" else None

    def summary(self) -> str:
        return (
            f"a Transformer encoder ({self.norm}-norm) of {self.num_layers} layers, {self.d_model} features, "
            f"{self.num_heads} heads and {self.d_ff:,} features inside the feed-forward layers"
        )


class Encoder(ReaderModel):
    """Features of each position by bidirectional self-attention."""

    Config = EncoderConfig
    vectors_name = "embedding.weight"
    papers = "the Transformer encoder (Vaswani et al. 2017; Devlin et al. 2019)"

    def __init__(self, config: EncoderConfig, vocabularies: Vocabularies) -> None:
        super().__init__()
        self.config = config
        self.num_features = config.d_model
        self.num_added = int(config.begin)
        self.ends = vocabularies.bos_id, vocabularies.eos_id
        weight = embedding_weight(vocabularies.src_size, config.d_model)
        kind = config.positions if config.sinusoidal else "none"
        scale = None if config.sinusoidal or config.scale_embeddings else 1.0
        self.embedding = TokenEmbedding(weight, config.d_model, kind, dropout=0.0, scale=scale)
        if config.positions == "learned":
            self.positions = nn.Parameter(torch.empty(config.max_len, config.d_model))
        if config.num_segments:
            self.segments = nn.Parameter(torch.empty(config.num_segments, config.d_model))
        self.embedding_norm = _norm(config, used=config.embedding_norm)
        self.blocks = nn.ModuleList(EncoderBlock(config, config.norm_epsilon) for _ in range(config.num_layers))
        self.norm = _norm(config, used=config.norm == "pre")
        self._initialise()

    def _initialise(self) -> None:
        """Normal with the deviation of BERT; zeros in biases. Tokens are as long as computed positions require."""
        if self.embedding.weight.is_meta:  # only shapes are needed
            return
        for name, parameter in self.named_parameters():
            if parameter.ndim == 2 and not (self.config.sinusoidal and parameter is self.embedding.weight):
                nn.init.normal_(parameter, std=INITIAL_SIZE)
            elif parameter.ndim == 1 and "norm" not in name:
                nn.init.zeros_(parameter)

    def token_vectors(self) -> nn.Parameter:
        return self.embedding.weight

    def read(
        self, source: Any, dropout_keys: DropoutKeys | None = None, trace: Trace | None = None
    ) -> Float[Tensor, "B S D"]:
        """One vector for each source position. Raises DataError for a row that is too long for learned positions."""
        return self.read_begun(source, dropout_keys, trace)[:, self.num_added :]

    def read_begun(
        self, source: Any, dropout_keys: DropoutKeys | None = None, trace: Trace | None = None
    ) -> Float[Tensor, "B N D"]:
        """As `read`, after the vector of the begin of sentence, if the model reads one."""
        ids, real = self._begun(source)
        mask = attention_mask(real)
        x = self._embed(ids, dropout_keys and dropout_keys.fold(0))
        for index, block in enumerate(self.blocks):
            recorder = recorder_of(trace, f"encoder.{index}.self")
            x = block(x, mask, dropout_keys and dropout_keys.fold(1 + index), recorder)
        features: Tensor = self.norm(x)
        return features

    def _begun(self, source: Any) -> tuple[Int[Tensor, "B N"], Bool[Tensor, "B N"]]:
        """The ids and the mask, after a begin of sentence if the config asks for it."""
        if not self.num_added:
            return source.ids, source.mask
        begin = source.ids.new_full((len(source), 1), self.ends[0])
        return torch.cat((begin, source.ids), 1), torch.cat((torch.ones_like(source.mask[:, :1]), source.mask), 1)

    def _embed(self, ids: Int[Tensor, "B N"], dropout_keys: DropoutKeys | None) -> Float[Tensor, "B N D"]:
        x = self.embedding(ids)
        if self.config.positions == "learned":
            if ids.shape[1] > self.config.max_len:
                raise DataError(
                    f"a text of {ids.shape[1]:,} tokens is longer than the {self.config.max_len:,} positions of the "
                    "encoder (model.max_len): shorten it."
                )
            x = x + self.positions[: ids.shape[1]]
        if self.config.num_segments:
            x = x + self.segments[segments_of(ids, self.ends[1], self.config.num_segments)]
        return dropout(self.embedding_norm(x), self.config.dropout, dropout_keys, site=0)


def _norm(config: EncoderConfig, used: bool) -> nn.Module:
    return nn.LayerNorm(config.d_model, config.norm_epsilon) if used else nn.Identity()
