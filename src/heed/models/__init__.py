"""Which models are there? One file each; to add one is a class, its config, and a key here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from pydantic import Field

from heed.models.bigram import Bigram, BigramConfig
from heed.models.rnn_attention import RecurrentAttention, RecurrentAttentionConfig
from heed.models.transformer import Transformer, TransformerConfig
from heed.nn.contract import Vocabularies

Model = Transformer | RecurrentAttention | Bigram
ModelConfig = Annotated[TransformerConfig | RecurrentAttentionConfig | BigramConfig, Field(discriminator="kind")]

MODELS: dict[str, Callable[..., Model]] = {
    "transformer": Transformer,
    "rnn_attention": RecurrentAttention,
    "bigram": Bigram,
}


def build_model(
    config: TransformerConfig | RecurrentAttentionConfig | BigramConfig, vocabularies: Vocabularies
) -> Model:
    """A fresh model of the configured kind; its random weights come from torch's global generator."""
    return MODELS[config.kind](config, vocabularies)
