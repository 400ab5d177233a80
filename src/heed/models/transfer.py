"""Readers in trained models: the encoder of a masked language model or a translator, or a language model.

`reader_config` gives the config of the reader that a trained model contains, and `reader_weights` its weights under the
names of that reader, so that the training of another task can start from them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from torch import Tensor

from heed.core.config import flattened
from heed.core.errors import UsageError
from heed.models import MODELS
from heed.models.elmo import LANGUAGE_MODELS, ElmoConfig
from heed.models.encoder import EncoderConfig
from heed.models.model import ModelConfig, ReaderModel
from heed.models.transformer import LAYER_NORM_EPSILON, TransformerConfig

Weights = Mapping[str, Tensor]
TRANSFORMER = "transformer"
WORD_VECTORS = ("skip_gram", "cbow")
"""Kinds of models that are tables of word vectors."""
READER = "reader."
"""Prefix of the weights of a reader with a head (`heed.nn.reader_heads`)."""


def reader_config(config: ModelConfig, backward: ModelConfig | None = None) -> ModelConfig:
    """The config of the reader in a model; `backward`: that of a second language model, which reads from the end.

    Raises UsageError for a model without one.
    """
    if config.kind in LANGUAGE_MODELS:
        layers = "last" if _sizes(config) else "mix"
        return ElmoConfig.model_validate({"forward": config, "backward": backward, "layers": layers})
    if backward is not None:
        raise UsageError(f"--init-backward is for language models, and --init is of kind {config.kind}.")
    if issubclass(MODELS[config.kind], ReaderModel):
        return config
    if config.kind == TRANSFORMER and cast(TransformerConfig, config).positions != "concatenated":
        return _encoder_of(cast(TransformerConfig, config))
    raise UsageError(
        f"a model of kind {config.kind} has no encoder that another task can start from. Give a reader, a transformer "
        f"(without concatenated positions), or a language model of kind {', '.join(LANGUAGE_MODELS)}."
    )


def _sizes(config: ModelConfig) -> bool:
    """Whether the layers of a language model have different sizes."""
    sizes = {getattr(config, "d_model", 0), *getattr(config, "layer_sizes", ())}
    return len(sizes) > 1


def _encoder_of(config: TransformerConfig) -> EncoderConfig:
    """The encoder of a translator, as `heed.models.encoder` has it."""
    return EncoderConfig(
        d_model=config.d_model, d_ff=config.d_ff, num_heads=config.num_heads, num_layers=config.num_encoder_layers,
        positions=config.positions, scale_embeddings=True,  # type: ignore[arg-type]
        num_segments=0, embedding_norm=False, norm=config.norm, norm_epsilon=LAYER_NORM_EPSILON,
        attention=config.encoder_block().attention, activation=config.activation, dropout=config.dropout,
        attention_dropout=config.attention_dropout,
    )  # fmt: skip


def reader_weights(config: ModelConfig, weights: Weights, direction: str = "forward") -> dict[str, Tensor]:
    """The weights of the reader in a model, by their names in that reader."""
    if config.kind in LANGUAGE_MODELS:
        return {f"{direction}_lm.{name}": each for name, each in weights.items() if not name.startswith("head.")}
    if config.kind == TRANSFORMER:
        inside = {name.removeprefix("encoder."): each for name, each in weights.items() if name.startswith("encoder.")}
        return inside
    return {name.removeprefix(READER): each for name, each in weights.items() if name.startswith(READER)}


def embedding_weights(config: ModelConfig, weights: Weights) -> Tensor:
    """The token vectors [V, D] of the reader in a model, or of a model of word vectors without n-grams."""
    if are_word_vectors(config):
        return weights["inputs"]
    return reader_weights(config, weights)[embedding_name(reader_config(config))]


def are_word_vectors(config: ModelConfig) -> bool:
    """Whether a model is a table of vectors, one for each word: skip-gram or CBOW without n-grams of characters."""
    return config.kind in WORD_VECTORS and not getattr(config, "max_ngram", 0)


def embedding_name(config: ModelConfig) -> str:
    """The name of the token vectors in a reader of this config."""
    return MODELS[config.kind].vectors_name


def require_reader(config: Any, needed: ModelConfig, where: str) -> None:
    """Raise UsageError unless a recipe's reader is the one that is transferred; dropout and the mix may differ."""
    here, there = (without_dropout(each.model_dump(exclude={"layers"})) for each in (config, needed))
    if here != there:
        names = sorted(name for name in {*here, *there} if here.get(name) != there.get(name))
        listed = ", ".join(f"{name} {there.get(name, 'none')} there, {here.get(name, 'none')} here" for name in names)
        raise UsageError(f"{where}: its reader differs from the recipe's ({listed}).")


def without_dropout(table: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a model's table but those of dropout, by their dotted keys."""
    return {key: value for key, value in flattened(table).items() if "dropout" not in key.rpartition(".")[2]}
