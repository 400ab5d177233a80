"""Image captioning by a Transformer decoder over the patches of a convolutional encoder.

The decoder is that of the Transformer (Vaswani et al. 2017): its blocks attend to the caption so far and to the
annotation vectors of the image, projected to D features. The encoder's borders tell it where a patch is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, cast

from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from heed.models.model import GenerativeModel, Model, ModelConfig, Shard
from heed.models.show_attend_tell import Channels
from heed.models.transformer import DecoderBlock, Transformer, TransformerConfig
from heed.nn.contract import Trace, Vocabularies
from heed.nn.dropout_keys import DropoutKeys
from heed.nn.embeddings import TokenEmbedding, embedding_weight
from heed.nn.heads import LinearHead
from heed.nn.images import ImageEncoder, ImageSource


class ImageTransformerConfig(ModelConfig):
    """Sizes of an image encoder and a Transformer decoder."""

    kind: Literal["image_transformer"] = "image_transformer"
    """Kind of model: the key in `MODELS`."""
    channels: Channels = (32, 64, 128)
    """Features of the three stages of the image encoder; each halves the resolution."""
    num_blocks: int = Field(default=1, ge=0, le=100)
    """Residual blocks of each stage."""
    d_model: int = Field(default=128, ge=2, multiple_of=2)
    """Features of each position (D)."""
    d_ff: int = Field(default=512, ge=1)
    """Features inside the feed-forward layers (F)."""
    num_heads: int = Field(default=4, ge=1)
    """Attention heads (H); must divide d_model."""
    num_layers: int = Field(default=2, ge=1, le=1000)
    """Number of decoder blocks."""
    dropout: float = Field(default=0.3, ge=0, lt=1)
    """Dropout of annotations, embeddings and each sublayer's output (rounded to 1/256)."""

    def decoder(self) -> TransformerConfig:
        """The config of the decoder: pre-norm, with tied embeddings. Raises ValueError if heads do not divide it."""
        return TransformerConfig(
            d_model=self.d_model, d_ff=self.d_ff, num_heads=self.num_heads, num_encoder_layers=0,
            num_decoder_layers=self.num_layers, dropout=self.dropout, norm="pre", tie="target",
        )  # fmt: skip

    def summary(self) -> str:
        return (
            f"a convolutional image encoder with {', '.join(map(str, self.channels))} channels, and a Transformer "
            f"decoder of {self.num_layers} layers, {self.d_model} features and {self.num_heads} heads"
        )


class ProjectedEncoder(nn.Module):
    """An image encoder and a projection of its annotations to D features."""

    def __init__(self, config: ImageTransformerConfig) -> None:
        super().__init__()
        self.images = ImageEncoder(config.channels, config.num_blocks, config.dropout)
        self.projection = nn.Linear(config.channels[-1], config.d_model)
        self.norm = nn.LayerNorm(config.d_model)

    def read(
        self, source: ImageSource, dropout_keys: DropoutKeys | None = None, trace: Trace | None = None
    ) -> Float[Tensor, "B S D"]:
        """One vector for each patch."""
        vectors: Tensor = self.norm(self.projection(self.images.read(source, dropout_keys, trace)))
        return vectors


class ImageTransformer(Transformer):
    """P(w_t | w_<t, image) by a Transformer decoder."""

    Config = ImageTransformerConfig  # type: ignore[assignment]
    source = "images"
    replayable = False
    papers = "a Transformer decoder (Vaswani et al. 2017) over a convolutional image encoder"

    def __init__(self, config: ImageTransformerConfig, vocabularies: Vocabularies) -> None:
        GenerativeModel.__init__(self)
        self.config = decoder = config.decoder()
        weight = embedding_weight(vocabularies.tgt_size, config.d_model)
        self.encoder = ProjectedEncoder(config)  # type: ignore[assignment]
        self.embedding = TokenEmbedding(weight, config.d_model, decoder.positions, config.dropout)
        self.blocks = nn.ModuleList(DecoderBlock(decoder) for _ in range(config.num_layers))
        self.norm = nn.LayerNorm(config.d_model)
        self.head = LinearHead(weight, vocabularies.pad_id)

    def shards(self) -> Iterable[Shard]:
        """The decoder blocks; before each, its attention to the image, which `start` uses alone."""
        for block in cast(Iterable[DecoderBlock], self.blocks):
            yield block.cross_attention, ("project",)
            yield block, ()

    def require_ctranslate2(self) -> None:
        """Raises UsageError, as CTranslate2 does not read images."""
        Model.require_ctranslate2(self)
