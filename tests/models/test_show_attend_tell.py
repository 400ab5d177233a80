"""Show, Attend and Tell: its equations written out, the terms of its loss, and the gradient of REINFORCE."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from random_models import model_of, random_images, random_targets
from torch import Tensor

from heed.core.errors import UsageError
from heed.models.show_attend_tell import ShowAttendTell, ShowAttendTellConfig
from heed.nn.caption_head import AttentionTerms, CaptionHead
from heed.nn.contract import Smoothing, Trace
from heed.nn.dropout_keys import DropoutKeys
from heed.nn.heads import LinearHead


def written_out(model: ShowAttendTell, annotations: Tensor, ids: Tensor, is_hard: bool) -> tuple[Tensor, Tensor]:
    """log p of the whole vocabulary and α at each step, for one image, by the equations of the paper."""
    weights = dict(model.named_parameters())

    def linear(name: str, x: Tensor) -> Tensor:
        bias = weights.get(f"{name}.bias")
        return weights[f"{name}.weight"] @ x + (0 if bias is None else bias)

    h, c = torch.tanh(linear("initial", annotations.mean(0))).chunk(2)
    log_probs, alphas = [], []
    for word in ids:
        e = torch.stack([
            linear("attention.score", torch.tanh(linear("attention.key", a) + linear("attention.query", h)))[0]
            for a in annotations
        ])  # fmt: skip
        alpha = e.exp() / e.exp().sum()
        z = annotations[alpha.argmax()] if is_hard else sum(p * a for p, a in zip(alpha, annotations, strict=True))
        z = torch.sigmoid(linear("gate", h)) * z
        embedded = weights["embedding"][word] * math.sqrt(model.config.d_model)
        i, f, g, o = (linear("cell.input", torch.cat((embedded, z))) + linear("cell.recurrent", h)).chunk(4)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        logits = linear("head.head", embedded + linear("from_hidden", h) + linear("from_context", z))
        log_probs.append(logits.log_softmax(0))
        alphas.append(alpha)
    return torch.stack(log_probs), torch.stack(alphas)


@pytest.mark.parametrize("name", ["show_attend_tell", "show_attend_tell, hard"])
@torch.no_grad()
def test_the_model_is_its_equations(name: str) -> None:
    model, source, ids, trace = model_of(name), random_images(1), random_targets(1, 5), Trace()
    features, _ = model.advance(ids, model.start(source), trace)
    log_probs, alphas = written_out(model, model.encoder.read(source)[0], ids[0], "hard" in name)
    torch.testing.assert_close(model.head.log_probs(features)[0], log_probs, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(torch.cat(trace.weights["decoder.cross"], 2)[0, 0], alphas, rtol=1e-4, atol=1e-6)


def head_of(terms: AttentionTerms, is_hard: bool) -> CaptionHead:
    torch.manual_seed(1)
    return CaptionHead(LinearHead(torch.nn.Parameter(torch.randn(7, 3)), 0), 3, terms, is_hard)


ALPHAS = torch.tensor([[[0.9, 0.1], [0.6, 0.4], [0.5, 0.5]], [[0.2, 0.8], [0.3, 0.7], [1.0, 0.0]]])
MASK = torch.tensor([[True, True, True], [True, True, False]])
TRUTH = torch.tensor([[3, 4, 2], [5, 2, 0]])


def test_the_doubly_stochastic_term_sums_over_real_words() -> None:
    """Row 1: (1 - 2.0)² + (1 - 1.0)²; row 2: (1 - 0.5)² + (1 - 1.5)²."""
    features = torch.cat((torch.randn(2, 3, 3), ALPHAS), -1)
    with_term, without = (
        head_of(AttentionTerms(x), False).loss(features, TRUTH, MASK, Smoothing()) for x in (2.0, 0.0)
    )
    assert float((with_term[0] - without[0]).detach()) == pytest.approx(2 * (1 + 0 + 0.25 + 0.25), rel=1e-5)
    assert torch.equal(with_term[1], without[1])


def test_reinforce_and_entropy_by_hand() -> None:
    log_places, entropies = torch.tensor([[-1.0, -2.0, -3.0], [-4.0, -5.0, -6.0]]), torch.full((2, 3), 0.5)
    features = torch.cat((torch.randn(2, 3, 3), ALPHAS, log_places[..., None], entropies[..., None]), -1)
    head, plain = head_of(AttentionTerms(0.0, 0.5, 0.1), True), head_of(AttentionTerms(), True)
    log_probs = plain.log_prob(features, TRUTH) * MASK
    for moving, baseline in ((1.7, -1.7), (None, float(log_probs.detach().sum() / 5))):
        advantage = log_probs.sum(1) - baseline * torch.tensor([3.0, 2.0])
        expected = -0.5 * (advantage[0] * -6 + advantage[1] * -9) - 0.1 * 0.5 * 5
        difference = (
            head.loss(features, TRUTH, MASK, Smoothing(), moving)[0] - plain.loss(features, TRUTH, MASK, Smoothing())[0]
        )
        torch.testing.assert_close(difference, expected.detach(), rtol=1e-4, atol=1e-4)


def keys_of(number: int) -> DropoutKeys:
    return DropoutKeys.for_step(5, 1, torch.arange(number))


def test_places_are_drawn_by_their_probability_and_half_of_the_rows_take_the_expectation() -> None:
    torch.manual_seed(0)
    model, number = model_of("show_attend_tell, hard"), 4000
    state: Any = model.start(random_images(1), number, dropout_keys=keys_of(1))
    state = type(state)(state.memory, state.hidden, state.cell, 0, keys_of(number))
    weights = torch.tensor([[0.5, 0.2, 0.1, 0.1, 0.06, 0.04]]).expand(number, -1)
    chosen, attended = model._place(weights, state, 0)
    is_place = (chosen == 1).any(1)
    assert abs(float(is_place.float().mean()) - 0.5) < 0.03
    torch.testing.assert_close(chosen[is_place].mean(0), weights[0], rtol=0, atol=0.03)
    torch.testing.assert_close(chosen[~is_place], weights[~is_place])
    torch.testing.assert_close(attended[is_place, -2], (chosen * weights).sum(1)[is_place].log())
    assert (attended[~is_place, -2] == 0).all()
    entropy = -(weights[0] * weights[0].log()).sum()
    torch.testing.assert_close(attended[:, -1], entropy.expand(number))


def test_the_gradient_of_reinforce_is_that_of_the_expected_reward() -> None:
    """E_s[r(s) ∂ log p(s)] = ∂ E_s[r(s)], here summed over all places of a distribution, for any baseline."""
    logits = torch.tensor([0.3, -0.2, 0.9], requires_grad=True)
    reward = torch.tensor([-1.0, -3.0, -0.5])
    [expected] = torch.autograd.grad((logits.softmax(0) * reward).sum(), logits)
    for baseline in (0.0, -2.0):
        probs = logits.softmax(0)
        estimate = (probs.detach() * (reward - baseline) * probs.log()).sum()
        torch.testing.assert_close(torch.autograd.grad(estimate, logits)[0], expected)


def test_stages_without_features_are_refused() -> None:
    with pytest.raises(UsageError, match="channels"):
        ShowAttendTellConfig(channels=(0, 4, 4))


def test_a_model_of_images_needs_them_and_has_no_other_engine() -> None:
    for name in ("show_attend_tell", "image_transformer"):
        with pytest.raises(ValueError, match="needs"):
            model_of(name).start(None)
        with pytest.raises(UsageError, match="CTranslate2 does not have models of kind"):
            model_of(name).require_ctranslate2()
