"""The report's tables of scores, on validation data and on test data, and its sample outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from heed.core.run_files import WEIGHTS
from heed.evaluation.score_log import read_scores, weights_of
from heed.metrics.metric import Score
from heed.report.markdown import code, plain, table
from heed.run import Run

Event = Mapping[str, Any]
_UNSEEN = "without lines in the training data of any run in the command"
_PLACES = {"good": "Among the best", "middle": "In the middle", "bad": "Among the worst", "worst": "The worst"}
"""Headings of the samples. They are relative: the best outputs of a poor model are not good."""


def score_section(run: Run, analysis: Event, kept: Event | None) -> str:
    """Scores of the kept weights on validation data, and of all evaluations on test data; empty without any."""
    parts = [_validation_scores(analysis, kept, run.blank_model.count_based) if kept else "", *_test_scores(run)]
    tables = [part for part in parts if part]
    return "\n\n".join(["## Scores", *tables]) if tables else ""


def _validation_scores(analysis: Event, kept: Event, counted: bool) -> str:
    """Scores with signatures and intervals; without an analysis, the greedy ones of the validation."""
    if analysis:
        scores = [Score.from_json(score) for score in analysis["scores"]]
        search = _search({"earlier": False, **analysis})
    else:
        search = "greedy search"
        scores = [
            Score.from_json({"name": name, "value": kept.get(name), "signature": signature})
            for name, signature in kept["signatures"].items()
        ]
    head = ["score", "value, 95 % interval" if analysis else "value", "signature"]
    rows = [head, *([score.name, score.numbers, code(score.signature)] for score in scores)]
    lines = f"{analysis['num_lines']:,} lines" if analysis else ""
    weights = "" if counted else f"the weights of update {kept['step']:,}"
    text = ", ".join(filter(None, [weights, lines, search]))
    text = f"{text[:1].upper()}{text[1:]}."
    parts = [f"### On validation data\n\n{text}\n\n{table(rows, right=[1])}", _baselines(analysis, rows[0])]
    return "\n\n".join(part for part in parts if part)


def _baselines(analysis: Event, head: Sequence[str]) -> str:
    """The scores of the baselines; empty if the task has none."""
    rows = [
        [plain(baseline["system"]), score.name, score.numbers]
        for baseline in analysis.get("baselines", ())
        for score in map(Score.from_json, baseline["scores"])
    ]
    if not rows:
        return ""
    return f"Baselines:\n\n{table([['output', *head[:2]], *rows], right=[2])}"


def _test_scores(run: Run) -> list[str]:
    """All logged evaluations, in one table for each set of signatures."""
    entries = read_scores(run)
    if not entries:
        return []
    parts = ["### On test data", "All evaluations of this run, from its `scores.jsonl`."]
    weights = weights_of(run) if run.files.has(WEIGHTS) else None
    entries = [{**entry, "earlier": entry.get("weights") not in (None, weights)} for entry in entries]
    if any(entry["earlier"] for entry in entries):
        parts.append("Rows with *earlier weights* were scored before the weights in this folder were replaced.")
    tables: dict[tuple[tuple[str, str], ...], list[tuple[Event, int]]] = {}
    for entry, times in zip(entries, _times(entries), strict=True):
        signatures = tuple((score["name"], score["signature"]) for score in entry["scores"])
        tables.setdefault(signatures, []).append((entry, times))
    for signatures, numbered in tables.items():
        parts += [_test_table(numbered), "\n".join(f"- {name}: {code(text)}" for name, text in signatures)]
    return parts


def _times(entries: Sequence[Event]) -> list[int]:
    """Number of times that the run had been scored on the lines of each entry, itself included."""
    seen: dict[tuple[str, ...], list[str]] = {}
    times = []
    for entry in entries:
        same_lines = seen.setdefault(tuple(file["sha256"] for file in entry["test"]), [])
        if entry["time"] not in same_lines:  # one command may log several rows
            same_lines.append(entry["time"])
        times.append(len(same_lines))
    return times


def _test_table(numbered: Sequence[tuple[Event, int]]) -> str:
    names = [score["name"] for score in numbered[0][0]["scores"]]
    method = "search" if any("search" in entry for entry, _ in numbered) else "reads"
    rows = [["date", "test data", "lines", method, *names, "lines seen in training"]]
    for entry, times in numbered:
        files = " ".join(code(file["name"]) for file in entry["test"])
        scores = [Score.from_json(score).numbers for score in entry["scores"]]
        again = "" if times == 1 else f" (time {times})"
        lines = f"{entry['test'][0]['lines']:,}"
        rows.append([entry["time"][:10] + again, files, lines, _search(entry), *scores, _leaked(entry)])
        if clean := [Score.from_json(score).numbers for score in entry.get("without_leaked") or ()]:
            left = entry.get("lines_without_leaked")
            rows.append(["", _UNSEEN, f"{left:,}" if left else "", "", *clean, ""])
    return table(rows, right=[2])


def _search(entry: Event) -> str:
    """Ensemble, search options, arithmetic and tag; for a language model, how it reads."""
    members = [f"ensemble of {', '.join(map(code, entry['ensemble']))}"] if entry.get("ensemble") else []
    search = entry.get("search", {})
    options = [f"beam {search['beam_size']}"] if search else []
    options += [f"{name} {value}" for name, value in search.items() if name != "beam_size"]
    precision = [entry["precision"]] if entry.get("precision", "float32") != "float32" else []
    reads = [str(entry["reads"])] if entry.get("reads") else []
    tag = [f"tag {entry['tag']}"] if entry.get("tag") else []
    return ", ".join([*members, *options, *precision, *reads, *tag, *["earlier weights"] * entry["earlier"]])


def _leaked(entry: Event) -> str:
    """Number of lines in the run's training and validation data; empty for an ensemble, whose members have rows."""
    if entry.get("ensemble"):
        return ""
    seen = "unknown" if entry.get("leaked") is None else f"{entry['leaked']:,}"
    return seen + (f"; {entry['in_validation']:,} in validation" if entry.get("in_validation") else "")


def sample_section(analysis: Event, validations: Sequence[Event]) -> str:
    """Outputs for validation lines, the best first."""
    if samples := analysis.get("samples"):
        parts = ["## Samples\n\nValidation lines at fixed ranks by sentence chrF2, not selected by hand."]
        for kind, group in groupby(samples, key=lambda sample: sample["kind"]):
            shown = [_sample(it["source"], it["output"], it["reference"], it["chrf"]) for it in group]
            parts.append(f"**{_PLACES.get(kind, kind)}**\n\n" + "\n".join(shown))
        return "\n\n".join(parts)
    last = validations[-1].get("samples", ()) if validations else ()
    shown = [_sample(it["src"], it["output"], it["reference"]) for it in last if it["src"]]
    return "## Samples of the last validation (greedy)\n\n" + "\n".join(shown) if shown else ""


def _sample(source: str, output: str, reference: str, chrf: float | None = None) -> str:
    score = "" if chrf is None else f" (chrF2 {chrf:.0f})"
    return f"- {plain(source)}\n  - output{score}: {plain(output)}\n  - reference: {plain(reference)}"
