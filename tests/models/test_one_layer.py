"""One-layer Transformer: equal to the notes' formulas, for which the notes' lemmas hold."""

from __future__ import annotations

import math

import pytest
import torch
from random_models import ONE_LAYER, model_of, random_rows
from torch import Tensor

from heed.core.errors import UsageError
from heed.models.one_layer import OneLayer, OneLayerConfig
from heed.nn.contract import Vocabularies
from heed.nn.dropout_keys import DropoutKeys

SIZE = 12


def random_ids(num_rows: int, length: int, seed: int = 0) -> Tensor:
    """Real tokens."""
    return torch.tensor(random_rows([length] * num_rows, SIZE, seed))


def build(**changes: object) -> OneLayer:
    """The model in float64, so that what is equal is equal to the last digits."""
    torch.manual_seed(3)
    return OneLayer(ONE_LAYER.model_copy(update=changes), Vocabularies(0, SIZE)).double().requires_grad_(False)


def attend(model: OneLayer, x: Tensor) -> Tensor:
    """h = softmax(QKᵀ / √d_hidden) V of embedded tokens, each of which sees all others."""
    scores = model.query(x) @ model.key(x).transpose(1, 2) / math.sqrt(model.config.hidden_size)
    return scores.softmax(-1) @ model.value(x)


def by_hand(model: OneLayer, ids: list[int]) -> Tensor:
    """The notes' section 4, number by number: the probabilities of the token after a window."""
    d, rows = model.config.d_model, []
    for t, id in enumerate(ids):
        angles = [t / 10000 ** (2 * i / d) for i in range(d // 2)]
        position = [f(angle) for angle in angles for f in (math.sin, math.cos)]
        rows.append(model.embedding[id] + torch.tensor(position, dtype=torch.float64).float())
    x = torch.stack(rows)
    query, key, value = (x @ layer.weight.t() for layer in (model.query, model.key, model.value))
    h = torch.softmax(query @ key.t() / math.sqrt(model.config.hidden_size), dim=1) @ value
    output = torch.relu(torch.relu(h @ model.expand.weight.t()) @ model.contract.weight.t())
    return torch.softmax(output @ model.embedding.t(), dim=1)[-1]


@pytest.mark.parametrize("predicts", ["every", "last"])
def test_probabilities_are_those_of_the_notes_formulas(predicts: str) -> None:
    """Of both variants, at every position: with one layer the masked one says what the other says of each beginning."""
    model, ids = build(predicts=predicts), random_ids(1, 9)
    features, _ = model.advance(ids, model.start(None, 1))
    found = model.head.logits(features).softmax(-1)[0]
    for end in range(1, 10):
        torch.testing.assert_close(found[end - 1], by_hand(model, ids[0, :end].tolist()), rtol=1e-6, atol=1e-8)


def test_the_last_position_of_the_unmasked_window_predicts() -> None:
    model, ids = build(predicts="last", max_len=5), random_ids(2, 11)
    features, _ = model.advance(ids, model.start(None, 2))
    for end in range(1, 12):
        window = ids[:, max(0, end - 5) : end]
        h = attend(model, model.embedding[window] + model.positions[: window.shape[1]])[:, -1]
        output = torch.relu(model.contract(torch.relu(model.expand(h))))
        torch.testing.assert_close(features[:, end - 1], output)


def test_both_variants_are_equal_within_a_window_even_with_dropout() -> None:
    ids, dropout_keys = random_ids(2, 9), DropoutKeys.for_step(1, 2, torch.tensor([4, 5]))
    every, last = (build(predicts=predicts) for predicts in ("every", "last"))
    found = [model.advance(ids, model.start(None, 2, dropout_keys=dropout_keys))[0] for model in (every, last)]
    torch.testing.assert_close(*found)
    assert not torch.allclose(found[0], every.advance(ids, every.start(None, 2))[0])


def test_windows_can_be_computed_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory for a few windows at a time is enough."""
    model, ids = build(predicts="last", max_len=4), random_ids(2, 10)
    whole, _ = model.advance(ids, model.start(None, 2))
    monkeypatch.setattr("heed.models.one_layer.WINDOW_ELEMENTS", 300)
    torch.testing.assert_close(model.advance(ids, model.start(None, 2))[0], whole)


def test_there_are_as_many_weights_as_the_notes_give() -> None:
    """E and four matrices more, W_Q, W_K, W_V of one shape; nothing else."""
    config = OneLayerConfig(d_model=20, hidden_size=7, d_ff=30)
    model = OneLayer(config, Vocabularies(0, 50))
    assert sum(p.numel() for p in model.parameters()) == 50 * 20 + 3 * 20 * 7 + 7 * 30 + 30 * 20


def test_tokens_outside_a_sliding_window_do_not_matter() -> None:
    model = model_of("one_layer, last")
    ids = random_ids(1, 9)
    changed = ids.clone()
    changed[:, :5] = (changed[:, :5] - 2) % 9 + 3
    found = [model.advance(text, model.start(None, 1))[0][:, 8] for text in (ids, changed)]
    assert found[0].equal(found[1])


def test_an_odd_size_is_refused_for_sinusoidal_positions() -> None:
    with pytest.raises(UsageError, match="d_model must be even for sinusoidal positions, got 11"):
        OneLayerConfig(d_model=11)
