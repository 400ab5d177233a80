"""Neural n-gram model: equation 1 of Bengio et al. (2003)."""

from __future__ import annotations

import pytest
import torch
from random_models import BOS, VOCABULARIES, random_targets
from torch import nn

from heed.models.feed_forward_lm import FeedForward, FeedForwardConfig
from heed.nn.dropout_keys import DropoutKeys


def build(**choices: object) -> FeedForward:
    """The model with random weights."""
    torch.manual_seed(3)
    model = FeedForward(FeedForwardConfig.model_validate({"d_model": 5, "hidden_size": 6, **choices}), VOCABULARIES)
    for parameter in model.parameters():
        nn.init.normal_(parameter)
    return model


@pytest.mark.parametrize("order", [2, 3, 5])
@pytest.mark.parametrize("direct", [True, False])
@torch.no_grad()
def test_it_is_the_equation(order: int, direct: bool) -> None:
    """y = b + W x + U tanh(d + H x), x from the newest word to the oldest, begin of sentence before the first."""
    model, ids = build(order=order, direct=direct), random_targets(1, 7)
    history = [BOS] * (order - 2)
    features, _ = model.advance(ids, model.start(None))
    u, w = model.head.weight.split((6, model.head.weight.shape[1] - 6), dim=1)
    for t, word in enumerate(ids[0].tolist()):
        history.append(word)
        x = torch.cat([model.embedding[previous] for previous in reversed(history[-(order - 1) :])])
        h = torch.tanh(model.hidden.bias + model.hidden.weight @ x)
        y = model.head.bias + u @ h + (w @ x if direct else 0)
        torch.testing.assert_close(model.head.log_probs(features)[0, t], y.log_softmax(-1), rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_words_before_the_last_n_minus_one_do_not_matter() -> None:
    model, ids = build(order=3), random_targets(2, 6)
    before, _ = model.advance(ids, model.start(None, 2))
    ids[:, 0] = 7
    after, _ = model.advance(ids, model.start(None, 2))
    changed = [not torch.equal(a, b) for a, b in zip(before.unbind(1), after.unbind(1), strict=True)]
    assert changed == [True, True, False, False, False, False]


@torch.no_grad()
def test_dropout_is_optional() -> None:
    dropout_keys, ids = DropoutKeys.for_step(1, 1, torch.arange(2)), random_targets(2, 6)
    for share in (0.0, 0.5):
        model = build(dropout=share)
        noisy, _ = model.advance(ids, model.start(None, 2, dropout_keys=dropout_keys))
        plain, _ = model.advance(ids, model.start(None, 2))
        assert torch.equal(noisy, plain) == (share == 0.0)
