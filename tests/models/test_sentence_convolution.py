"""Encoders of the recurrent continuous translation models: equal to their definition, written out in loops."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from random_models import CONFIGS, VOCABULARIES, model_of, random_source, random_targets, row_of
from torch import Tensor, nn

from heed.models.encoder_decoder import EncoderDecoder
from heed.models.sentence_convolution import SentenceConvolution, SentenceConvolutionConfig

LENGTHS = [1, 2, 3, 4, 5, 6, 9, 10, 11, 14, 20]
CLOSE = {"rtol": 1e-4, "atol": 1e-5}
D = 8


def convolution(columns: list[Tensor], weights: Tensor) -> list[Tensor]:
    """tanh(Σ_a K_a ⊙ E_{j+a}) wherever all columns exist."""
    size = len(weights)
    return [
        torch.tanh(torch.stack([weights[a] * columns[j + a] for a in range(size)]).sum(0))
        for j in range(len(columns) - size + 1)
    ]


def words_of(model: Any, source: Any) -> list[Tensor]:
    return [model.embedding.weight[word] * D**0.5 for word in source.ids[0]]


@torch.no_grad()
def test_a_sentence_is_joined_by_growing_kernels_and_a_top_kernel() -> None:
    torch.manual_seed(4)
    model = SentenceConvolution(SentenceConvolutionConfig(d_model=D, longest_kernel=5), VOCABULARIES)
    source = random_source(LENGTHS)
    _, ((found,),) = model.read_to_end(source)
    kernels = torch.split(model.kernels, [2, 3, 4, 5])
    for row in range(len(LENGTHS)):
        columns = words_of(model, row_of(source, row))
        level = 0
        while len(columns) >= len(kernels[min(level, 3)]):
            columns = convolution(columns, kernels[min(level, 3)])
            level += 1
        if len(columns) > 1:
            [joined] = convolution(columns, model.tops[len(columns) - 2][: len(columns)])
            columns = [joined]
        torch.testing.assert_close(found[row], columns[0], **CLOSE)


@torch.no_grad()
def test_the_features_of_a_sentence_model_are_its_columns_of_four_words() -> None:
    model, source = model_of("sentence_convolution"), random_source([9])
    kernels = torch.split(model.kernels, [2, 3, 4])
    columns = convolution(convolution(words_of(model, source), kernels[0]), kernels[1])
    torch.testing.assert_close(model.read(source)[0, : len(columns)], torch.stack(columns), **CLOSE)


@pytest.mark.parametrize("length", [3, 4, 9])
@torch.no_grad()
def test_the_inverse_unfolds_as_many_columns_as_the_source_has_words(length: int) -> None:
    model, source = model_of("ngram_convolution"), random_source([length])
    columns = convolution(convolution(words_of(model, source), model.kernels[0]), model.kernels[1])
    columns = [torch.tanh(model.transform(column)) for column in columns]
    for weights in model.inverse:
        size = len(weights)
        wider = [torch.zeros(D) for _ in range(len(columns) + size - 1)]
        for j, column in enumerate(columns):
            for a in range(size):
                wider[j + a] += weights[a] * column
        columns = [torch.tanh(column) for column in wider]
    assert len(columns) == length + 1  # with the end of the sentence
    torch.testing.assert_close(model.read(source)[0], torch.stack(columns), **CLOSE)


@pytest.mark.parametrize("name", ["encoder_decoder, RCTM I", "encoder_decoder, RCTM II"])
@torch.no_grad()
def test_the_recurrent_model_reads_a_word_and_the_sentence_or_its_own_column_at_each_step(name: str) -> None:
    """h_{t+1} = tanh(R h_t + I e(w_t) + S s_t), with s the vector of the sentence (I) or column t (II)."""
    torch.manual_seed(3)
    model: Any = EncoderDecoder(CONFIGS[name], VOCABULARIES)  # type: ignore[arg-type]
    source, ids = random_source([6]), random_targets(1, 9)
    features, last = model.encoder.read_to_end(source)
    columns = [last[0][0][0]] * 9 if last else [features[0, min(t, 6)] for t in range(9)]
    cell = nn.RNNCell(12 + D, 12)
    layer = model.decoder.layers[0]
    cell.load_state_dict({
        "weight_ih": layer.input.weight, "bias_ih": layer.input.bias,
        "weight_hh": layer.recurrent.weight, "bias_hh": layer.recurrent.bias,
    })  # fmt: skip
    found, _ = model.advance(ids, model.start(source))
    h = torch.zeros(12)
    for t, word in enumerate(ids[0]):
        h = cell(torch.cat((model.embedding.weight[word] * 12**0.5, columns[t]))[None], h[None])[0]
        torch.testing.assert_close(found[0, t], h, **CLOSE)
