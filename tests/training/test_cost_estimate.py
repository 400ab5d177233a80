"""Estimates of time and memory, from timed updates and arithmetic."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from heed.models import build_model
from heed.models.rnn_attention import RecurrentAttentionConfig
from heed.models.transformer import TransformerConfig
from heed.nn.contract import Vocabularies
from heed.nn.device import products_by
from heed.tasks.generation import random_batch
from heed.tasks.translation.task import TranslationTask
from heed.training.config import TrainingConfig
from heed.training.cost_estimate import CostEstimate, estimate_cost, speeds_with_fewer_threads, thread_advice
from heed.training.schedules import SCHEDULES

SMALL = TransformerConfig(d_model=16, d_ff=32, num_heads=2, num_encoder_layers=1, num_decoder_layers=1)


def estimate_for(
    training: TrainingConfig, model: Any, sizes: Vocabularies, num_tokens: float, shape: tuple[int, int]
) -> CostEstimate:
    """The expectation of a translator's training on batches of so many rows and tokens a row."""
    recipe: Any = SimpleNamespace(training=training)
    task = TranslationTask(Path(), recipe, {}, torch.device("cpu"))
    return estimate_cost(training, model, task, random_batch(*shape, sizes), num_tokens)


def test_a_limit_during_the_warm_up_causes_a_warning() -> None:
    expected = CostEstimate(1, 1, 7200, 1, 0.5, {"at most 3 minutes (training.max_minutes)": 180.0})
    warning = expected.warning(TrainingConfig(warmup_steps=800))
    assert "about 360 updates" in warning and "at least 1,600 updates (13:20)" in warning
    assert not expected.warning(TrainingConfig(warmup_steps=100))
    assert not expected.warning(TrainingConfig(warmup_steps=800), begins_trained=True)


def test_a_limit_long_before_the_end_of_the_decay_causes_a_warning() -> None:
    expected = CostEstimate(1, 1, 7200, 1, 0.5, {"at most 10 minutes (training.max_minutes)": 600.0})
    falling = TrainingConfig(schedule="linear", warmup_steps=200, max_steps=2200)
    warning = expected.warning(falling)
    assert "about 1,200 updates, after which the learning rate has fallen to 50% of its peak" in warning
    assert "zero after 2,200 updates (training.max_steps). Lower --max-steps to about 1,200" in warning
    for unchanged in ({"max_steps": 1300}, {"schedule": "inverse_sqrt"}):
        assert not expected.warning(falling.model_copy(update=unchanged))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_time_for_less_than_half_an_update_causes_no_error(schedule: Any) -> None:
    expected = CostEstimate(1, 1, 7200, 1, 9.0, {"at most 1 second (training.max_minutes)": 1.0})
    assert not expected.warning(TrainingConfig(schedule=schedule), begins_trained=True)


@pytest.mark.parametrize("precision", ["float32", "bfloat16"])
@pytest.mark.parametrize("model", [SMALL, RecurrentAttentionConfig(d_model=16, hidden_size=8, attention_size=8)])
def test_the_time_of_an_epoch_follows_from_its_tokens_and_the_measured_speed(
    model: TransformerConfig | RecurrentAttentionConfig, precision: str
) -> None:
    sizes = Vocabularies(50, 50)
    config = TrainingConfig.model_validate({"precision": precision, "tokens_per_batch": 64})
    built = build_model(model, sizes)
    found = estimate_for(config, built, sizes, 1e6, (9, 7))
    assert found.num_parameters == sum(parameter.numel() for parameter in built.parameters())
    assert found.seconds_per_epoch == pytest.approx(1e6 / found.tokens_per_second)
    assert found.tokens_per_second > 0
    assert found.memory_bytes > 4 * 6 * found.num_parameters


def test_longer_batches_and_larger_models_need_more_memory() -> None:
    def memory(tokens: int, d_ff: int) -> float:
        config = SMALL.model_copy(update={"d_ff": d_ff})
        sizes = Vocabularies(50, 50)
        training = TrainingConfig(tokens_per_batch=tokens)
        model = build_model(config, sizes)
        return estimate_for(training, model, sizes, 1e6, (tokens // 7, 7)).memory_bytes

    assert memory(64, 32) < memory(256, 32) < memory(256, 64)


def test_an_estimate_is_two_lines_of_text() -> None:
    limits = {"9 epochs (training.max_epochs)": 9 * 3725.0, "at most 65 minutes (training.max_minutes)": 3900.0}
    found = CostEstimate(1_234_567, 8_000.4, 3725, 3 * 2**30, 0.5, limits)
    assert found.render(vocabulary_known=True).split("\n") == [
        "expected: 1,234,567 parameters, 8,000 target tokens/s, 1:02:05 an epoch, at most 65 minutes "
        "(training.max_minutes),",
        "          about 3.0 GiB of memory",
    ]
    assert found.render(vocabulary_known=False).startswith("expected: at most 1,234,567 parameters, ")


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        ({"max_epochs": 3}, ", 3 epochs (training.max_epochs) in about "),
        ({"max_epochs": 3, "max_steps": 1}, ", 1 update (training.max_steps) in about "),
        ({"max_epochs": 1}, ", 1 epoch (training.max_epochs) in about "),
        ({"max_epochs": 3, "max_minutes": 1e-6}, ", at most 6e-05 seconds (training.max_minutes)"),
    ],
)
def test_the_limit_that_is_reached_first_is_shown(limits: dict[str, float], told: str) -> None:
    sizes = Vocabularies(50, 50)
    training = TrainingConfig.model_validate({"tokens_per_batch": 64, **limits})
    found = estimate_for(training, build_model(SMALL, sizes), sizes, 1e3, (8, 7))
    assert told in found.render(vocabulary_known=True)
    may_end_earlier = "max_minutes" not in limits
    assert ("or less without a better score (training.patience)" in found.render(True)) == may_end_earlier


def test_a_limit_that_is_shorter_than_an_epoch_is_shown_as_its_share() -> None:
    found = CostEstimate(1, 1, 7200, 1, 0.5, {"at most 30 minutes (training.max_minutes)": 1800.0}).render(
        vocabulary_known=True
    )
    assert "at most 30 minutes (training.max_minutes): 25% of an epoch," in found


@pytest.mark.parametrize(("seconds", "number"), [(0.5, 3), (9.0, 1)])
def test_long_updates_are_timed_less_often(monkeypatch: pytest.MonkeyPatch, seconds: float, number: int) -> None:
    timed: list[float] = []

    def update(*_: Any) -> float:
        timed.append(seconds)
        return seconds

    monkeypatch.setattr("heed.training.cost_estimate._timed_update", update)
    sizes = Vocabularies(50, 50)
    found = estimate_for(TrainingConfig(tokens_per_batch=64), build_model(SMALL, sizes), sizes, 1e6, (9, 7))
    assert len(timed) == number
    assert found.seconds_per_update == seconds


@pytest.mark.parametrize(
    ("seconds", "speeds"),
    [
        ({8: 1.0, 4: 2.0}, {4: 0.5}),
        ({8: 1.0, 4: 0.5, 2: 0.25, 1: 0.5}, {4: 2.0, 2: 4.0, 1: 2.0}),
        ({3: 1.0, 1: 0.8}, {1: 1.25}),
        ({1: 1.0}, {}),
    ],
)
def test_fewer_threads_are_timed_as_long_as_that_is_faster(
    monkeypatch: pytest.MonkeyPatch, seconds: dict[int, float], speeds: dict[int, float]
) -> None:
    monkeypatch.setattr("heed.training.cost_estimate._timed_update", lambda *_: seconds[torch.get_num_threads()])
    sizes = Vocabularies(50, 50)
    training = TrainingConfig(tokens_per_batch=64)
    task = TranslationTask(Path(), SimpleNamespace(training=training), {}, torch.device("cpu"))  # type: ignore[arg-type]
    before = torch.get_num_threads()
    with products_by(max(seconds)):
        found = speeds_with_fewer_threads(training, build_model(SMALL, sizes), task, random_batch(9, 7, sizes))
    assert found == speeds
    assert torch.get_num_threads() == before


def test_advice_on_threads_names_the_fastest_number_or_two_seeds() -> None:
    fewer = thread_advice(8, {4: 2.0, 2: 4.0, 1: 2.0}, True, True)
    assert fewer == "2 threads make 4.0 times the updates of 8 here: --threads 2 is faster."
    fewer = thread_advice(2, {1: 1.25}, False, True)
    assert fewer == "1 thread makes 1.2 times the updates of 2 here: --threads 1 is faster."
    timed, counted = (thread_advice(3, {1: 0.72}, True, is_timed) for is_timed in (True, False))
    assert timed.startswith(
        "--seeds 2 would train two models at once, with 72% of the updates each (measured: 1 of 3 threads alone)."
    )
    assert "at once, in 1.4 times the time (measured: 1 of 3" in counted
    assert "with 100% of the updates" in thread_advice(8, {4: 1.1}, True, True)
    assert thread_advice(2, {1: 0.72}, False, True) == thread_advice(2, {1: 0.55}, True, True) == ""
    assert thread_advice(1, {}, True, True) == ""
