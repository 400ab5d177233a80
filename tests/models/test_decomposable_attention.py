"""Decomposable attention: equal to its formulas written out, position by position."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from random_models import VOCABULARIES, model_of
from torch import Tensor

from heed.data.batch import source_from_ids
from heed.models.decomposable_attention import NUM_MATCHES
from heed.nn.contract import Trace
from heed.nn.pooling import PoolingHead
from heed.text.vocabulary import Vocabulary

EOS, UNK = Vocabulary.eos_id, Vocabulary.unk_id
FIRST, SECOND = [5, 6, 7], [7, 5, 8, 9, 7]


def read(model: Any, first: list[int], second: list[int]) -> Tensor:
    features: Tensor = model.read(source_from_ids([[*first, EOS, *second]], EOS, Vocabulary.pad_id))[0]
    return features


@pytest.fixture
def model() -> Any:
    return model_of("decomposable_attention")


def compared(model: Any, text: list[int], other: list[int]) -> list[Tensor]:
    """v_i of each token of a text (equations 1 to 3)."""

    def network(layers: Any, x: Tensor) -> Tensor:
        return torch.relu(layers[1](torch.relu(layers[0](x))))

    def vector(token: int) -> Tensor:
        row: Tensor = model.embedding[token]
        return row / row.norm()

    scale, result = model.config.d_model**0.5, []
    for token in text:
        own = model.project(vector(token) * scale)
        values = torch.stack([model.project(vector(each) * scale) for each in other])
        scores = [network(model.attend, own) @ network(model.attend, value) for value in values]
        aligned = torch.stack(scores).softmax(0) @ values
        cosines = [*sorted((float(vector(token) @ vector(each)) for each in other), reverse=True), 0.0, 0.0]
        matches = torch.tensor([float(token in other), *(max(cosine, 0.0) for cosine in cosines[: NUM_MATCHES - 1])])
        parts = [own, aligned, own - aligned, own * aligned, matches]
        result.append(network(model.compare, torch.cat(parts)))
    return result


@torch.no_grad()
def test_it_is_what_its_formulas_say(model: Any) -> None:
    features = read(model, FIRST, SECOND)
    size = model.config.hidden_size
    assert features.shape == (len(FIRST) + 1 + len(SECOND) + 1, 2 * size)
    first, second = compared(model, FIRST, SECOND), compared(model, SECOND, FIRST)
    zero = torch.zeros(size)
    expected = [*(torch.cat((v, zero)) for v in first), torch.zeros(2 * size)]
    expected += [*(torch.cat((zero, v)) for v in second), torch.zeros(2 * size)]
    torch.testing.assert_close(features, torch.stack(expected), rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_a_maximum_over_all_positions_is_that_of_each_text(model: Any) -> None:
    features = read(model, FIRST, SECOND)[None]
    pooled = PoolingHead(model.num_features, 2, "max", 0.0).pool(features, torch.ones(1, features.shape[1]).bool())
    each = [torch.stack(compared(model, *pair)).amax(0) for pair in ((FIRST, SECOND), (SECOND, FIRST))]
    torch.testing.assert_close(pooled[0], torch.cat(each), rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_the_order_of_the_texts_counts_and_that_of_words_does_not(model: Any) -> None:
    features = read(model, FIRST, SECOND)
    assert not torch.allclose(features.amax(0), read(model, SECOND, FIRST).amax(0), atol=1e-4)
    torch.testing.assert_close(features.amax(0), read(model, FIRST[::-1], SECOND).amax(0))


@torch.no_grad()
def test_unknown_words_do_not_match_each_other(model: Any) -> None:
    ids = torch.tensor([[UNK, 5, EOS, 5, UNK, EOS]])
    source = source_from_ids([[UNK, 5, EOS, 5, UNK]], EOS, Vocabulary.pad_id)
    x = torch.nn.functional.normalize(model.embedding[ids], dim=-1)
    assert model._matches(source, x, model._sides(source))[0, :, 0].tolist() == [0, 1, 0, 1, 0, 0]
    assert VOCABULARIES.unk_id == UNK


@torch.no_grad()
@pytest.mark.parametrize("pair", [([], SECOND), (FIRST, []), ([], [])], ids=["no first", "no second", "neither"])
def test_an_empty_text_is_compared_with_nothing(model: Any, pair: tuple[list[int], list[int]]) -> None:
    features = read(model, *pair)
    assert torch.isfinite(features).all()
    size = model.config.hidden_size
    assert bool(features[:, :size].any()) == bool(pair[0])
    assert bool(features[:, size:].any()) == bool(pair[1])


@torch.no_grad()
def test_the_attention_of_each_token_is_to_the_other_text(model: Any) -> None:
    trace = Trace()
    model.read(source_from_ids([[*FIRST, EOS, *SECOND]], EOS, Vocabulary.pad_id), None, trace)
    [[weights]] = trace.weights["alignment.self"][0]
    first, second = slice(0, len(FIRST)), slice(len(FIRST) + 1, len(FIRST) + 1 + len(SECOND))
    torch.testing.assert_close(weights[first, second].sum(1), torch.ones(len(FIRST)))
    torch.testing.assert_close(weights[second, first].sum(1), torch.ones(len(SECOND)))
    assert not weights[first, first].any() and not weights[second, second].any()
