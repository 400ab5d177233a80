"""Metrics log of a training: `metrics.jsonl`, one JSON object per event, and TensorBoard files on request."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from heed.core.errors import UsageError
from heed.core.files import storage_errors
from heed.core.json_text import parse_json
from heed.core.own_files import LARGE, open_to_append, read_own

if TYPE_CHECKING:
    from heed.tasks.task import Validation

LOG = "metrics.jsonl"


@dataclass
class Window:
    """Sums over the updates since the last line of the log, without skipped ones.

    A checkpoint keeps them, so that a resumed run logs the same numbers.
    """

    loss_sum: float = 0.0
    nll_sum: float = 0.0
    num_tokens: int = 0
    num_positions: int = 0
    num_real: int = 0
    seconds: float = 0.0

    def add(self, loss_sum: float, nll_sum: float, num_tokens: float, num_positions: float, num_real: float) -> None:
        """Add the batches of one update."""
        self.loss_sum += loss_sum
        self.nll_sum += nll_sum
        self.num_tokens += int(num_tokens)
        self.num_positions += int(num_positions)
        self.num_real += int(num_real)

    def values(self, lr: float) -> dict[str, float]:
        """The metrics of an event "train"; NaN where all updates were skipped."""
        tokens = self.num_tokens or math.nan
        return {
            "loss": self.loss_sum / tokens,
            "perplexity": math.exp(min(self.nll_sum / tokens, 700.0)),
            "tokens_per_second": self.num_tokens / max(self.seconds, 1e-9),
            "padding_share": 1 - self.num_real / (self.num_positions or math.nan),
            "lr": lr,
        }


def bar_fields(values: Mapping[str, float]) -> dict[str, str]:
    """The metrics of an event "train" as a progress bar shows them."""
    return {
        "tok/s": f"{values['tokens_per_second']:,.0f}",
        "pad": f"{values['padding_share']:.1%}",
        "loss": f"{values['loss']:.3f}",
        "ppl": f"{values['perplexity']:.2f}" if values["perplexity"] < 1e5 else f"{values['perplexity']:.1e}",
        "lr": f"{values['lr']:.1e}",
    }


class MetricsLog:
    """Appends events to `metrics.jsonl` and flushes each line."""

    def __init__(self, folder: Path, tensorboard: bool = False) -> None:
        self._path = folder / LOG
        with storage_errors(f"write {LOG}", path=self._path):
            self._file = open_to_append(folder, LOG)
        self._writer = _summary_writer(folder) if tensorboard else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._file.close()
        if self._writer is not None:
            self._writer.close()

    def write(self, event: str, step: int, values: Mapping[str, Any]) -> None:
        """Append an event. Infinity and NaN, which JSON does not have, become null."""
        finite = {name: value if _is_finite(value) else None for name, value in values.items()}
        with storage_errors(f"write {LOG}", path=self._path):
            self._file.write(json.dumps({"event": event, "step": step, **finite}, ensure_ascii=False) + "\n")
            self._file.flush()
        if self._writer is not None:
            for name, value in finite.items():
                if isinstance(value, int | float):
                    self._writer.add_scalar(f"{event}/{name}", value, step)


def _is_finite(value: object) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


def validation_event(validation: Validation) -> dict[str, Any]:
    """The values of an event "validation": scores with their signatures, and samples."""
    return {
        **{name: round(score.value, 4) for name, score in validation.scores.items()},
        "signatures": {name: score.signature for name, score in validation.scores.items()},
        "samples": [asdict(sample) for sample in validation.samples],
    }


def require_tensorboard() -> None:
    """Raise UsageError if TensorBoard is not installed."""
    if find_spec("tensorboard") is None:
        raise UsageError("training.tensorboard = true needs the tensorboard package: pip install tensorboard.")


def _summary_writer(folder: Path) -> Any:
    require_tensorboard()
    from torch.utils.tensorboard import SummaryWriter

    return SummaryWriter(str(folder / "tensorboard"))


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """Read the events in the order in which they happened, the latest of equal ones, without lines cut off by a crash.

    A step below earlier ones means that a killed training was continued from an older checkpoint: what happened after
    this step before is left out, except for the validation of the weights that the run still has.
    """
    found = _events(folder)
    best = (event for event in reversed(found) if event["event"] == "validation" and event.get("best"))
    kept, lowest = next(best, None), math.inf
    events: list[dict[str, Any]] = []
    for event in reversed(found):
        if int(event["step"]) <= lowest or event is kept:
            events.append(event)
        lowest = min(lowest, int(event["step"]))
    return [*{(str(event["event"]), int(event["step"])): event for event in reversed(events)}.values()]


def _events(folder: Path) -> list[dict[str, Any]]:
    """The lines of the log that are events."""
    events: list[dict[str, Any]] = []
    if not os.path.lexists(folder / LOG):
        return events
    for line in read_own(folder, LOG, LARGE).decode(errors="replace").split("\n"):
        with suppress(ValueError, KeyError, TypeError, OverflowError):
            event = parse_json(line)
            str(event["event"]), int(event["step"])
            events.append(event)
    return events
