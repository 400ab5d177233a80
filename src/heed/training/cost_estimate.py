"""Estimate of the time and memory of a training.

A few updates are timed on random ids of the corpus's sizes, on weights that are discarded afterwards; the rest is
arithmetic.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from heed.core.progress import format_minutes, format_seconds
from heed.data.batch import TrainingBatch
from heed.nn.device import products_by, synchronise
from heed.tasks.task import Task
from heed.training.config import TrainingConfig
from heed.training.gradients import GradientAccumulator
from heed.training.progress import Progress
from heed.training.ranks import ALONE
from heed.training.schedules import FALL_TO_ZERO, SCHEDULES
from heed.training.weights import Weights

UPDATES, MOST_SECONDS = 3, 5.0
"""Number of updates that are timed, and the seconds after which a CPU starts no further one."""
MOST_LEFT = 0.2
"""Share of the peak rate that is left when a limit ends a decay early, above which heed warns."""
FASTER_BY, WORTH_SEEDS = 1.15, 0.6
"""Speed with fewer threads, relative to all, from which heed advises fewer; with half of them, two models at once."""
BYTES_PER_PARAMETER = {"float32": 4 * 6, "bfloat16": 4 * 6 + 2 * 2}
"""Weights, gradients, Adam's two moments, average and validation copy in float32; bfloat16 adds two copies."""
BYTES_OF_GRADIENT = {"float32": 4, "bfloat16": 2}
"""Gradients of a parameter in each replica of the model."""


@dataclass(frozen=True)
class CostEstimate:
    """Estimated time and memory of a training."""

    num_parameters: int
    tokens_per_second: float
    seconds_per_epoch: float
    memory_bytes: float
    seconds_per_update: float
    limits: Mapping[str, float]
    """Seconds until each limit of the recipe is reached, by its description."""
    targets: str = "target tokens"
    """What is counted."""

    @property
    def num_updates(self) -> float:
        """Number of updates until the first limit."""
        return min(self.limits.values()) / self.seconds_per_update

    def warning(self, config: TrainingConfig, begins_trained: bool = False) -> str:
        """Warning about limits that end the warm-up or the decay of the rate early; "" if there is none.

        A warm-up that hardly ends leaves no usable model, unless it `begins_trained`, with the weights of a run.
        """
        needed = max(2 * config.warmup_steps, 100)
        allowed = f"{self.num_updates:,.0f} update{'s' * (round(self.num_updates) != 1)}"
        if self.num_updates < needed and not begins_trained:
            time_needed = format_seconds(needed * self.seconds_per_update)
            return (
                f"the limits allow about {allowed}, and the learning rate rises during the first "
                f"{config.warmup_steps:,} (training.warmup_steps): the model will hardly be usable. Allow at least "
                f"{needed:,} updates ({time_needed}), or choose a smaller model."
            )
        last = SCHEDULES[config.schedule](config, 1)(max(1, round(self.num_updates)))
        if config.schedule in FALL_TO_ZERO and last > MOST_LEFT * config.lr:
            return (
                f"the limits allow about {allowed}, after which the learning rate has fallen to {last / config.lr:.0%} "
                f"of its peak: it reaches zero after {config.max_steps:,} updates (training.max_steps). Lower "
                f"--max-steps to about {self.num_updates:,.0f}, or raise the limit."
            )
        return ""

    def render(self, vocabulary_known: bool) -> str:
        """Two lines of text. A vocabulary that is not trained yet may become smaller, and the model with it."""
        at_most = "" if vocabulary_known else "at most "
        limit, seconds = min(self.limits.items(), key=lambda item: item[1])
        if seconds < self.seconds_per_epoch:
            limit += f": {seconds / self.seconds_per_epoch:.0%} of an epoch"
        return (
            f"expected: {at_most}{self.num_parameters:,} parameters, {self.tokens_per_second:,.0f} {self.targets}/s, "
            f"{format_seconds(self.seconds_per_epoch)} an epoch, {limit},\n"
            f"          about {self.memory_bytes / 2**30:.1f} GiB of memory"
        )


def estimate_cost(
    config: TrainingConfig, model: torch.nn.Module, task: Task, batch: TrainingBatch, num_targets: float,
    num_processes: int = 1,
) -> CostEstimate:  # fmt: skip
    """Time a few updates on a trial batch of the usual size. `num_targets`: number of targets in an epoch.

    In each update, each of several processes has a batch of its own.
    """
    num_parameters = sum(parameter.numel() for parameter in model.parameters())
    device = batch.rows.device
    weights = Weights(model.to(device), config.precision)
    accumulator = GradientAccumulator(
        config, task, weights, 0, device, quiet=True, ranks=ALONE, num_processes=num_processes
    )
    seconds = _shortest_update(accumulator, batch)
    rate = num_processes * batch.num_targets / seconds
    activations = _activation_bytes(model, config, batch.num_real if task.targets == "texts" else batch.num_targets)
    each = BYTES_PER_PARAMETER[config.precision] + accumulator.num_replicas * BYTES_OF_GRADIENT[config.precision]
    memory = num_parameters * each + activations + 300 * 2**20
    seconds_per_epoch = num_targets / rate
    seconds_per_update = config.accumulate * seconds
    of_steps, of_epochs = config.max_steps * seconds_per_update, config.max_epochs * seconds_per_epoch
    steps = f"{config.max_steps:,} update{'s' * (config.max_steps != 1)}"
    less = ", or less without a better score (training.patience)" if config.patience else ""
    limits = {f"{steps} (training.max_steps) in about {format_seconds(of_steps)}{less}": of_steps}
    if config.max_epochs:
        epochs = f"{config.max_epochs:,} epoch{'s' * (config.max_epochs != 1)}"
        limits[f"{epochs} (training.max_epochs) in about {format_seconds(of_epochs)}{less}"] = of_epochs
    if config.max_minutes:
        limits[f"at most {format_minutes(config.max_minutes)} (training.max_minutes)"] = 60 * config.max_minutes
    return CostEstimate(num_parameters, rate, seconds_per_epoch, memory, seconds_per_update, limits, task.targets)


def speeds_with_fewer_threads(
    config: TrainingConfig, model: torch.nn.Module, task: Task, batch: TrainingBatch
) -> dict[int, float]:
    """Speed with fewer CPU threads, relative to that with all, by number of threads.

    Half of the threads are timed, and half of these as long as that is faster. Empty if there is one thread only.
    """
    weights = Weights(model, config.precision)

    def seconds(threads: int) -> float:
        with products_by(threads):
            return _shortest_update(
                GradientAccumulator(config, task, weights, 0, batch.rows.device, quiet=True, ranks=ALONE), batch
            )

    threads = torch.get_num_threads()
    if threads == 1:
        return {}
    all_threads = fastest = seconds(threads)
    speeds = dict[int, float]()
    while threads > 1:
        threads //= 2
        taken = seconds(threads)
        speeds[threads] = all_threads / taken
        if taken >= fastest:
            break
        fastest = taken
    return speeds


def thread_advice(threads: int, speeds: Mapping[int, float], can_join: bool, is_timed: bool) -> str:
    """Advice on the number of threads from `speeds_with_fewer_threads`; "" if there is none.

    `can_join`: whether models of this training can be used as an ensemble. `is_timed`: whether time limits the
    training, and not a number of updates or epochs.
    """
    best = max(speeds, key=speeds.__getitem__, default=threads)
    if speeds.get(best, 0.0) > FASTER_BY:
        noun = f"{best} thread makes" if best == 1 else f"{best} threads make"
        return f"{noun} {speeds[best]:.1f} times the updates of {threads} here: --threads {best} is faster."
    half = threads // 2
    share = min(1.0, speeds.get(half, 0.0))
    if not can_join or share < WORTH_SEEDS:
        return ""
    cost = f"with {share:.0%} of the updates each" if is_timed else f"in {1 / share:.1f} times the time"
    return (
        f"--seeds 2 would train two models at once, {cost} (measured: {half} of {threads} threads alone). Together "
        "they are usually better than one model."
    )


def _shortest_update(accumulator: GradientAccumulator, batch: TrainingBatch) -> float:
    """Seconds of the shortest of a few updates, or of a single one that takes long, as when bfloat16 is emulated.

    On a GPU only the third of them is replayed.
    """
    seconds = [_timed_update(accumulator, batch)]
    while len(seconds) < UPDATES and (sum(seconds) < MOST_SECONDS or accumulator.device.type == "cuda"):
        seconds.append(_timed_update(accumulator, batch))
    return min(seconds)


def _timed_update(accumulator: GradientAccumulator, batch: TrainingBatch) -> float:
    begin = time.perf_counter()
    accumulator.accumulate(0, [batch], batch.num_targets, Progress(), None)
    accumulator.weights.clear_gradients()
    synchronise(accumulator.device)
    return time.perf_counter() - begin


def _activation_bytes(model: torch.nn.Module, config: TrainingConfig, num_positions: int) -> float:
    """Inputs that each linear layer keeps for the backward pass, twice over for the operations between them."""
    width = sum(m.in_features + m.out_features for m in model.modules() if isinstance(m, torch.nn.Linear))
    bytes_each = 2 if config.precision == "bfloat16" else 4
    passes = 2 if config.r_drop else 1
    return 2.0 * width * passes * num_positions * bytes_each + 4 * (8 << 20) * bytes_each
