"""What was trained on what, how did it go, and what does it say? `report.md`, for a colleague."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from heed.core.environment import library_versions
from heed.core.files import atomic_write
from heed.core.progress import format_seconds
from heed.training.journal import read_journal

BARS = " ▁▂▃▄▅▆▇█"


def write_report(folder: Path, reason: str, synthetic: bool = False, corpus: Mapping[str, Any] | None = None) -> Path:
    """Write `report.md`, and `curves.png` where matplotlib is installed."""
    events = read_journal(folder)
    train = [event for event in events if event["event"] == "train"]
    validations = [event for event in events if event["event"] == "validation"]
    pictures = _plot(folder, train, validations)
    parts = [
        f"# Training report: {folder.resolve().name}",
        "The data is heed's built-in corpus: every score here is **synthetic**." if synthetic else "",
        _ending(reason, train, validations),
        _data(folder, corpus or {}),
        _scores(validations),
        f"![curves]({pictures})" if pictures else _sparklines(train, validations),
        _samples(validations),
        "## How to make it again\n\n`recipe.toml` in this folder is complete: `heed train recipe.toml --out NEW`.\n\n"
        + "  ".join(f"{name} {version}" for name, version in library_versions().items()),
    ]
    path = folder / "report.md"
    with atomic_write(path, "w") as file:
        file.write("\n\n".join(part for part in parts if part) + "\n")
    return path


def _ending(reason: str, train: Sequence[Mapping[str, Any]], validations: Sequence[Mapping[str, Any]]) -> str:
    last = validations[-1] if validations else (train[-1] if train else None)
    if last is None:
        return f"It ended: {reason}."
    speeds = sorted(event["tokens_per_second"] for event in train)
    speed = f", {speeds[len(speeds) // 2]:,.0f} target tokens/s in the median" if speeds else ""
    return f"It ended after {last['step']:,} updates and {format_seconds(last['seconds'])}{speed}: {reason}."


def _data(folder: Path, corpus: Mapping[str, Any]) -> str:
    lines = ["## Data", ""]
    if corpus:
        lines.append(f"{corpus['num_rows']:,} rows to train on, {corpus['num_valid']:,} to validate.")
        lines += [f"- left out: {count:,} ({why})" for why, count in corpus["dropped"].items()]
        lines += ["", "| file | lines | bytes | SHA-256 |", "| --- | ---: | ---: | --- |"]
        for entry in corpus["files"].values():
            lines.append(f"| {entry['name']} | {entry['lines']:,} | {entry['bytes']:,} | `{entry['sha256'][:16]}…` |")
    diagnosis = folder / "data" / "diagnosis.txt"
    if diagnosis.exists():
        lines += ["", "What the data doctor found:", "", "```", diagnosis.read_text(encoding="utf-8").rstrip(), "```"]
    return "\n".join(lines)


def _scores(validations: Sequence[Mapping[str, Any]]) -> str:
    """The validation whose weights were kept, with signatures."""
    kept = [event for event in validations if event.get("best")]
    if not kept:
        return ""
    event = kept[-1]
    lines = ["## Scores on validation data", "", f"Of the weights that were kept, from update {event['step']:,}.", ""]
    lines += ["| score | value | signature |", "| --- | ---: | --- |"]
    for name, signature in event["signatures"].items():
        value = "infinite" if event[name] is None else f"{event[name]:.2f}"
        lines.append(f"| {name} | {value} | `{signature.replace('|', chr(92) + '|')}` |")
    return "\n".join(lines)


def _samples(validations: Sequence[Mapping[str, Any]]) -> str:
    samples = validations[-1].get("samples") if validations else None
    if not samples:
        return ""
    lines = ["## Samples of the last validation (greedy)", ""]
    for sample in samples:
        lines += [
            f"- source: {sample['src']}",
            f"  - output: {sample['output']}",
            f"  - reference: {sample['reference']}",
        ]
    return "\n".join(lines)


def sparkline(values: Sequence[float], width: int = 60) -> str:
    """A curve of block characters, as high as the largest value."""
    if not values:
        return ""
    picked = values[:: -(-len(values) // width)]
    low, high = min(picked), max(picked)
    span = (high - low) or 1.0
    return "".join(BARS[1 + round(7 * (value - low) / span)] for value in picked)


def _sparklines(train: Sequence[Mapping[str, Any]], validations: Sequence[Mapping[str, Any]]) -> str:
    lines = ["## Curves", "", "(`pip install 'heed[plot]'` draws them)", "", "```"]
    curves = {"training loss": [event["loss"] for event in train if event["loss"] is not None]}
    for name in ("bleu", "chrf", "perplexity"):
        curves[name] = [event[name] for event in validations if event.get(name) is not None]
    for name, values in curves.items():
        if values:
            lines.append(f"{name:14} {sparkline(values)}  {values[0]:.3g} → {values[-1]:.3g}")
    return "\n".join([*lines, "```"])


def _plot(folder: Path, train: Sequence[Mapping[str, Any]], validations: Sequence[Mapping[str, Any]]) -> str:
    """Draw `curves.png`; its name, or nothing without matplotlib or without a curve."""
    if len(train) < 2 or len(validations) < 2:
        return ""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return ""
    figure = Figure(figsize=(11, 3.4), layout="constrained")
    axes = figure.subplots(1, 3)
    axes[0].plot([e["step"] for e in train], [e["loss"] for e in train], color="#33658a")
    axes[0].set_title("training loss (smoothed labels)")
    for axis, names in ((axes[1], ("bleu", "chrf")), (axes[2], ("perplexity",))):
        for name, colour in zip(names, ("#b5432a", "#4f7a4a"), strict=False):
            points = [(e["step"], e[name]) for e in validations if e.get(name) is not None]
            if points:
                axis.plot(*zip(*points, strict=True), color=colour, marker=".", label=name)
        axis.set_title("validation " + " and ".join(names))
        if len(names) > 1:
            axis.legend()
    axes[2].set_yscale("log")
    for axis in axes:
        axis.set_xlabel("updates")
        axis.grid(alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(folder / "curves.png", dpi=110)
    return "curves.png"
