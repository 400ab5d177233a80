"""How long will a training take and how much memory, before it begins?

A few real updates are made with random tokens of the corpus's size; the rest is arithmetic. The weights that were
touched are thrown away.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

import torch

from heed.core.progress import format_minutes, format_seconds
from heed.data.batch import Batch, collate
from heed.nn.contract import Autoregressive, Vocabularies
from heed.nn.dropout_keys import DropoutKeys
from heed.tasks.r_drop import r_drop_loss
from heed.tasks.task import chain_rule_loss
from heed.training.config import TrainingConfig
from heed.training.weights import Weights

BYTES_PER_PARAMETER = {"float32": 4 * 6, "bfloat16": 4 * 6 + 2 * 2}
"""Weights, gradients, Adam's two moments, average and validation copy in float32; bfloat16 adds two copies."""


@dataclass(frozen=True)
class Expectation:
    """What a training is expected to take."""

    num_parameters: int
    tokens_per_second: float
    seconds_per_epoch: float
    memory_bytes: float
    limits: Mapping[str, float]
    """Each limit of the recipe, in words, and the seconds until it is reached."""

    def render(self) -> str:
        """Two lines for a person."""
        limit, seconds = min(self.limits.items(), key=lambda item: item[1])
        if seconds < self.seconds_per_epoch:
            limit += f": {seconds / self.seconds_per_epoch:.0%} of an epoch"
        return (
            f"expected: about {self.num_parameters:,} parameters, {self.tokens_per_second:,.0f} target tokens/s, "
            f"{format_seconds(self.seconds_per_epoch)} an epoch, {limit},\n"
            f"          about {self.memory_bytes / 2**30:.1f} GiB of memory"
        )


def expect(
    config: TrainingConfig, model: torch.nn.Module, vocabularies: Vocabularies, num_tokens: float,
    shape: tuple[int, int], device: torch.device, num_processes: int = 1,
) -> Expectation:  # fmt: skip
    """Time a few updates. `num_tokens`: target tokens of the corpus; `shape`: rows of a batch, and tokens of a row.

    Without a vocabulary of sources there is none. Each of several processes has a batch of its own in an update.
    """
    num_parameters = sum(parameter.numel() for parameter in model.parameters())
    weights = Weights(model.to(device), config.precision)
    batch = _random_batch(*shape, vocabularies).to(device)
    generator = cast(Autoregressive, model)
    seconds = min(_timed_update(generator, weights, batch, config) for _ in range(3))
    rate = num_processes * batch.num_tokens / seconds
    activations = _activation_bytes(model, config, shape[0] * shape[1])
    memory = num_parameters * BYTES_PER_PARAMETER[config.precision] + activations + 300 * 2**20
    seconds_per_epoch = num_tokens / rate
    seconds_per_update = config.accumulate * seconds
    of_steps, of_epochs = config.max_steps * seconds_per_update, config.max_epochs * seconds_per_epoch
    limits = {f"{config.max_steps:,} updates (training.max_steps) in about {format_seconds(of_steps)}": of_steps}
    if config.max_epochs:
        limits[f"{config.max_epochs:,} epochs (training.max_epochs) in about {format_seconds(of_epochs)}"] = of_epochs
    if config.max_minutes:
        limits[f"at most {format_minutes(config.max_minutes)} (training.max_minutes)"] = 60 * config.max_minutes
    return Expectation(num_parameters, rate, seconds_per_epoch, memory, limits)


def _random_batch(num_rows: int, length: int, vocabularies: Vocabularies) -> Batch:
    ids = torch.randint(4, vocabularies.tgt_size, (num_rows, max(1, length - 1))).tolist()
    sources = ids if vocabularies.src_size else None
    return collate(sources, ids, range(num_rows), vocabularies.bos_id, vocabularies.eos_id, vocabularies.pad_id)


def _timed_update(model: Autoregressive, weights: Weights, batch: Batch, config: TrainingConfig) -> float:
    begin = time.perf_counter()
    dropout_keys = DropoutKeys.for_step(0, 0, batch.rows)
    if config.r_drop:
        loss_sum, _, num_tokens, _ = r_drop_loss(model, batch, config.smoothing, dropout_keys, config.r_drop)
    else:
        loss_sum, _, num_tokens, _ = chain_rule_loss(model, batch, config.smoothing, dropout_keys)
    (loss_sum / num_tokens).backward()  # type: ignore[no-untyped-call]
    weights.collect_gradients()
    weights.clear_gradients()
    return time.perf_counter() - begin


def _activation_bytes(model: torch.nn.Module, config: TrainingConfig, num_positions: int) -> float:
    """Inputs that each linear layer keeps for the backward pass, twice over for what stands between them."""
    width = sum(m.in_features + m.out_features for m in model.modules() if isinstance(m, torch.nn.Linear))
    bytes_each = 2 if config.precision == "bfloat16" else 4
    passes = 2 if config.r_drop else 1
    return 2.0 * width * passes * num_positions * bytes_each + 4 * (8 << 20) * bytes_each
