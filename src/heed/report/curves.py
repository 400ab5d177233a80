"""Training curves: a plot if matplotlib is installed, sparklines otherwise."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from heed.core.errors import UsageError
from heed.core.files import atomic_write
from heed.core.run_files import RunFiles

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from heed.evaluation.evaluation import Evaluation

Events = Sequence[Mapping[str, Any]]
Points = list[tuple[float, float]]

PICTURE = "curves.png"
LONG = 3 * 3600
"""Seconds of training above which the unit of time is an hour."""
BARS = "▁▂▃▄▅▆▇█"
WIDTH = 60
"""Maximum length of a sparkline."""
_SCORES = {"bleu": "BLEU", "chrf": "chrF2"}
_BLUE, _RED, _GREEN, _GREY = "#33658a", "#b5432a", "#4f7a4a", "#8a8a8a"


def draw_curves(folder: Path, train: Events, validations: Events) -> str:
    """Markdown with the curves of a training; writes `curves.png` into the folder if matplotlib is installed."""
    if len(train) < 2 or len(validations) < 2:
        return ""
    if (folder / PICTURE).is_symlink():  # it may point anywhere
        return _sparklines(train, validations)
    try:
        _draw(folder / PICTURE, train, validations)
    except ImportError:
        return _sparklines(train, validations)
    return f"![curves]({PICTURE})"


def _draw(path: Path, train: Events, validations: Events) -> None:
    """Cross-entropy, both curves without label smoothing, and validation scores if there are any."""
    unit, seconds = _unit(validations[-1]["seconds"])
    train, validations = _rescaled(train, seconds), _rescaled(validations, seconds)
    scores = [name for name in _SCORES if _points(validations, name)]
    figure, loss, *others = _figure(10 if scores else 6, 2 if scores else 1)
    _plot(loss, _points(train, "perplexity", math.log), color=_BLUE, linewidth=1, label="training, with dropout")
    if points := _points(validations, "training_perplexity", math.log):
        _plot(loss, points, color=_BLUE, marker=".", linestyle="--", label="training, as validated")
    if points := _points(validations, "perplexity", math.log):
        _plot(loss, points, color=_RED, marker=".", label="validation")
    loss.set_title("cross-entropy, nats per token")
    for axes in others:
        for name, colour in zip(scores, (_RED, _GREEN), strict=False):
            _plot(axes, _points(validations, name), color=colour, marker=".", label=_SCORES[name])
        axes.set_ylim(bottom=0)
        axes.set_title("validation scores, greedy search")
    kept = [event for event in validations if event.get("best")]
    for axes in (loss, *others):
        if kept:
            axes.axvline(kept[-1]["seconds"], color=_GREY, linestyle=":", label="weights kept")
    _save(figure, RunFiles(path.parent).write_page(path.name), unit)


def draw_runs(path: Path, validations: Mapping[str, Events]) -> None:
    """Write one plot of the validation curves of several runs, by name.

    Raises UsageError without matplotlib, and for runs that have none of these curves.
    """
    unit, seconds = _unit(max((event["seconds"] for events in validations.values() for event in events), default=0.0))
    curves = {name: _rescaled(events, seconds) for name, events in validations.items()}
    scores = [score for score in _SCORES if any(_points(events, score) for events in curves.values())]
    if not (scores or any(_points(events, "perplexity") for events in curves.values())):
        raise UsageError("there is nothing to draw: none of these runs was validated by perplexity, BLEU or chrF2.")
    try:
        figure, loss, *others = _figure(5 * (1 + len(scores)), 1 + len(scores))
    except ImportError as error:
        raise UsageError("a plot of several runs needs matplotlib: pip install matplotlib.") from error
    for name, events in curves.items():
        _plot(loss, _points(events, "perplexity", math.log), marker=".", label=name)
        for axes, score in zip(others, scores, strict=True):
            _plot(axes, _points(events, score), marker=".", label=name)
    loss.set_title("validation cross-entropy, nats per token")
    for axes, score in zip(others, scores, strict=True):
        axes.set_title(f"validation {_SCORES[score]}, greedy search")
    _save(figure, atomic_write(path), unit)


def draw_by_length(path: Path, evaluations: Sequence[Evaluation]) -> None:
    """Write one plot of the scores of several systems on one test set, by the length of the source.

    Bars are 95 % intervals. Raises ImportError without matplotlib.
    """
    names = [name for name in evaluations[0].scores if name in _SCORES]
    buckets = evaluations[0].by_length
    figure, *all_axes = _figure(5 * len(names), len(names))
    for axes, name in zip(all_axes, names, strict=True):
        for number, evaluation in enumerate(evaluations):
            scores = [bucket.scores[name] for bucket in evaluation.by_length]
            values = [score.value for score in scores]
            bars = [[v - s.low, s.high - v] if s.low is not None and s.high is not None else [0, 0]
                    for v, s in zip(values, scores, strict=True)]  # fmt: skip
            places = [place + 0.06 * (number - (len(evaluations) - 1) / 2) for place in range(len(values))]
            axes.errorbar(
                places, values, list(zip(*bars, strict=True)), marker=".", capsize=2, label=_plain(evaluation.system)
            )
        axes.set_xticks(range(len(buckets)), [f"{bucket.label}\n({bucket.num_sentences:,})" for bucket in buckets])
        axes.set_xlabel(f"{buckets[0].unit} of the source (number of sentences)")
        axes.set_ylim(
            0, 1.4 * max(1, *(bucket.scores[name].value for each in evaluations for bucket in each.by_length))
        )
        axes.set_title(f"{_SCORES[name]} on {_plain(evaluations[0].test.label)}")
    _save(figure, atomic_write(path))


def require_plots(flag: str) -> None:
    """Raise UsageError without matplotlib; checked before the work, which may take long."""
    if find_spec("matplotlib") is None:
        raise UsageError(f"{flag} needs matplotlib: pip install matplotlib.")


def _plain(name: str) -> str:
    """A name as matplotlib shows it: without formulas, and in the legend though it begins with an underscore."""
    return ("\u200b" * name.startswith("_") + name).replace("$", r"\$")


def _unit(seconds: float) -> tuple[str, int]:
    """The unit for the times of a training of this duration, and its length in seconds."""
    return ("hours", 3600) if seconds > LONG else ("minutes", 60)


def _rescaled(events: Events, seconds: float) -> Events:
    """The events with their times in a unit of `seconds` seconds."""
    return [{**event, "seconds": event["seconds"] / seconds} for event in events]


def _points(events: Events, name: str, value: Callable[[float], float] = float) -> Points:
    """(time, value) of the events that have this value, by time."""
    return sorted((event["seconds"], value(event[name])) for event in events if event.get(name) is not None)


def _figure(width: float, num_axes: int) -> tuple[Any, ...]:
    """A figure, and its axes side by side. Raises ImportError without matplotlib."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, *figure.subplots(1, num_axes, squeeze=False)[0]


def _plot(axes: Axes, points: Points, **style: Any) -> None:
    axes.plot([x for x, _ in points], [y for _, y in points], **style)


def _save(figure: Figure, output: AbstractContextManager[IO[bytes]], unit: str = "") -> None:
    """Write a figure; `unit`: its horizontal axis is the time of the training."""
    for axes in figure.axes:
        if unit:
            axes.set_xlabel(f"{unit} of training")
            axes.set_xlim(left=0)
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)
    with output as file:
        figure.savefig(file, dpi=120, format="png")


def sparkline(values: Sequence[float]) -> str:
    """A curve of at most `WIDTH` block characters, scaled to the range of the values."""
    if not values:
        return ""
    shown = values[:: -(-len(values) // WIDTH)]
    low, high = min(shown), max(shown)
    span = (high - low) or 1.0
    return "".join(BARS[round(7 * (value - low) / span)] for value in shown)


def _sparklines(train: Events, validations: Events) -> str:
    curves = {
        "training loss": _points(train, "loss"),
        **{f"validation {_SCORES[name]}": _points(validations, name) for name in _SCORES},
        "training perplexity": _points(validations, "training_perplexity"),
        "validation perplexity": _points(validations, "perplexity"),
    }
    lines = ["(`pip install matplotlib` draws the curves)", "", "```"]
    for name, points in curves.items():
        if points:
            values = [value for _, value in points]
            lines.append(f"{name:21} {sparkline(values)}  {values[0]:.3g} → {values[-1]:.3g}")
    return "\n".join([*lines, "```"])
