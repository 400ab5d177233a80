"""Training curves: a plot if matplotlib is installed, otherwise sparklines."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heed.core.errors import UsageError
from heed.core.files import atomic_write
from heed.core.run_files import RunFiles

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Events = Sequence[Mapping[str, Any]]
Points = list[tuple[float, float]]

PICTURE = "curves.png"
LONG = 3 * 3600
"""Seconds of training from which times are given in hours."""
BARS = " ▁▂▃▄▅▆▇█"
_SCORES = {"bleu": "BLEU", "chrf": "chrF2"}
_BLUE, _RED, _GREEN, _GREY = "#33658a", "#b5432a", "#4f7a4a", "#8a8a8a"


def draw_curves(folder: Path, train: Events, validations: Events) -> str:
    """Markdown with the curves of a training; writes `curves.png` into the folder if matplotlib is installed."""
    if len(train) < 2 or len(validations) < 2:
        return ""
    if (folder / PICTURE).is_symlink():  # it could lead anywhere
        return _sparklines(train, validations)
    try:
        _draw(folder / PICTURE, train, validations)
    except ImportError:
        return _sparklines(train, validations)
    return f"![curves]({PICTURE})"


def _points(events: Events, name: str, value: Callable[[float], float] = float) -> Points:
    """(time, value) of the events that have this value."""
    return [(event["seconds"], value(event[name])) for event in events if event.get(name) is not None]


def _rescaled(events: Events, seconds: float) -> Events:
    """The events with their times in a unit of `seconds` seconds."""
    return [{**event, "seconds": event["seconds"] / seconds} for event in events]


def _draw(path: Path, train: Events, validations: Events) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    unit, seconds = _unit(validations[-1]["seconds"])
    train, validations = _rescaled(train, seconds), _rescaled(validations, seconds)
    scores = [name for name in _SCORES if _points(validations, name)]
    figure = Figure(figsize=(10, 3.6) if scores else (6, 3.6), layout="constrained")
    loss, *others = figure.subplots(1, 2 if scores else 1, squeeze=False)[0]
    _plot_loss(loss, train, validations)
    for axes in others:
        _plot_scores(axes, scores, validations)
    for axes in (loss, *others):
        _mark_kept(axes, validations)
        _finish(axes, unit)
    FigureCanvasAgg(figure)
    with RunFiles(path.parent).write_page(path.name) as file:
        figure.savefig(file, dpi=120, format="png")


def draw_runs(path: Path, validations: Mapping[str, Events]) -> None:
    """Write one plot of the validation curves of several runs, by name. Raises UsageError without matplotlib."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise UsageError("a plot of several runs needs matplotlib: pip install matplotlib.") from error
    unit, seconds = _unit(max((events[-1]["seconds"] for events in validations.values() if events), default=0.0))
    curves = {name: _rescaled(events, seconds) for name, events in validations.items()}
    scores = [score for score in _SCORES if any(_points(events, score) for events in curves.values())]
    figure = Figure(figsize=(5 * (1 + len(scores)), 3.6), layout="constrained")
    loss, *others = figure.subplots(1, 1 + len(scores), squeeze=False)[0]
    for name, events in curves.items():
        loss.plot(*_coordinates(_points(events, "perplexity", math.log)), marker=".", label=name)
        for axes, score in zip(others, scores, strict=True):
            axes.plot(*_coordinates(_points(events, score)), marker=".", label=name)
    loss.set_title("validation cross-entropy, nats per token")
    for axes, score in zip(others, scores, strict=True):
        axes.set_title(f"validation {_SCORES[score]}, greedy search")
    for axes in (loss, *others):
        _finish(axes, unit)
    FigureCanvasAgg(figure)
    with atomic_write(path) as file:
        figure.savefig(file, dpi=120, format="png")


def _finish(axes: Axes, unit: str) -> None:
    axes.set_xlabel(f"{unit} of training")
    axes.set_xlim(left=0)
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)


def _unit(seconds: float) -> tuple[str, int]:
    """The unit of time of a training of so many seconds, and its seconds."""
    return ("hours", 3600) if seconds > LONG else ("minutes", 60)


def _coordinates(points: Points) -> tuple[list[float], list[float]]:
    return [x for x, _ in points], [y for _, y in points]


def _plot_loss(axes: Axes, train: Events, validations: Events) -> None:
    """Both curves are -log p without label smoothing."""
    training, validation = _points(train, "perplexity", math.log), _points(validations, "perplexity", math.log)
    axes.plot(*zip(*training, strict=True), color=_BLUE, linewidth=1, label="training, with dropout")
    if plain := _points(validations, "training_perplexity", math.log):
        axes.plot(*zip(*plain, strict=True), color=_BLUE, marker=".", linestyle="--", label="training, as validated")
    if validation:
        axes.plot(*zip(*validation, strict=True), color=_RED, marker=".", label="validation")
    axes.set_title("cross-entropy, nats per token")


def _plot_scores(axes: Axes, names: Sequence[str], validations: Events) -> None:
    for name, colour in zip(names, (_RED, _GREEN), strict=False):
        points = _points(validations, name)
        axes.plot(*zip(*points, strict=True), color=colour, marker=".", label=_SCORES[name])
    axes.set_ylim(bottom=0)
    axes.set_title("validation scores, greedy search")


def _mark_kept(axes: Axes, validations: Events) -> None:
    """A line at the validation whose weights were kept."""
    kept = [event for event in validations if event.get("best")]
    if kept:
        axes.axvline(kept[-1]["seconds"], color=_GREY, linestyle=":", label="weights kept")


def sparkline(values: Sequence[float], width: int = 60) -> str:
    """A curve of block characters, as high as the largest value."""
    if not values:
        return ""
    shown = values[:: -(-len(values) // width)]
    low, high = min(shown), max(shown)
    span = (high - low) or 1.0
    return "".join(BARS[1 + round(7 * (value - low) / span)] for value in shown)


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
