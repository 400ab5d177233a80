"""Small models with random weights: a config for each kind, and for each variant with another path through the code.

`model_of` builds a model. The vocabularies have about a dozen words.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn.utils.rnn import pad_sequence

from heed.data.batch import collate, source_from_ids
from heed.models import Model, ModelConfig, build_model
from heed.models.attention_flow import AttentionFlowConfig
from heed.models.bag import BagConfig
from heed.models.bilstm import BiGruConfig, BiLstmConfig, BiRnnConfig
from heed.models.class_ngram import ClassNgramConfig
from heed.models.cnn import CnnConfig
from heed.models.decomposable_attention import DecomposableAttentionConfig
from heed.models.elmo import ElmoConfig
from heed.models.encoder import EncoderConfig
from heed.models.encoder_decoder import EncoderDecoderConfig
from heed.models.ensemble import Ensemble, ShallowFusion
from heed.models.feed_forward_lm import FeedForwardConfig
from heed.models.gpt import GptConfig
from heed.models.hierarchical_attention import HierarchicalAttentionConfig
from heed.models.image_transformer import ImageTransformerConfig
from heed.models.lz78 import Lz78Config
from heed.models.nearest_neighbours import Interpolation, NearestNeighbours, Store
from heed.models.ngram import BigramConfig, NgramConfig
from heed.models.one_layer import OneLayerConfig
from heed.models.recurrent_decoder import RecurrentDecoderConfig
from heed.models.rnn_attention import RecurrentAttentionConfig
from heed.models.rnn_lm import RecurrentConfig
from heed.models.rnn_reader import RecurrentReaderConfig
from heed.models.sentence_convolution import NgramConvolutionConfig, SentenceConvolutionConfig
from heed.models.show_attend_tell import ShowAttendTellConfig
from heed.models.transformer import TransformerConfig
from heed.models.transformer_decoder import TransformerDecoderConfig
from heed.models.trellisnet import TrellisNetConfig
from heed.nn.contract import Smoothing, TokenSource, Vocabularies
from heed.nn.documents import DocumentSource, documents_from_ids
from heed.nn.images import PATCH, ImageSource
from heed.tasks.generation import chain_rule_loss

VOCABULARIES = Vocabularies(src_size=14, tgt_size=12)
PAD, BOS, EOS = VOCABULARIES.pad_id, VOCABULARIES.bos_id, VOCABULARIES.eos_id

SMALL = TransformerConfig(
    d_model=16, d_ff=24, num_heads=2, num_encoder_layers=2, num_decoder_layers=2, dropout=0.3, attention_dropout=0.2,
    tie="target",
)  # fmt: skip

GPT = GptConfig(d_model=16, d_ff=24, num_heads=2, num_layers=2, max_len=32, dropout=0.3, attention_dropout=0.2)
ONE_LAYER = OneLayerConfig(d_model=12, hidden_size=10, d_ff=14, max_len=32, dropout=0.3)
CAPTIONER = ShowAttendTellConfig(channels=(4, 6, 8), d_model=8, hidden_size=10, attention_size=6, dropout=0.3)

SENTENCE_CONVOLUTION = SentenceConvolutionConfig(d_model=8, longest_kernel=4, dropout=0.3)
RNN_READER = RecurrentReaderConfig(cell="gru_reset_before", d_model=7, hidden_size=12, dropout=0.3)
BIGRU = BiGruConfig(d_model=12, hidden_size=6, dropout=0.3, unknown_dropout=0.0)
BIRNN = BiRnnConfig(d_model=12, hidden_size=6, cell="gru_reset_before", dropout=0.3, unknown_dropout=0.0)
DECODER = RecurrentDecoderConfig(hidden_size=12, attention_size=8)


def translator(
    encoder: ModelConfig, decoder: RecurrentDecoderConfig | TransformerDecoderConfig, **changes: Any
) -> EncoderDecoderConfig:
    """A small encoder-decoder."""
    return EncoderDecoderConfig(d_model=12, dropout=0.3, encoder=encoder, decoder=decoder, **changes)


CONFIGS: dict[str, ModelConfig] = {
    "encoder_decoder": translator(BIGRU, DECODER),
    "encoder_decoder, Bahdanau": translator(
        BIRNN, DECODER.model_copy(update={"cell": "gru_reset_before", "start": "right_to_left", "readout": "maxout"})
    ),
    "encoder_decoder, thought": translator(
        RNN_READER.model_copy(update={"cell": "lstm", "num_layers": 2}),
        RecurrentDecoderConfig(
            cell="lstm", hidden_size=12, num_layers=2, start="thought", attention="none", readout="none"
        ),
    ),
    "encoder_decoder, input feeding": translator(
        RNN_READER.model_copy(update={"direction": "forward"}),
        DECODER.model_copy(
            update={
                "cell": "gru_reset_before",
                "start": "thought",
                "attention": "local_predictive",
                "attends": "after",
                "input_feeding": True,
                "readout_of": ("context", "state"),
                "num_layers": 1,
            }
        ),
    ),
    "encoder_decoder, maxout": translator(
        BIGRU,
        DECODER.model_copy(
            update={
                "cell": "lstm",
                "num_layers": 2,
                "readout": "maxout",
                "start": "mean",
                "attention": "local_monotonic",
            }
        ),
        tie="none",
    ),
    "encoder_decoder, RCTM I": translator(
        SENTENCE_CONVOLUTION,
        RecurrentDecoderConfig(
            cell="tanh", hidden_size=12, start="zeros", feed_thought=True, attention="none", readout="none"
        ),
    ),
    "encoder_decoder, RCTM II": translator(
        NgramConvolutionConfig(d_model=8, dropout=0.3),
        RecurrentDecoderConfig(
            cell="tanh", hidden_size=12, start="zeros", attention="same_position", query="word", readout="none"
        ),
    ),
    "encoder_decoder, SSRU": translator(
        BIGRU,
        TransformerDecoderConfig(d_ff=14, num_heads=2, num_layers=2, decoder_mixing="ssru"),
    ),
    "encoder_decoder, transformer": translator(
        RNN_READER.model_copy(update={"hidden_size": 9}),
        TransformerDecoderConfig(d_ff=14, num_heads=2, num_layers=2),
    ),
    "encoder_decoder, word": translator(
        RNN_READER,
        DECODER.model_copy(
            update={
                "start": "zeros",
                "attention": "dot",
                "query": "word",
                "attends": "after",
                "feed_thought": True,
                "readout_of": ("thought", "state", "context"),
            }
        ),
    ),
    "transformer": SMALL,
    "transformer, pre-norm": SMALL.model_copy(update={"norm": "pre", "activation": "gelu", "positions": "half_split"}),
    "transformer, concatenated": SMALL.model_copy(update={"positions": "concatenated", "tie": "none"}),
    "transformer, without positions": SMALL.model_copy(update={"positions": "none"}),
    "transformer, without biases": SMALL.model_copy(
        update={"attention": "multi_head_without_bias", "output_bias": False}
    ),
    "transformer, SSRU": SMALL.model_copy(update={"decoder_mixing": "ssru", "norm": "pre"}),
    "transformer, average attention": SMALL.model_copy(update={"decoder_mixing": "average"}),
    "transformer, averages, without positions": SMALL.model_copy(
        update={"decoder_mixing": "average_without_feed_forward", "encoder_attention": "dot", "positions": "none"}
    ),
    "rnn_attention": RecurrentAttentionConfig(d_model=12, hidden_size=10, attention_size=8, dropout=0.3, tie="target"),
    "rnn": RecurrentConfig(d_model=12, hidden_size=10, dropout=0.3),
    "rnn, AWD": RecurrentConfig(
        d_model=12,
        hidden_size=10,
        variational=True,
        embedding_dropout=0.2,
        recurrent_dropout=0.3,
        activation_penalty=2.0,
        change_penalty=1.0,
    ),
    "rnn, residual": RecurrentConfig(cell="ugrnn", d_model=10, hidden_size=10, num_layers=3, residual=True),
    "rnn, without bias": RecurrentConfig(cell="sigmoid", d_model=12, hidden_size=10, output_bias=False),
    "rnn, adaptive": RecurrentConfig(cell="gru_reset_before", d_model=12, hidden_size=10, tie=False, cutoffs=(5, 8)),
    "feed_forward": FeedForwardConfig(order=4, d_model=8, hidden_size=10, direct=True, dropout=0.3),
    "trellisnet": TrellisNetConfig(
        d_model=8, hidden_size=12, num_levels=4, dropout=0.3, hidden_dropout=0.2, weight_dropout=0.2
    ),
    "bigram": BigramConfig(),
    "ngram": NgramConfig(order=3),
    "ngram, backed off": NgramConfig(order=3, smoothing="witten-bell", interpolate=False, prune=(0, 0, 1)),
    "ngram, additive": NgramConfig(order=3, smoothing="additive", additive=0.5),
    "ngram, cache": NgramConfig(order=2, cache_share=0.2, cache_size=4, cache_decay=0.9),
    "class_ngram": ClassNgramConfig(order=3, num_classes=4),
    "lz78": Lz78Config(),
    "gpt": GPT,
    "gpt, few positions": GPT.model_copy(update={"max_len": 4, "output_bias": True}),
    "one_layer": ONE_LAYER,
    "one_layer, few positions": ONE_LAYER.model_copy(update={"max_len": 4}),
    "one_layer, last": ONE_LAYER.model_copy(update={"max_len": 4, "predicts": "last"}),
    "show_attend_tell": CAPTIONER,
    "show_attend_tell, hard": CAPTIONER.model_copy(update={"attention": "hard"}),
    "image_transformer": ImageTransformerConfig(
        channels=(4, 6, 8), d_model=16, d_ff=24, num_heads=2, num_layers=2, dropout=0.3
    ),
}

ENCODER = EncoderConfig(
    d_model=16, d_ff=24, num_heads=2, num_layers=2, max_len=40, dropout=0.3, attention_dropout=0.2
)  # fmt: skip

_LSTM = RecurrentConfig(d_model=10, hidden_size=10, dropout=0.3)

READER_CONFIGS: dict[str, ModelConfig] = {
    "encoder": ENCODER,
    "encoder, pre-norm": ENCODER.model_copy(update={"norm": "pre", "begin": True, "embedding_norm": False}),
    "encoder, sinusoidal": ENCODER.model_copy(update={"positions": "half_split", "num_segments": 0}),
    "encoder, rotary": ENCODER.model_copy(update={"positions": "none", "attention": "rotary"}),
    "encoder, without positions": ENCODER.model_copy(update={"positions": "none", "num_segments": 0}),
    "elmo": ElmoConfig(forward=_LSTM, backward=_LSTM),
    "elmo, one direction": ElmoConfig(forward=GPT, layers="last"),
    "bilstm": BiLstmConfig(d_model=12, hidden_size=10, num_layers=2, dropout=0.3),
    "bigru": BiGruConfig(d_model=12, hidden_size=10, dropout=0.3),
    "birnn": BiRnnConfig(d_model=12, hidden_size=10, num_layers=2, dropout=0.3),
    "birnn, reset before": BIRNN,
    "rnn_reader": RNN_READER,
    "sentence_convolution": SENTENCE_CONVOLUTION,
    "ngram_convolution": NgramConvolutionConfig(d_model=8, dropout=0.3),
    "rnn_reader, forward": RNN_READER.model_copy(update={"direction": "forward", "cell": "lstm", "num_layers": 2}),
    "attention_flow": AttentionFlowConfig(d_model=12, hidden_size=10, dropout=0.3),
    "decomposable_attention": DecomposableAttentionConfig(d_model=12, hidden_size=10, dropout=0.3),
    "cnn": CnnConfig(d_model=6, widths=(2, 3), num_filters=5, dropout=0.3),
    "bag": BagConfig(d_model=6, order=2, num_buckets=50, dropout=0.3),
    "bag, without positions": BagConfig(d_model=6, order=1),
    "hierarchical_attention": HierarchicalAttentionConfig(d_model=6, hidden_size=5, dropout=0.3),
}
"""Readers, whose laws are in tests/contracts/test_readers.py."""


def random_stores(keys: Sequence[Any], size: int = 16) -> list[Store]:
    """For each source, random features of a few positions, near enough to those of a model; none for a single word."""
    stores = []
    for key in keys:
        random = torch.Generator().manual_seed(sum(key))
        number = 0 if len(key) < 3 else 5 * len(key)
        values = torch.randint(3, VOCABULARIES.tgt_size, (number,), generator=random)
        keys, evidence = torch.randn(number, size, generator=random), torch.rand(number, 2, generator=random)
        stores.append(Store(keys, values, evidence))
    return stores


JOINT: dict[str, Callable[[int], Any]] = {
    "ensemble": lambda seed: Ensemble([model_of("transformer", seed), model_of("bigram", seed)]),
    "shallow fusion": lambda seed: ShallowFusion(model_of("rnn_attention", seed), model_of("bigram", seed), 0.3),
    "nearest neighbours": lambda seed: NearestNeighbours(
        model_of("transformer", seed), random_stores, Interpolation(-1.0, 20.0, 5.0, 2.0, 2.0)
    ),
}
"""Models that are made of others and have no recipe."""

NAMES = (*CONFIGS, *JOINT)


def model_of(name: str, seed: int = 0, vocabularies: Vocabularies = VOCABULARIES) -> Any:
    """The named model with random weights, or with the counts of random sentences."""
    if name in JOINT:
        return JOINT[name](seed)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = build_model({**CONFIGS, **READER_CONFIGS}[name], vocabularies)
        if model.count_based:
            model.estimate(random_rows(range(1, 40), vocabularies.tgt_size, seed))
        for parameter in model.parameters():  # no weight keeps a special initial value such as 0 or 1
            parameter.data += 0.1 * torch.randn_like(parameter)
    return model


def random_rows(lengths: Sequence[int], vocab_size: int, seed: int = 0) -> list[list[int]]:
    """Rows of ids without begin and end, one for each length."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(3, vocab_size, (length,), generator=generator).tolist() for length in lengths]


def random_source(lengths: Sequence[int], seed: int = 0, vocabularies: Vocabularies = VOCABULARIES) -> TokenSource:
    """Random sentences of these lengths, with eos and padding."""
    return source_from_ids(random_rows(lengths, vocabularies.src_size, seed), EOS, PAD)


def random_images(number: int, seed: int = 0) -> ImageSource:
    """Random images of two by three patches."""
    generator = torch.Generator().manual_seed(seed)
    shape = (number, 3, 2 * PATCH, 3 * PATCH)
    return ImageSource(torch.randint(256, shape, generator=generator, dtype=torch.uint8))


def random_documents(lengths: Sequence[int], seed: int = 0) -> DocumentSource:
    """Random documents of as many sentences as `random_source` has tokens, of one to five tokens each."""
    rows = []
    for at, length in enumerate(lengths):
        sentences = random_rows([1 + (at + 3 * number) % 5 for number in range(length + 1)], 14, seed + at)
        rows.append([token for sentence in sentences for token in (*sentence, EOS)])
    return documents_from_ids(rows, EOS, PAD)


def source_for(model: Any, lengths: Sequence[int], seed: int = 0) -> Any:
    """A random source that a model reads: sentences of these lengths, documents of as many, or as many images."""
    kind = getattr(model, "source", "tokens")
    if kind == "images":
        return random_images(len(lengths), seed)
    return random_documents(lengths, seed) if kind == "documents" else random_source(lengths, seed)


def random_targets(num_rows: int, length: int, seed: int = 0) -> torch.Tensor:
    """`[B, T]` random target ids; the first is begin of sentence."""
    rows = random_rows([length] * num_rows, VOCABULARIES.tgt_size, seed)
    ids = torch.tensor(rows, dtype=torch.long)
    ids[:, 0] = BOS
    return ids


def row_of(source: Any, row: int) -> Any:
    """One row of a source, without padding."""
    return source.part(slice(row, row + 1))


def together(rows: Sequence[Any]) -> Any:
    """Sources of one row each, as one source."""
    if isinstance(rows[0], ImageSource):
        return ImageSource(torch.cat([row.pixels for row in rows]))
    ids = pad_sequence([row.ids[0] for row in rows], batch_first=True, padding_value=PAD)
    return TokenSource(ids, ids != PAD)


@functools.cache
@torch.enable_grad()  # whatever the test that asks first has set
def half_trained(name: str, num_updates: int = 60) -> Model:
    """The named model after a short training to copy, so that it has clear preferences and ends its outputs.

    Models with random weights repeat one token forever or end at once.
    """
    joint = Vocabularies(VOCABULARIES.tgt_size, VOCABULARIES.tgt_size)
    model = model_of(name, seed=1, vocabularies=joint)
    if model.count_based:
        return model
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for update in range(num_updates):
        rows = random_rows([1 + (update + row) % 8 for row in range(24)], joint.tgt_size, seed=update)
        batch = collate(rows, rows, range(24), BOS, EOS, PAD)
        loss_sum, _, _ = chain_rule_loss(model, batch, Smoothing(), None)
        optimizer.zero_grad()
        (loss_sum / batch.num_tokens).backward()
        optimizer.step()
    return model.requires_grad_(False)
