"""Which models are there? One file each; to add one is a class, its config, and a key here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, get_args

from heed.core.config import ChosenBy
from heed.models.bigram import Bigram, BigramConfig
from heed.models.class_ngram import ClassNgram, ClassNgramConfig
from heed.models.feed_forward_lm import FeedForward, FeedForwardConfig
from heed.models.gpt import Gpt, GptConfig
from heed.models.lz78 import Lz78, Lz78Config
from heed.models.ngram import Ngram, NgramConfig
from heed.models.one_layer import OneLayer, OneLayerConfig
from heed.models.rnn_attention import RecurrentAttention, RecurrentAttentionConfig
from heed.models.rnn_lm import Recurrent, RecurrentConfig
from heed.models.transformer import Transformer, TransformerConfig
from heed.models.trellisnet import TrellisNet, TrellisNetConfig
from heed.nn.contract import Vocabularies

Model = (
    Transformer | RecurrentAttention | Recurrent | FeedForward | TrellisNet
    | Bigram | Ngram | ClassNgram | Lz78 | OneLayer | Gpt
)  # fmt: skip
AnyConfig = (
    TransformerConfig | RecurrentAttentionConfig | RecurrentConfig | FeedForwardConfig | TrellisNetConfig
    | BigramConfig | NgramConfig | ClassNgramConfig | Lz78Config | OneLayerConfig | GptConfig
)  # fmt: skip
ModelConfig = Annotated[
    AnyConfig,
    ChosenBy("kind", lambda: {config.model_fields["kind"].default: config for config in get_args(AnyConfig)}),
]

MODELS: dict[str, Callable[..., Model]] = {
    "transformer": Transformer,
    "rnn_attention": RecurrentAttention,
    "rnn": Recurrent,
    "feed_forward": FeedForward,
    "trellisnet": TrellisNet,
    "bigram": Bigram,
    "ngram": Ngram,
    "class_ngram": ClassNgram,
    "lz78": Lz78,
    "one_layer": OneLayer,
    "gpt": Gpt,
}


def build_model(config: AnyConfig, vocabularies: Vocabularies) -> Model:
    """A fresh model of the configured kind; its random weights come from torch's global generator."""
    return MODELS[config.kind](config, vocabularies)
