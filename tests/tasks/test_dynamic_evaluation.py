"""Dynamic evaluation and continuous cache against their formulas; tokens are scored before they are learned."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from random_models import BOS, VOCABULARIES, model_of
from torch import nn

from heed.core.errors import UsageError
from heed.data.text_stream import TextStream
from heed.decoding.scoring import StreamReader
from heed.tasks.language_model.dynamic_evaluation import (
    STEP,
    ContinuousCache,
    DynamicOptions,
    DynamicReader,
    RmsRule,
    SgdRule,
    gradient_rms,
)

CPU = torch.device("cpu")
NETWORKS = ("rnn", "rnn, AWD", "rnn, adaptive", "feed_forward", "trellisnet", "gpt")


def text_of(num_tokens: int, seed: int = 0, vocab_size: int = VOCABULARIES.tgt_size) -> TextStream:
    """Random lines, each ended."""
    generator = np.random.default_rng(seed)
    ids = generator.integers(3, vocab_size, num_tokens)
    ids[6::7] = VOCABULARIES.eos_id
    offsets = np.array([0, *range(7, num_tokens, 7), num_tokens])
    return TextStream(ids, offsets)


def reader(name: str, **choices: object) -> DynamicReader:
    """A reader of a model with random weights."""
    options = DynamicOptions.model_validate(choices)
    return DynamicReader(model_of(name), CPU, options, lambda: text_of(300, seed=9))


# Dynamic evaluation


@pytest.mark.parametrize("name", NETWORKS)
def test_a_rule_without_changes_scores_as_a_stream(name: str) -> None:
    text = text_of(40)
    static = StreamReader(model_of(name), CPU).read(text)
    np.testing.assert_allclose(reader(name, rule="sgd", lr=1e-12, decay=0.0).read(text), static, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("rule", ["sgd", "rms"])
def test_a_token_is_scored_before_it_is_learned_from(name: str, rule: str) -> None:
    """Later tokens change nothing, and in the first segment nothing has been learned yet."""
    text = text_of(30)
    numbers = {"lr": 0.5 if rule == "sgd" else 1e-3, "segment": 5}
    found = reader(name, rule=rule, **numbers).read(text)
    static = StreamReader(model_of(name), CPU).read(text)
    np.testing.assert_allclose(found[:5], static[:5], rtol=1e-4, atol=1e-4)
    assert not np.allclose(found[5:], static[5:], atol=1e-3)
    changed = TextStream(text.ids.copy(), text.offsets)
    changed.ids[20:] = np.where(changed.ids[20:] == 3, 4, 3)
    np.testing.assert_array_equal(reader(name, rule=rule, **numbers).read(changed)[:20], found[:20])


@pytest.mark.parametrize("rule", ["none", "sgd", "rms"])
def test_a_text_in_parts_is_scored_as_the_whole(rule: str) -> None:
    text = text_of(70)
    choices = {"rule": rule, "cache_share": 0.2, "segment": 5}
    whole = reader("rnn", **choices).read(text)
    in_parts = reader("rnn", **choices)
    first = in_parts.read(TextStream(text.ids[:35], text.offsets[text.offsets <= 35]))
    rest = in_parts.read(TextStream(text.ids[35:], text.offsets[text.offsets >= 35] - 35))
    np.testing.assert_allclose(np.concatenate((first, rest)), whole, rtol=1e-4, atol=1e-5)


def test_the_model_itself_is_not_changed() -> None:
    model = model_of("rnn")
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    dynamic = DynamicReader(model, CPU, DynamicOptions(rule="sgd", lr=1.0), lambda: text_of(300))
    dynamic.read(text_of(20))
    assert all(weight.equal(before[name]) for name, weight in model.named_parameters())


def test_it_learns_a_text_that_repeats_itself() -> None:
    text = text_of(7 * 30)
    text.ids[:] = np.tile(text.ids[:7], 30)
    static = StreamReader(model_of("rnn"), CPU).read(text)
    for rule, lr in (("sgd", 0.5), ("rms", 1e-3)):
        assert reader("rnn", rule=rule, lr=lr).read(text)[100:].mean() > static[100:].mean() + 0.3


def test_the_rule_of_the_notes_equals_its_formula() -> None:
    """θ - η ∇ + λ (θ_g - θ), with the θ from before."""
    weight = nn.Parameter(torch.tensor([1.0, 2.0]))
    rule = SgdRule([weight], lr=0.5, decay=0.1)
    weight.data = torch.tensor([3.0, 2.0])
    weight.grad = torch.tensor([1.0, -2.0])
    rule()
    torch.testing.assert_close(weight.data, torch.tensor([3 - 0.5 + 0.1 * (1 - 3), 2 + 1.0]))
    assert weight.grad is None


def test_the_default_rate_is_relative_to_the_mean_square_of_the_gradients() -> None:
    weight, other = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(1))
    rule = SgdRule([weight, other], lr=None, decay=0.0)
    weight.grad, other.grad = torch.tensor([2.0, 0.0]), torch.tensor([-1.0])  # |g|² = 5
    rule()
    torch.testing.assert_close(weight.data, torch.tensor([-2 * STEP / 5, 0.0]))
    torch.testing.assert_close(other.data, torch.tensor([STEP / 5]))
    weight.grad = torch.tensor([0.0, 3.0])  # |g|² = 9, on average 7
    rule()
    torch.testing.assert_close(weight.data, torch.tensor([-2 * STEP / 5, -3 * STEP / 7]))


def test_the_rule_of_krause_et_al_equals_its_formula() -> None:
    """λ R is held at 1: the first weight goes back to where it was trained, less the gradient."""
    weight, other = nn.Parameter(torch.tensor([1.0, 2.0])), nn.Parameter(torch.tensor([4.0]))
    rms = [torch.tensor([30.0, 2.0]), torch.tensor([4.0])]  # means 16 and 4, and of both 10
    rule = RmsRule([weight, other], rms, epsilon=1.0, lr=0.5, decay=0.4)
    weight.data, other.data = torch.tensor([3.0, 5.0]), torch.tensor([6.0])
    weight.grad = torch.tensor([31.0, -6.0])
    rule()
    torch.testing.assert_close(weight.data, torch.tensor([1 - 0.5, 5 + 0.4 * 0.2 * (2 - 5) + 0.5 * 6 / 3]))
    torch.testing.assert_close(other.data, torch.tensor([6 + 0.4 * 0.4 * (4 - 6)]))


def test_the_statistics_are_the_root_mean_square_of_the_gradients_of_batches() -> None:
    model, text = model_of("feed_forward"), text_of(300)
    found = gradient_rms(model, text, 3, CPU)  # 100 streams of three tokens: one batch
    rows = torch.from_numpy(text.ids).view(100, 3)
    begin = torch.cat((torch.tensor([BOS]), rows[:-1, -1]))[:, None]
    read = torch.cat((begin, rows[:, :-1]), dim=1)
    read[read == VOCABULARIES.eos_id] = BOS
    read[torch.arange(0, 300, 3) % 7 == 0, 0] = BOS
    features, _ = model.advance(read, model.start(None, 100))
    gradients = torch.autograd.grad(-model.head.log_prob(features, rows).mean(), list(model.parameters()))
    for rms, gradient in zip(found, gradients, strict=True):
        torch.testing.assert_close(rms, gradient.abs(), rtol=1e-4, atol=1e-7)


def test_a_count_based_model_is_refused() -> None:
    with pytest.raises(UsageError, match="count-based"):
        reader("bigram", rule="sgd")


def test_the_signature_contains_all_options() -> None:
    assert reader("rnn", rule="sgd", lr=0.1).signature == "context:stream|dynamic:sgd|lr:0.1|decay:0.001|segment:20"
    assert reader("rnn", rule="sgd").signature.startswith(f"context:stream|dynamic:sgd|lr:{STEP:g}/|g|2|decay")
    assert reader("rnn", rule="rms").signature == "context:stream|dynamic:rms|lr:0.0001|decay:0.02|segment:20"
    assert reader("rnn", cache_share=0.1).signature == "context:stream|cache:500|share:0.1|flatness:1"


# The cache


@pytest.mark.parametrize("size", [4, 100])
def test_the_cache_is_the_published_mixture(size: int) -> None:
    """p_cache(w) ∝ Σ_i 1{w_i = w} exp(θ h_t · h_i) over the last words before this one, word by word."""
    torch.manual_seed(0)
    features, words = torch.randn(20, 6), torch.randint(0, 4, (20,))
    log_probs = torch.randn(20).abs().neg()
    cache = ContinuousCache(size, flatness=0.7, share=0.3)
    found = torch.cat([
        cache.mixed(log_probs[part], features[part], words[part]) for part in (slice(0, 1), slice(1, 9), slice(9, 20))
    ])  # fmt: skip
    torch.testing.assert_close(found[0], log_probs[0])
    for t in range(1, 20):
        past = range(max(0, t - size), t)
        weights = {i: math.exp(0.7 * float(features[t] @ features[i])) for i in past}
        share = sum(weight for i, weight in weights.items() if words[i] == words[t]) / sum(weights.values())
        expected = math.log(0.7 * math.exp(log_probs[t]) + 0.3 * share)
        assert float(found[t]) == pytest.approx(expected, rel=1e-4)


def test_with_the_cache_probabilities_still_sum_to_one() -> None:
    torch.manual_seed(0)
    past, words, now = torch.randn(9, 6), torch.randint(0, 5, (9,)), torch.randn(1, 6)
    model = torch.randn(5).log_softmax(0)
    total = 0.0
    for word in range(5):
        cache = ContinuousCache(50, flatness=1.0, share=0.4)
        cache.mixed(torch.zeros(9), past, words)
        total += math.exp(cache.mixed(model[word : word + 1], now, torch.tensor([word]))[0])
    assert total == pytest.approx(1.0, rel=1e-5)
