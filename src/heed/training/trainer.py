"""The training loop: a step, now and then a validation, now and then a checkpoint.

The loop knows neither the task nor the model: the task gives `(loss_sum, num_tokens)`, so the gradient is
normalised by the true number of target tokens over all accumulated batches. Stopping: a limit of time or updates,
or no better validation score for `patience` validations. The weights with the best score are the run's model.
"""

from __future__ import annotations

import copy
import math
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn

from heed.core.errors import HeedError, UsageError
from heed.core.progress import Progress as Bar
from heed.core.progress import warn
from heed.data.batch import Batch
from heed.data.loader import Position
from heed.nn.noise import Noise
from heed.tasks.task import Task, Validation
from heed.training.checkpoints import (
    Checkpoint,
    Progress,
    load_optimizer_tensors,
    optimizer_tensors,
    save_checkpoint,
    save_weights,
)
from heed.training.config import TrainingConfig
from heed.training.journal import Journal, Window, validation_event
from heed.training.schedules import SCHEDULES
from heed.training.weights import MovingAverage, Weights, mean_of

HIGHER_IS_BETTER = {"bleu": True, "chrf": True, "perplexity": False}
MAX_SKIPPED_IN_A_ROW = 10


@dataclass
class Outcome:
    """How a training ended."""

    reason: str
    progress: Progress
    interrupted_by: int | None = None


class _BrokenOffError(Exception):
    """A validation was broken off; it is made again when the training goes on."""


@dataclass
class _Stop:
    """Set by a signal: finish the update, or break the validation off, then save and go."""

    signal: int | None = None
    in_validation: bool = False
    handlers: dict[int, Any] = field(default_factory=dict)

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.signal is not None:
            sys.exit(128 + number)
        self.signal = number
        if self.in_validation:
            raise _BrokenOffError


class Trainer:
    """Trains one model on one task into one run folder."""

    def __init__(
        self, config: TrainingConfig, model: nn.Module, task: Task, folder: Path, seed: int, device: torch.device,
        d_model: int, quiet: bool = False,
    ) -> None:  # fmt: skip
        self.config = config
        self.task = task
        self.folder = folder
        self.seed = seed
        self.device = device
        self.quiet = quiet
        self.evaluated: Any = copy.deepcopy(model).to(device)  # float32: what a user of the run will get
        for parameter in self.evaluated.parameters():
            parameter.requires_grad_(False)
        self.model: Any = model.to(device)
        self.weights = Weights(self.model, config.precision)
        self.average = MovingAverage(self.weights.master, config.ema_decay) if config.average == "ema" else None
        self.recent: list[Mapping[str, Tensor]] = []
        self.optimizer = _optimizer(config, self.weights.parameters(), device)
        self.rate = SCHEDULES[config.schedule](config, d_model)
        self.progress = Progress()
        self._begin_seconds = 0.0
        self._started = time.perf_counter()

    # --- one update -------------------------------------------------------------------------------------

    def train_step(self, batches: Sequence[Batch]) -> None:
        """One update from the gradients of one or more batches."""
        step = self.progress.step + 1
        num_tokens = sum(batch.num_tokens for batch in batches)
        for batch in batches:
            noise = Noise.for_step(self.seed, step, batch.rows)
            loss_sum, nll_sum, _ = self.task.loss(self.model, batch, self.config.smoothing, noise)
            (loss_sum / num_tokens).backward()  # type: ignore[no-untyped-call]
            self.weights.collect_gradients()
            self.progress.window.add(batch, float(loss_sum.detach()), float(nll_sum))
        self._update(step, batches)
        self.progress.step = step
        self.progress.num_tokens += num_tokens

    def _update(self, step: int, batches: Sequence[Batch]) -> None:
        norm = torch.nn.utils.clip_grad_norm_(self.weights.parameters(), self.config.clip_norm or math.inf)
        if not bool(torch.isfinite(norm)):
            self._skip(step, batches)
            return
        self.progress.skipped_in_a_row = 0
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate(step)
        self.optimizer.step()
        self.weights.clear_gradients()
        self.weights.publish()
        if self.average is not None:
            self.average.update(self.weights.master)
            self.progress.average_updates = self.average.num_updates

    def _skip(self, step: int, batches: Sequence[Batch]) -> None:
        """A gradient that is not finite is not applied."""
        self.weights.clear_gradients()
        self.progress.skipped_in_a_row += 1
        rows = [row for batch in batches for row in batch.rows.tolist()]
        shown = ", ".join(map(str, rows[:5])) + (f" and {len(rows) - 5} more" if len(rows) > 5 else "")
        warn(f"update {step} is skipped: its gradient is not finite (rows {shown} of data/train).", self.quiet)
        if self.progress.skipped_in_a_row >= MAX_SKIPPED_IN_A_ROW:
            raise HeedError(
                f"the gradient was not finite in {MAX_SKIPPED_IN_A_ROW} updates in a row (up to update {step}). "
                "Lower --training.lr, or train with --precision float32."
            )

    # --- the loop ---------------------------------------------------------------------------------------

    def run(self) -> Outcome:
        """Train until something says stop. The best weights are in `model.safetensors` then."""
        self._started = time.perf_counter()
        self._begin_seconds = self.progress.seconds
        loader = self.task.loader(self.config.tokens_per_batch, self.seed)
        with (
            Journal(self.folder, self.config.tensorboard) as journal,
            Bar(self.config.max_steps, "updates", "training", self.quiet, initial=self.progress.step) as bar,
            _signals() as stop,
            closing(loader.batches_from(self.progress.position)) as batches,
        ):
            try:
                reason = self._loop(batches, journal, bar, stop)
            except _BrokenOffError:
                reason = self._reason_to_stop(stop)
            self.save()
            journal.write("end", self.progress.step, {"reason": reason, "seconds": round(self.progress.seconds, 1)})
        return Outcome(reason, self.progress, stop.signal)

    def _loop(self, batches: Iterator[tuple[Position, Batch]], journal: Journal, bar: Bar, stop: _Stop) -> str:
        """Update until there is a reason to stop.

        What is due after an update, a validation or a checkpoint, is done at the beginning of the next round, so a
        training that was stopped in between begins with it. The last checkpoint is written after the last validation,
        the first one before the first update: it shows that there is room.
        """
        while True:
            if self.progress.step and self.progress.step % self.config.eval_every == 0:
                self._validate(journal, bar, stop)
            if reason := self._reason_to_stop(stop):
                break
            if self.progress.step % self.config.save_every == 0:
                self.save()
            begin = time.perf_counter()
            group = list(islice(batches, self.config.accumulate))
            self.train_step([batch.to(self.device) for _, batch in group])
            self.progress.position = group[-1][0]
            self.progress.window.seconds += time.perf_counter() - begin
            self._tick()
            self._log(journal, bar)
        self._validate(journal, bar, stop)
        return reason

    def _log(self, journal: Journal, bar: Bar) -> None:
        step = self.progress.step
        values = self.progress.window.values(self.rate(step))
        bar.update(step, _shown(values), self._seconds_left())
        if step % self.config.log_every == 0:
            journal.write("train", step, {**_rounded(values), **self._spent()})
            self.progress.window = Window()

    def _tick(self) -> None:
        self.progress.seconds = self._begin_seconds + time.perf_counter() - self._started

    def _spent(self) -> dict[str, float]:
        return {"seconds": round(self.progress.seconds, 1), "epoch": self.progress.position.epoch}

    def _reason_to_stop(self, stop: _Stop) -> str:
        progress, config = self.progress, self.config
        if stop.signal is not None:
            return f"stopped by {signal.Signals(stop.signal).name}"
        if progress.step >= config.max_steps:
            return f"reached {config.max_steps:,} updates (training.max_steps)"
        if config.max_epochs and progress.position.epoch >= config.max_epochs:
            return f"reached {config.max_epochs} epochs (training.max_epochs)"
        if config.max_minutes and progress.seconds >= 60 * config.max_minutes:
            return f"reached {config.max_minutes:g} minutes (training.max_minutes)"
        if config.patience and progress.validations_since_best >= config.patience:
            return f"no better {config.stop_metric} in {config.patience} validations (training.patience)"
        return ""

    def _seconds_left(self) -> float:
        progress, config = self.progress, self.config
        rate = progress.seconds / max(progress.step, 1)
        left = (config.max_steps - progress.step) * rate
        if config.max_minutes:
            left = min(left, 60 * config.max_minutes - progress.seconds)
        return max(left, 0.0)

    # --- validation -------------------------------------------------------------------------------------

    def candidate(self) -> Mapping[str, Tensor]:
        """The weights that a validation looks at: averaged as the config says."""
        if self.average is not None:
            return self.average.tensors
        return mean_of(self._last_validated()) if self.config.average == "last" else self.weights.master

    def _last_validated(self) -> list[Mapping[str, Tensor]]:
        """The weights of the last validations and, as the newest, those of now."""
        current = {name: tensor.detach().clone() for name, tensor in self.weights.master.items()}
        return [*self.recent, current][-self.config.average_last :]

    def _validate(self, journal: Journal, bar: Bar, stop: _Stop) -> None:
        """Validate, unless these weights were validated already or a signal came."""
        if stop.signal is not None or self.progress.validated_at == self.progress.step:
            return
        candidate = self.candidate()
        with torch.no_grad():
            for name, parameter in self.evaluated.named_parameters():
                parameter.copy_(candidate[name])
        stop.in_validation = True
        validation = self.task.validate(self.evaluated, self.task.metrics)
        stop.in_validation = False
        if self.config.average == "last":
            self.recent = self._last_validated()
        self._tick()
        progress = self.progress
        progress.num_validations += 1
        progress.validated_at = progress.step
        value = validation.value(self.config.stop_metric)
        best = progress.best_score is None or _better(value, progress.best_score, self.config.stop_metric)
        if best:
            progress.best_score, progress.best_step, progress.validations_since_best = value, progress.step, 0
            save_weights(self.folder / "model.safetensors", candidate, {"step": str(progress.step)})
        else:
            progress.validations_since_best += 1
        journal.write("validation", progress.step, {**validation_event(validation), **self._spent(), "best": best})
        bar.say(_validation_line(progress, validation, best))
        for sample in validation.samples[:2]:
            bar.say(f"    {sample.src}\n    → {sample.output}\n    = {sample.reference}")

    # --- checkpoints ------------------------------------------------------------------------------------

    def save(self) -> None:
        """Write a checkpoint from which training goes on bit for bit."""
        average = dict(self.average.tensors) if self.average is not None else {}
        for index, weights in enumerate(self.recent):
            average.update({f"{index}/{name}": tensor for name, tensor in weights.items()})
        checkpoint = Checkpoint(
            self.progress,
            {name: tensor.detach() for name, tensor in self.weights.master.items()},
            optimizer_tensors(self.optimizer, list(self.weights.master)),
            average,
        )
        save_checkpoint(self.folder / "checkpoints", checkpoint, self.config.keep_checkpoints)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go on from a checkpoint. Raises UsageError when it is of another model or another kind of average."""
        master = self.weights.master
        if _shapes(master) != _shapes(checkpoint.weights):
            raise UsageError("the checkpoint is of another model than recipe.toml: was [model] edited?")
        self.weights.load(checkpoint.weights)
        load_optimizer_tensors(self.optimizer, list(master), checkpoint.optimizer)
        kept = checkpoint.average
        numbers = sorted({name.split("/")[0] for name in kept if "/" in name}, key=int)
        if self.average is not None:
            if kept.keys() != master.keys():
                raise UsageError('the checkpoint has no moving average: training.average was not "ema" then.')
            for name, tensor in self.average.tensors.items():
                tensor.copy_(kept[name])
            self.average.num_updates = checkpoint.progress.average_updates
        elif self.config.average == "last":
            self.recent = [{name: kept[f"{number}/{name}"] for name in master} for number in numbers]
        self.progress = checkpoint.progress


def _shapes(tensors: Mapping[str, Tensor]) -> dict[str, torch.Size]:
    return {name: tensor.shape for name, tensor in tensors.items()}


def _optimizer(config: TrainingConfig, parameters: list[Tensor], device: torch.device) -> torch.optim.Optimizer:
    kind: Callable[..., torch.optim.Optimizer] = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[
        config.optimizer
    ]
    return kind(
        parameters, lr=config.lr, betas=(config.beta1, config.beta2), eps=config.epsilon,
        weight_decay=config.weight_decay, fused=device.type in ("cpu", "cuda"),
    )  # fmt: skip


def _better(value: float, best: float, metric: str) -> bool:
    return value > best if HIGHER_IS_BETTER[metric] else value < best


def _shown(values: Mapping[str, float]) -> dict[str, str]:
    return {
        "tok/s": f"{values['tokens_per_second']:,.0f}",
        "pad": f"{values['padding_share']:.1%}",
        "loss": f"{values['loss']:.3f}",
        "ppl": f"{values['perplexity']:.2f}" if values["perplexity"] < 1e5 else f"{values['perplexity']:.1e}",
        "lr": f"{values['lr']:.1e}",
    }


def _rounded(values: Mapping[str, float]) -> dict[str, float]:
    return {name: float(f"{value:.6g}") for name, value in values.items()}


def _validation_line(progress: Progress, validation: Validation, best: bool) -> str:
    numbers = "  ".join(f"{name} {score.value:.2f}" for name, score in validation.scores.items())
    minutes = progress.seconds / 60
    mark = "  best so far" if best else f"  (best at update {progress.best_step:,})"
    when = f"update {progress.step:,}, epoch {progress.position.epoch + 1}, {minutes:.1f} min"
    return f"validation at {when}: {numbers}{mark}"


@contextmanager
def _signals() -> Iterator[_Stop]:
    """SIGINT and SIGTERM finish the step and save; a second one leaves at once."""
    stop = _Stop()
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            stop.handlers[int(number)] = signal.signal(number, stop)
    except ValueError:  # not in the main thread: signals are someone else's business
        pass
    try:
        yield stop
    finally:
        for caught, handler in stop.handlers.items():
            signal.signal(caught, handler)
