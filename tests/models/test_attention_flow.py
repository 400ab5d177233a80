"""The reader of two texts: equal to its formulas written out, and blind to padding and neighbours."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from random_models import VOCABULARIES, model_of

from heed.data.batch import source_from_ids
from heed.nn.contract import TokenSource, Trace
from heed.nn.two_texts import attend
from heed.text.vocabulary import Vocabulary

EOS = Vocabulary.eos_id
PAIRS = [[5, 6, EOS, 7, 5, 8, 9], [4, EOS, 6], [7, 8, 9, 4, 5]]
"""Two texts, two short ones, and a single one."""


def source(rows: list[list[int]]) -> TokenSource:
    return source_from_ids(rows, EOS, Vocabulary.pad_id)


@pytest.fixture
def model() -> Any:
    return model_of("attention_flow")


@torch.no_grad()
def test_it_is_what_its_formulas_say(model: Any) -> None:
    [features] = model.read(source(PAIRS[:1]))
    x = model.embedding[torch.tensor([*PAIRS[0], EOS])]
    asked, context = range(3), range(3, 8)
    other = {i: context if i in asked else asked for i in range(8)}

    def weighted(scores: dict[int, torch.Tensor], values: torch.Tensor) -> torch.Tensor:
        shares = torch.stack([*scores.values()]).softmax(0)
        return sum((share * values[j] for share, j in zip(shares, scores, strict=True)), torch.zeros(len(values[0])))

    keys = [torch.relu(model.alignment(each)) for each in x]
    y = torch.stack([weighted({j: keys[i] @ keys[j] for j in other[i]}, x) for i in range(8)])
    mask = torch.ones(1, 8, dtype=torch.bool)
    h = model.first(torch.cat((x, y), -1)[None], mask)[0][0]
    u, v, w = model.similarity.weight
    c = torch.stack([weighted({j: u @ h[i] + v @ h[j] + w @ (h[i] * h[j]) for j in other[i]}, h) for i in range(8)])
    q = weighted({j: model.summary(h[j])[0] for j in asked}, h)
    joined = torch.relu(model.flow(torch.cat((h, c, h * c, q.expand(8, -1)), -1)))
    expected = model.layers[0](joined[None], mask)[0][0]
    torch.testing.assert_close(features, expected, rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_padding_and_neighbours_do_not_change_a_pair(model: Any) -> None:
    together = model.read(source(PAIRS))
    for row, ids in enumerate(PAIRS):
        [alone] = model.read(source([ids]))
        torch.testing.assert_close(together[row, : len(ids) + 1], alone, rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_each_text_depends_on_the_other(model: Any) -> None:
    changed = [*PAIRS[0][:1], 9, *PAIRS[0][2:]]
    before, after = model.read(source([PAIRS[0]]))[0], model.read(source([changed]))[0]
    assert not torch.allclose(before[3:], after[3:], atol=1e-4)
    assert model.num_features == before.shape[-1] == 20
    assert VOCABULARIES.eos_id == EOS


def test_attention_to_nothing_is_zero() -> None:
    mask = torch.tensor([[[True, False, True], [False, False, False]]])
    weights = attend(torch.tensor([[[1.0, 5.0, 1.0], [1.0, 2.0, 3.0]]]), mask)
    assert weights.tolist() == [[[0.5, 0.0, 0.5], [0.0, 0.0, 0.0]]]


@torch.no_grad()
def test_traced_attention_is_that_to_the_other_text(model: Any) -> None:
    trace, pairs = Trace(), source(PAIRS)
    traced = model.read(pairs, None, trace)
    torch.testing.assert_close(traced, model.read(pairs))
    assert [*trace.weights] == ["alignment.self", "flow.self"]
    for [weights] in trace.weights.values():
        for row, ids in enumerate(PAIRS):
            asked = ids.index(EOS) + 1 if EOS in ids else len(ids) + 1
            side = torch.arange(weights.shape[-1]) < asked
            real = torch.arange(weights.shape[-1]) < len(ids) + 1
            other = (side[:, None] != side) & real & real[:, None]
            assert (weights[row, 0] > 0)[real].equal(other[real])
            expected = other.any(1)[real].float()
            torch.testing.assert_close(weights[row, 0].sum(-1)[real], expected)
