"""Laws of readers (`heed.models.model.ReaderModel`), for every reader of heed."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from random_models import CONFIGS, READER_CONFIGS, model_of, random_source, row_of, source_for

from heed.models import MODELS, ReaderModel
from heed.models.transformer import TransformerConfig
from heed.nn.contract import TokenSource, Trace
from heed.nn.documents import DocumentSource
from heed.nn.dropout_keys import DropoutKeys


def encoder_of(name: str) -> Any:
    """The encoder of a Transformer."""
    return model_of(name).encoder


READERS: dict[str, Callable[[], Any]] = {
    **{name: partial(model_of, name) for name in READER_CONFIGS},
    **{name: partial(encoder_of, name) for name, config in CONFIGS.items() if isinstance(config, TransformerConfig)},
}
every_reader = pytest.mark.parametrize("name", READERS)
WITHOUT_ATTENTION = (
    "cnn", "sentence_convolution", "ngram_convolution", "bag", "bag, without positions", "hierarchical_attention",
    "attention_flow", "decomposable_attention",
)  # fmt: skip
"""Readers without attention between all positions; that to the words of a sentence, or to another text, has its own
test."""
CLOSE = {"rtol": 1e-4, "atol": 1e-5}
LENGTHS = [3, 8, 1]
RECURRENT = {
    "bilstm", "bigru", "birnn", "birnn, reset before", "rnn_reader", "rnn_reader, forward", "elmo",
    "elmo, one direction",
}  # fmt: skip
"""Readers without attention over the whole source."""


def test_every_reader_is_tested() -> None:
    readers = {kind for kind, model in MODELS.items() if issubclass(model, ReaderModel)}
    assert {config.kind for config in READER_CONFIGS.values()} == readers


@every_reader
@pytest.mark.parametrize("with_dropout", [False, True])
@torch.no_grad()
def test_padding_and_neighbours_do_not_change_a_row(name: str, with_dropout: bool) -> None:
    reader = READERS[name]()
    source = source_for(reader, LENGTHS)
    keys = DropoutKeys.for_step(7, 3, torch.arange(3)) if with_dropout else None
    together = reader.read(source, keys)
    assert together.shape[:2] == source.mask.shape
    for row in range(3):
        alone = row_of(source, row)
        features = reader.read(alone, keys and keys.select(torch.tensor([row])))
        torch.testing.assert_close(together[row : row + 1, : alone.mask.shape[1]], features, **CLOSE)


@every_reader
@torch.no_grad()
def test_only_positions_determine_the_order(name: str) -> None:
    reader = READERS[name]()
    source = row_of(source_for(reader, [7]), 0)
    order = torch.tensor([3, 0, 6, 1, 7, 2, 5, 4])
    permuted = _permuted(source, order)
    features, expected = reader.read(permuted), reader.read(source)[:, order]
    if "without positions" in name:
        torch.testing.assert_close(features, expected, **CLOSE)
    else:
        assert not torch.allclose(features, expected, **CLOSE)


def _permuted(source: Any, order: torch.Tensor) -> Any:
    if isinstance(source, DocumentSource):
        return DocumentSource(source.ids[order], source.tokens[order], source.mask)
    return TokenSource(source.ids[:, order], source.mask)


@pytest.mark.parametrize("name", [name for name in READERS if name not in WITHOUT_ATTENTION])
@torch.no_grad()
def test_traced_attention_sums_to_one_over_real_positions(name: str) -> None:
    reader, source, trace = READERS[name](), random_source(LENGTHS), Trace()
    traced = reader.read(source, None, trace)
    torch.testing.assert_close(traced, reader.read(source), **CLOSE)
    added = torch.ones(3, getattr(reader, "num_added", 0), dtype=torch.bool)
    real = torch.cat((added, source.mask), dim=1)
    assert bool(trace.weights) == (name not in RECURRENT)
    for [weights] in trace.weights.values():  # [B, H, S, S]
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:3]))
        assert (weights > 0).equal(real[:, None, None].expand_as(weights))
