"""Encoder-decoder of any reader and any decoder.

The encoder is a reader of tokens (`[model.encoder]`: recurrent in one or both directions, convolutional, a Transformer
encoder, ...), and the decoder (`[model.decoder]`) generates from its features, its last states, or both. So the
published systems of sequence to sequence learning are recipes of one model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from jaxtyping import Float, Int
from pydantic import Field, model_validator
from torch import Tensor

from heed.core.config import ChosenBy, Config
from heed.models.bilstm import BiGruConfig
from heed.models.model import MODELS, GenerativeModel, ModelConfig, ReaderModel
from heed.models.recurrent_decoder import Encoded, RecurrentDecoder, RecurrentDecoderConfig
from heed.models.transformer_decoder import TransformerDecoder, TransformerDecoderConfig
from heed.nn.contract import TokenSource, Trace, Vocabularies
from heed.nn.dropout_keys import DropoutKeys
from heed.nn.embeddings import TokenEmbedding, embedding_weight
from heed.nn.heads import LinearHead

DECODERS: dict[str, tuple[type[Config], type[Any]]] = {
    "recurrent": (RecurrentDecoderConfig, RecurrentDecoder),
    "transformer": (TransformerDecoderConfig, TransformerDecoder),
}


def encoders() -> Mapping[str, type[ModelConfig]]:
    """The readers of tokens, by their kinds."""
    readers = {kind: model for kind, model in MODELS.items() if issubclass(model, ReaderModel)}
    return {kind: model.Config for kind, model in readers.items() if model.source == "tokens"}


EncoderTable = Annotated[ModelConfig, ChosenBy("kind", encoders)]
DecoderTable = Annotated[Config, ChosenBy("kind", lambda: {kind: config for kind, (config, _) in DECODERS.items()})]


class EncoderDecoderConfig(ModelConfig):
    """An encoder, a decoder, and what the output layer shares."""

    kind: Literal["encoder_decoder"] = "encoder_decoder"
    """Kind of model: the key in `MODELS`."""
    d_model: int = Field(default=256, ge=1)
    """Size of the vectors of target words, and of the output layer's input (D)."""
    dropout: float = Field(default=0.2, ge=0, lt=1)
    """Dropout of these vectors and of the decoder's layers (rounded to 1/256)."""
    tie: Literal["target", "none"] = "target"
    """Share one weight between target embedding and output, or nothing."""
    encoder: EncoderTable = BiGruConfig(dropout=0.2, unknown_dropout=0.0)
    """The reader of the source."""
    decoder: DecoderTable = RecurrentDecoderConfig()
    """What generates the target."""

    @model_validator(mode="after")
    def _check(self) -> EncoderDecoderConfig:
        size = getattr(self.decoder, "hidden_size", 0)
        if self.tie == "target" and getattr(self.decoder, "readout", "") == "none" and size != self.d_model:
            raise ValueError(
                'with model.decoder.readout = "none" the output reads the decoder\'s state directly, so '
                'model.tie = "target" needs model.decoder.hidden_size = model.d_model: '
                f"got {size} and {self.d_model}"
            )
        return self

    @property
    def max_positions(self) -> int | None:
        return self.encoder.max_positions

    def summary(self) -> str:
        return f"{self.decoder.summary()}, over {self.encoder.summary()}"  # type: ignore[attr-defined]


class EncoderDecoder(GenerativeModel):
    """P(w_t | w_<t, source) by a decoder over the features of a reader."""

    Config = EncoderDecoderConfig
    needs_source = True
    papers = "sequence to sequence learning (Sutskever et al. 2014; Bahdanau et al. 2015; Luong et al. 2015)"

    def __init__(self, config: EncoderDecoderConfig, vocabularies: Vocabularies) -> None:
        super().__init__()
        self.config = config
        reader: Any = MODELS[config.encoder.kind]
        self.encoder: ReaderModel = reader(config.encoder, vocabularies)
        _, decoder = DECODERS[config.decoder.kind]  # type: ignore[attr-defined]
        self.decoder = decoder(
            config.decoder, config.d_model, config.dropout, self.encoder.num_features, self.encoder.num_right_to_left,
            self.encoder.last_sizes,
        )  # fmt: skip
        weight = embedding_weight(vocabularies.tgt_size, config.d_model)
        self.embedding = TokenEmbedding(weight, config.d_model, self.decoder.positions, config.dropout)
        size = self.decoder.num_features
        out = weight if config.tie == "target" else embedding_weight(vocabularies.tgt_size, size)
        self.head = LinearHead(out, vocabularies.pad_id)

    def start(
        self,
        source: TokenSource | None,
        rows_per_source: int = 1,
        reserve: int | None = None,
        dropout_keys: DropoutKeys | None = None,
    ) -> Any:
        """Encode the source, and begin the decoder with it."""
        if source is None:
            raise ValueError("a translation model needs a source")
        features, last = self.encoder.read_to_end(source, dropout_keys and dropout_keys.fold(1))
        row_keys = dropout_keys and dropout_keys.fold(2).repeat(rows_per_source)
        return self.decoder.start(Encoded(features, source.mask, last), rows_per_source, reserve or 0, row_keys)

    def advance(
        self, ids: Int[Tensor, "B T"], state: Any, trace: Trace | None = None
    ) -> tuple[Float[Tensor, "B T D"], Any]:
        keys = state.dropout_keys
        words = self.embedding(ids, keys and keys.fold(0), *self.decoder.columns(state))
        features, after = self.decoder.advance(words, state, trace)
        return features, after
