"""Training loop: updates, with regular validations and checkpoints.

The loop does not depend on the task or the model. The gradient is normalised by the number of targets in all
accumulated batches of all ranks. Training stops at a limit of time or updates, or after `patience` validations without
a better score. The weights with the best score become the run's model.
"""

from __future__ import annotations

import copy
import math
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh

from heed.core.errors import HeedError, UsageError
from heed.core.progress import Progress as Bar
from heed.core.progress import warn
from heed.core.run_files import WEIGHTS
from heed.data.batch import TrainingBatch
from heed.data.schedule import Position
from heed.metrics import METRICS
from heed.nn.contract import State
from heed.nn.device import products_by
from heed.nn.weight_file import save_weights, shapes_of
from heed.tasks.prepare import vocabulary_digests
from heed.tasks.task import Task, Validation
from heed.training.checkpoints import (
    Checkpoint,
    how_computed,
    load_optimizer_tensors,
    optimizer_tensors,
    other_model,
    save_checkpoint,
    stream_state,
    stream_tensors,
)
from heed.training.config import TrainingConfig
from heed.training.gradients import GradientAccumulator
from heed.training.layers import trained_names
from heed.training.metrics_log import MetricsLog, Window, bar_fields, validation_event
from heed.training.optimizers import build_optimizer, clip_gradients, kept_quantities, optimised_names
from heed.training.progress import Progress
from heed.training.ranks import ALONE, Ranks
from heed.training.schedules import SCHEDULES
from heed.training.sharding import whole
from heed.training.signals import StopRequest, ValidationInterrupted, signal_handlers
from heed.training.weights import Weights, flattened, mean_of, running_average, unflattened

MAX_SKIPPED_IN_A_ROW = 10


@dataclass
class Outcome:
    """Result of a training: why it ended, and by which signal if one interrupted it."""

    reason: str
    progress: Progress
    interrupted_by: int | None = None


class Trainer:
    """Trains a model on a task and writes it into a run folder, alone or as one of several ranks."""

    def __init__(
        self, config: TrainingConfig, model: nn.Module, task: Task, folder: Path, seed: int, device: torch.device,
        d_model: int, quiet: bool = False, ranks: Ranks = ALONE,
    ) -> None:  # fmt: skip
        self.config = config
        self.task = task
        self.folder = folder
        self.seed = seed
        self.device = device
        self.quiet = quiet or not ranks.is_first
        self.ranks = ranks
        if ranks.is_first:  # the rank that validates; in float32, as users of the run get it
            self.evaluated: Any = copy.deepcopy(model).to(device).requires_grad_(False)
        self.sharded = ranks.world_size > 1 and config.parallel == "sharded"
        self.model: Any = model if self.sharded else model.to(device)
        mesh = init_device_mesh(device.type, (ranks.world_size,)) if self.sharded else None
        self.weights = Weights(self.model, config.precision, mesh)
        self.average = running_average(config, self.weights.master)
        self.recent: list[Mapping[str, Tensor]] = []
        self.optimizer = build_optimizer(config, self.weights.master, device, self.weights.sparse)
        self._trained: set[str] | None = None
        self.schedule = SCHEDULES[config.schedule](config, d_model)
        self.gradients = GradientAccumulator(config, task, self.weights, seed, device, self.quiet, ranks)
        self.carried: State | None = None
        self.progress = Progress(average=config.average)
        self._begin_seconds = 0.0
        self._started = time.perf_counter()
        self._epoch_batches = 1

    # --- one update -------------------------------------------------------------------------------------

    def train_step(self, batches: Sequence[TrainingBatch]) -> None:
        """Make one update from one or more batches of each rank."""
        step = self.progress.step + 1
        self._unfreeze()
        num_targets, num_positions, num_real = self.ranks.sums(
            sum(batch.num_targets for batch in batches),
            sum(batch.num_positions for batch in batches),
            sum(batch.num_real for batch in batches),
        )
        divisor = max(1.0, num_targets) if self.config.reduction == "mean" else 1.0
        self.task.update, self.task.moving_nll = step, self.progress.moving_nll
        sums = self.gradients.accumulate(step, batches, divisor, self.progress, self.carried)
        with products_by(1) if self.gradients.num_replicas else nullcontext():  # so that no thread waits for another
            is_finite = self._update(step, batches)
        loss_sum, nll_sum = self.ranks.sums(float(sums.loss), float(sums.nll))
        if is_finite:
            self.progress.window.add(loss_sum, nll_sum, num_targets, num_positions, num_real)
            if num_targets:  # all words of a batch may have been left out by subsampling
                self.progress.add_nll(nll_sum / num_targets)
            self.carried = sums.carried
        elif any(batch.segment == 0 for batch in batches):  # the carried state belongs to the previous epoch
            self.carried = None
        self.progress.step = step
        self.progress.num_tokens += int(num_targets)

    def _unfreeze(self) -> None:
        """Train the weights that are not frozen in this epoch."""
        names = trained_names(self.config, self.weights.master, self.progress.position.epoch)
        if names != (self._trained or {*self.weights.master}):
            self.weights.train_only(names)
        self._trained = names

    def _update(self, step: int, batches: Sequence[TrainingBatch]) -> bool:
        """Apply the gradients if they are finite; return whether they were applied."""
        norm = clip_gradients(self.weights.gradients(), self.config.clip_norm)
        if not math.isfinite(norm):
            self._skip(step, batches)
            return False
        self.progress.skipped_in_a_row = 0
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate(step) * _relative_length(batches) * group["scale"]
        self.optimizer.step()
        self.weights.clear_gradients()
        self.weights.publish()
        if self.average is not None and (self.config.average != "nt_asgd" or self.progress.trigger.pulled):
            self.average.update(self.weights.master)
            self.progress.average_updates = self.average.num_updates
        return True

    def rate(self, step: int) -> float:
        """The learning rate of an update in the current epoch."""
        return self.schedule(step, self.progress.position.epoch) * self.progress.rate_scale

    def _skip(self, step: int, batches: Sequence[TrainingBatch]) -> None:
        """Skip an update whose gradient is not finite. Raises HeedError after several in a row."""
        self.weights.clear_gradients()
        self.progress.skipped_in_a_row += 1
        elsewhere = ", or in a batch of another process" * (self.ranks.world_size > 1)
        rows = [row for batch in batches for row in batch.rows.tolist()]
        shown = ", ".join(map(str, rows[:5])) + (f" and {len(rows) - 5} more" if len(rows) > 5 else "")
        warn(
            f"update {step} is skipped, because its gradient is not finite (rows {shown} of data/train{elsewhere}; the "
            f"first is {self.task.text_of(rows[0])}).",
            self.quiet,
        )
        if self.progress.skipped_in_a_row >= MAX_SKIPPED_IN_A_ROW:
            raise HeedError(
                f"the gradient was not finite in {MAX_SKIPPED_IN_A_ROW} consecutive updates (up to update {step}). "
                "Lower --training.lr, or train with --precision float32."
            )

    # --- the loop ---------------------------------------------------------------------------------------

    def run(self) -> Outcome:
        """Train to a limit or a signal, as the sole writer of the folder; the best weights are in it afterwards."""
        self._started = time.perf_counter()
        self._begin_seconds = self.progress.seconds
        config, ranks = self.config, self.ranks
        loader = self.task.loader(
            config.tokens_per_batch, self.seed, ranks.rank, ranks.world_size, config.loader_workers
        )
        self._epoch_batches = loader.num_batches(self.progress.position.epoch)
        with (
            MetricsLog(self.folder, config.tensorboard) if ranks.is_first else nullcontext() as log,
            Bar(config.max_steps, "updates", "training", self.quiet, initial=self.progress.step) as bar,
            signal_handlers() as stop,
            closing(loader.batches_from(self.progress.position)) as batches,
        ):
            reason = self._loop(batches, log, bar, stop)
            self.save()
            if log:
                log.write("end", self.progress.step, {"reason": reason, "seconds": round(self.progress.seconds, 1)})
        return Outcome(reason, self.progress, stop.agreed)

    def _loop(
        self, batches: Iterator[tuple[Position, TrainingBatch]], log: MetricsLog | None, bar: Bar, stop: StopRequest
    ) -> str:
        """Train until there is a reason to stop, and return it.

        The validation or checkpoint that is due after an update comes at the beginning of the next round, so that a
        training that was stopped in between resumes with it. The first checkpoint precedes the first update, to fail
        early without disk space; the last one follows the last validation.
        """
        while True:
            if self.progress.step and self.progress.step % self.config.eval_every == 0:
                self._validate(log, bar, stop)
            if reason := self._agreed_reason(stop):
                break
            if self.progress.step % self.config.save_every == 0:
                self.save()
            begin = time.perf_counter()
            group = list(islice(batches, self.config.accumulate))
            self.train_step([batch.to(self.device) for _, batch in group])
            self.progress.position = group[-1][0]
            self.progress.window.seconds += time.perf_counter() - begin
            self._tick()
            self._log(log, bar)
        self._validate(log, bar, stop)
        return self._reason_to_stop(stop) or reason

    def _log(self, log: MetricsLog | None, bar: Bar) -> None:
        step = self.progress.step
        values = self.progress.window.values(self.optimizer.param_groups[0]["lr"])
        share = self.progress.share_done(self.config, self._epoch_batches)
        bar.update(step, bar_fields(values), self.progress.seconds * (1 / share - 1), share)
        if step % self.config.log_every == 0:
            if log:
                log.write("train", step, {**_rounded(values), **self._spent()})
            if warning := self.progress.divergence.update(values["loss"], step):
                warn(warning, self.quiet)
            self.progress.window = Window()

    def _tick(self) -> None:
        self.progress.seconds = self._begin_seconds + time.perf_counter() - self._started

    def _spent(self) -> dict[str, float]:
        return {"seconds": round(self.progress.seconds, 1), "epoch": self.progress.position.epoch}

    def _agreed_reason(self, stop: StopRequest) -> str:
        """A signal to any rank, or a limit that rank 0 reached, stops all ranks at the same update."""
        reason = self._reason_to_stop(stop)
        caught, ended = self.ranks.highest(stop.signal or 0, bool(reason and self.ranks.is_first))
        stop.agreed = int(caught) or None
        return self._reason_to_stop(stop) or "rank 0 stopped" if caught or ended else ""

    def _reason_to_stop(self, stop: StopRequest) -> str:
        if stop.agreed is not None:
            return f"stopped by {signal.Signals(stop.agreed).name}"
        return self.progress.reached_limit(self.config)

    # --- validation -------------------------------------------------------------------------------------

    def candidate(self) -> Mapping[str, Tensor]:
        """The weights that are validated: averaged as configured."""
        if self.average is not None and self.average.num_updates:
            return self.average.tensors
        return mean_of(self._last_validated()) if self.config.average == "last" else self.weights.master

    def _last_validated(self) -> list[Mapping[str, Tensor]]:
        """The weights of the last validations, and the current ones."""
        current = {name: tensor.detach().clone() for name, tensor in self.weights.master.items()}
        return [*self.recent, current][-self.config.average_last :]

    def _validate(self, log: MetricsLog | None, bar: Bar, stop: StopRequest) -> None:
        """Validate, unless these weights were already validated or a signal was received."""
        if stop.agreed is not None or self.progress.validated_at == self.progress.step:
            return
        candidate = {name: whole(tensor) for name, tensor in self.candidate().items()}
        validation = self._validation(candidate, stop) if self.ranks.is_first else None
        [interrupted_by] = self.ranks.sums(stop.signal or 0 if self.ranks.is_first and validation is None else 0)
        if interrupted_by:
            stop.agreed = int(interrupted_by)
            return
        self.progress.validated_at = self.progress.step
        score = (0.0, 0.0)
        if log and validation is not None:
            score = self._keep_if_best(validation, candidate, log, bar)
        value, tie = self.ranks.sums(*score)
        if self.progress.step % self.config.eval_every == 0:  # a validation at a limit does not change the training
            if self.config.average == "last":
                self.recent = self._last_validated()
            self._adapt(value, tie)

    def _adapt(self, value: float, tie: float) -> None:
        """Adapt patience, learning rate and averaging to a score, equally on all ranks."""
        progress, config = self.progress, self.config
        progress.num_validations += 1
        before = progress.best_on_schedule, progress.best_perplexity_on_schedule
        best = self._is_better(value, tie, *before)
        if best:
            progress.best_on_schedule, progress.best_perplexity_on_schedule = value, tie
        progress.validations_since_best = 0 if best else progress.validations_since_best + 1
        if config.schedule == "plateau" and not best:
            progress.rate_scale /= config.lr_decay
        if config.average == "nt_asgd":
            loss = -value if METRICS[config.stop_metric].higher_is_better else value
            progress.trigger.update(loss, config.nonmonotone)

    def _validation(self, candidate: Mapping[str, Tensor], stop: StopRequest) -> Validation | None:
        """The scores of these weights; None if a signal interrupted the validation."""
        metrics = tuple(dict.fromkeys((*self.task.metrics, self.config.stop_metric)))
        with torch.no_grad():
            for name, parameter in self.evaluated.named_parameters():
                parameter.copy_(candidate[name])
        try:
            stop.in_validation = True
            return None if stop.signal else self.task.validate(self.evaluated, metrics)
        except ValidationInterrupted:
            return None
        finally:
            stop.in_validation = False

    def _keep_if_best(
        self, validation: Validation, candidate: Mapping[str, Tensor], log: MetricsLog, bar: Bar
    ) -> tuple[float, float]:
        """Save the weights if they are the best so far; return the values of the stop metric and the tie breaker."""
        self._tick()
        progress = self.progress
        value = validation.value(self.config.stop_metric)
        tie = validation.value(self.task.tie_breaker) if self.task.tie_breaker else math.inf
        best = self._is_better(value, tie, progress.best_score, progress.best_perplexity)
        if best:
            progress.best_score, progress.best_perplexity, progress.best_step = value, tie, progress.step
            metadata = {"step": str(progress.step), **vocabulary_digests(self.task.tokenizers)}
            save_weights(self.folder / WEIGHTS, candidate, metadata)
            self.task.weights_changed()
        log.write("validation", progress.step, {**validation_event(validation), **self._spent(), "best": best})
        bar.say(_validation_line(progress, validation, best))
        for sample in validation.samples[:2]:
            bar.say(f"    {sample.src}\n    → {sample.output}\n    = {sample.reference}")
        return value, tie

    def _is_better(self, value: float, tie: float, best: float | None, best_tie: float | None) -> bool:
        """Whether a score is better than the best one so far.

        The tie breaker decides between equal scores: early translations all have BLEU 0, for example. Any number is
        better than NaN, which a metric may give where it is not defined.
        """
        if best is None or math.isnan(best):
            return best is None or not math.isnan(value)
        if value == best:
            return best_tie is None or not tie >= best_tie
        return value > best if METRICS[self.config.stop_metric].higher_is_better else value < best

    # --- checkpoints ------------------------------------------------------------------------------------

    def save(self) -> None:
        """Write a checkpoint from which the training can be resumed bit for bit."""
        average = self.average.tensors if self.average is not None else flattened(self.recent)
        weights = {name: tensor.detach() for name, tensor in self.weights.master.items()}
        parts = [weights, optimizer_tensors(self.optimizer, self._optimised), average]
        weights, optimizer, average = ({name: whole(tensor) for name, tensor in part.items()} for part in parts)
        carried = stream_tensors(self.model, self.carried, self.config.num_streams, self.ranks)
        if self.ranks.is_first:
            made_with = how_computed(self.device, self.config.precision)
            checkpoint = Checkpoint(self.progress, weights, optimizer, average, made_with, carried)
            save_checkpoint(self.folder / "checkpoints", checkpoint, self.config.keep_checkpoints)

    @property
    def _optimised(self) -> list[str]:
        """The names of the weights in the order of the optimiser."""
        return optimised_names(self.config, self.weights.master)

    def restore(self, checkpoint: Checkpoint) -> None:
        """Continue from a checkpoint. Raises UsageError if it is of another model, optimiser or average."""
        master = self.weights.master
        if shapes_of(master) != shapes_of(checkpoint.weights):
            raise other_model()
        self._require_same_optimizer(checkpoint)
        self.weights.load(checkpoint.weights)
        load_optimizer_tensors(self.optimizer, {name: master[name] for name in self._optimised}, checkpoint.optimizer)
        if not self._is_average(checkpoint):
            raise UsageError(
                f"the checkpoint has no {'earlier sets' if self.average is None else 'average'} of the weights: "
                f'training.average was not "{self.config.average}" when it was written. Undo the change of '
                f"recipe.toml, or start a new run from these weights with --init {self.folder}."
            )
        if self.average is not None:
            self.average.load(checkpoint.average, checkpoint.progress.average_updates)
        elif self.config.average == "last":
            self.recent = unflattened(checkpoint.average, master)
        self.carried = stream_state(self.model, checkpoint.carried, self.config.num_streams, self.ranks, self.device)
        self.progress = checkpoint.progress
        self.progress.average = self.config.average
        if self.progress.best_on_schedule is None and self.progress.num_validations:  # written by an older version
            self.progress.best_on_schedule = self.progress.best_score

    def _is_average(self, checkpoint: Checkpoint) -> bool:
        """Whether the averaged weights of a checkpoint are of the configured average."""
        tensors, kind = checkpoint.average, checkpoint.progress.average or self.config.average
        if self.config.average == "last":
            return all("/" in name for name in tensors)  # sets of weights, see `flattened`
        return self.average is None or (tensors.keys() == self.weights.master.keys() and kind == self.config.average)

    def _require_same_optimizer(self, checkpoint: Checkpoint) -> None:
        found: dict[str, set[str]] = {}
        for key in checkpoint.optimizer:
            name, quantity = key.rsplit("/", 1)
            found.setdefault(name, set()).add(quantity)
        kept = kept_quantities(self.config, self.weights.master)
        has_moved = checkpoint.progress.step > checkpoint.progress.skipped_in_a_row
        is_missing = has_moved and not found and any(kept.values())
        if is_missing or any(kept[name] != quantities for name, quantities in found.items()):
            raise UsageError(
                f'the checkpoint was not written with training.optimizer = "{self.config.optimizer}". Undo the change '
                f"of recipe.toml, or start a new run from these weights with --init {self.folder}."
            )


def _relative_length(batches: Sequence[TrainingBatch]) -> float:
    """Factor on the rate for segments of random length (Merity et al. 2018, section 5)."""
    return sum(batch.relative_length for batch in batches) / len(batches)


def _rounded(values: Mapping[str, float]) -> dict[str, float]:
    return {name: float(f"{value:.6g}") for name, value in values.items()}


def _validation_line(progress: Progress, validation: Validation, best: bool) -> str:
    scores = "  ".join(f"{name} {score.value:.2f}" for name, score in validation.scores.items())
    mark = "  best so far" if best else f"  (best at update {progress.best_step:,})"
    when = f"update {progress.step:,}, epoch {progress.position.epoch + 1}, {progress.seconds / 60:.1f} min"
    return f"validation at {when}: {scores}{mark}"
