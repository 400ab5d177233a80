"""The models that a recipe can name by `model.kind`: one file and one key each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Annotated, Any, cast

from heed.core.config import ChosenBy
from heed.models.attention_flow import AttentionFlow
from heed.models.bag import Bag
from heed.models.bilstm import BiGru, BiLstm, BiRnn
from heed.models.class_ngram import ClassNgram
from heed.models.cnn import Cnn
from heed.models.decomposable_attention import DecomposableAttention
from heed.models.elmo import Elmo
from heed.models.encoder import Encoder
from heed.models.encoder_decoder import EncoderDecoder
from heed.models.feed_forward_lm import FeedForward
from heed.models.gpt import Gpt
from heed.models.hierarchical_attention import HierarchicalAttention
from heed.models.image_transformer import ImageTransformer
from heed.models.linear import LinearNgrams
from heed.models.lz78 import Lz78
from heed.models.model import MODELS, GenerativeModel, Model, ModelConfig, ReaderModel
from heed.models.ngram import Bigram, Ngram
from heed.models.one_layer import OneLayer
from heed.models.phrase_based import PhraseBased
from heed.models.ppmi_svd import PpmiSvd
from heed.models.rnn_attention import RecurrentAttention
from heed.models.rnn_lm import Recurrent
from heed.models.rnn_reader import RecurrentReader
from heed.models.rule_based import RuleBased
from heed.models.sentence_convolution import NgramConvolution, SentenceConvolution
from heed.models.show_attend_tell import ShowAttendTell
from heed.models.transformer import Transformer
from heed.models.trellisnet import TrellisNet
from heed.models.word_vectors import Cbow, SkipGram
from heed.nn.contract import Vocabularies
from heed.nn.recurrent import CELLS

__all__ = [
    "MODELS", "AnyConfig", "GenerativeModel", "Model", "ModelConfig", "ReaderModel", "build_model", "kinds_for",
]  # fmt: skip

MODELS.update({
    "transformer": Transformer,
    "rnn_attention": RecurrentAttention,
    "phrase_based": PhraseBased,
    "rule_based": RuleBased,
    "rnn": Recurrent,
    "feed_forward": FeedForward,
    "trellisnet": TrellisNet,
    "bigram": Bigram,
    "ngram": Ngram,
    "class_ngram": ClassNgram,
    "lz78": Lz78,
    "one_layer": OneLayer,
    "gpt": Gpt,
    "encoder": Encoder,
    "elmo": Elmo,
    "bilstm": BiLstm,
    "bigru": BiGru,
    "birnn": BiRnn,
    "attention_flow": AttentionFlow,
    "decomposable_attention": DecomposableAttention,
    "skip_gram": SkipGram,
    "cbow": Cbow,
    "ppmi_svd": PpmiSvd,
    "linear": LinearNgrams,
    "bag": Bag,
    "cnn": Cnn,
    "hierarchical_attention": HierarchicalAttention,
    "show_attend_tell": ShowAttendTell,
    "image_transformer": ImageTransformer,
    "rnn_reader": RecurrentReader,
    "sentence_convolution": SentenceConvolution,
    "ngram_convolution": NgramConvolution,
    "encoder_decoder": EncoderDecoder,
})  # fmt: skip


def build_model(config: ModelConfig, vocabularies: Vocabularies) -> Any:  # of the family of its kind
    """A new model of the configured kind; its weights are drawn from torch's global generator."""
    return cast(Any, MODELS[config.kind])(config, vocabularies)


def kinds_for(fits: Callable[[Any], bool], others: Callable[[], Mapping[str, str]] = dict) -> ChosenBy:
    """The choice by `kind` of a `[model]` table among the models that fit.

    `others`: advice for further names, such as the kinds that do not fit.
    """

    def configs() -> dict[str, type[ModelConfig]]:
        return {kind: model.Config for kind, model in MODELS.items() if fits(model)}

    return ChosenBy("kind", configs, lambda: {**_cell_advice(configs()), **others()})


def _cell_advice(kinds: Collection[str]) -> dict[str, str]:
    """Advice for `model.kind` set to a recurrent cell, where one of the kinds has a key for its cell."""
    cells = {"gru": "gru_reset_after", **{cell: cell for cell in CELLS}}
    kind = next((kind for kind in ("rnn", "rnn_reader") if kind in kinds), "")
    return {
        name: f'For a recurrent network with this cell, set model.kind = "{kind}" and model.cell = "{cell}".'
        for name, cell in cells.items()
        if kind
    }


AnyConfig = Annotated[ModelConfig, kinds_for(lambda model: True)]
"""The type of a `[model]` table: the config of any registered model, chosen by its `kind`."""
