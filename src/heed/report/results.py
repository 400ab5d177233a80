"""What are the scores: on validation data, on test data each time it was scored, and what do they look like as text?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from heed.core.files import sha256_file
from heed.evaluation.score_log import read_scores
from heed.metrics.metric import Score
from heed.report.markdown import code, plain, table
from heed.run import WEIGHTS, Run

Event = Mapping[str, Any]
_UNSEEN = "without lines that a run of the same command had seen"
_PLACES = {"good": "Among the best", "middle": "In the middle", "bad": "Among the worst", "worst": "The worst"}
"""Headings of the samples, whose places are relative: the best outputs of a poor model are not good."""


def validation_scores(analysis: Event, validations: Sequence[Event]) -> str:
    """The scores of the weights that were kept, with signatures and intervals; greedy ones without an analysis."""
    kept = [event for event in validations if event.get("best")]
    if not kept:
        return ""
    scores, search = _kept_scores(kept[-1]), "greedy search"
    if analysis:
        scores = [Score.from_json(score) for score in analysis["scores"]]
        search = _search({"earlier": False, **analysis})
    heads = ["score", "value, 95 % interval" if analysis else "value", "signature"]
    rows = [heads, *([score.name, score.numbers, code(score.signature)] for score in scores)]
    lines = f", {analysis['num_lines']:,} lines" if analysis else ""
    text = f"The weights of update {kept[-1]['step']:,}{lines}{', ' + search if search else ''}."
    return f"### On validation data\n\n{text}\n\n{table(rows, right=[1])}"


def _kept_scores(event: Event) -> list[Score]:
    return [
        Score.from_json({"name": name, "value": event.get(name), "signature": signature})
        for name, signature in event["signatures"].items()
    ]


def test_scores(run: Run) -> str:
    """Each time that the run was scored on test data; a table for each kind of scores, which is their signatures."""
    entries = read_scores(run)
    if not entries:
        return ""
    parts = ["### On test data", "Each time that this run was scored, from its `scores.jsonl`."]
    weights = sha256_file(run.files.path(WEIGHTS)) if run.files.has(WEIGHTS) else None
    entries = [{**entry, "earlier": entry.get("weights") not in (None, weights)} for entry in entries]
    if any(entry["earlier"] for entry in entries):
        parts.append("Rows of earlier weights are of a model that this folder no longer holds.")
    tables: dict[tuple[tuple[str, str], ...], list[tuple[Event, int]]] = {}
    for entry, times in zip(entries, _times(entries), strict=True):
        signatures = tuple((score["name"], score["signature"]) for score in entry["scores"])
        tables.setdefault(signatures, []).append((entry, times))
    for signatures, numbered in tables.items():
        parts += [_test_table(numbered), "\n".join(f"- {name}: {code(text)}" for name, text in signatures)]
    return "\n\n".join(parts)


def _times(entries: Sequence[Event]) -> list[int]:
    """How many times a run had been scored on these very lines, this time included."""
    seen: dict[tuple[str, ...], list[str]] = {}
    times = []
    for entry in entries:
        ours = seen.setdefault(tuple(file["sha256"] for file in entry["test"]), [])
        if entry["time"] not in ours:  # one command may give several rows
            ours.append(entry["time"])
        times.append(len(ours))
    return times


def _test_table(numbered: Sequence[tuple[Event, int]]) -> str:
    names = [score["name"] for score in numbered[0][0]["scores"]]
    searched = "search" if any("search" in entry for entry, _ in numbered) else "reads"
    rows = [["date", "test data", "lines", searched, *names, "lines seen in training"]]
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
    """How it was searched, with what arithmetic; of a language model how it read."""
    tag = [f"tag {entry['tag']}"] if entry.get("tag") else []
    how = [f"beam {entry['search']['beam_size']}", *_others(entry["search"])] if "search" in entry else []
    reads = [str(entry["reads"])] if entry.get("reads") else []
    precision = [entry["precision"]] if entry.get("precision", "float32") != "float32" else []
    together = [f"as one model: {', '.join(map(code, entry['ensemble']))}"] if entry.get("ensemble") else []
    return ", ".join([*together, *how, *precision, *reads, *tag, *["earlier weights"] * entry["earlier"]])


def _others(search: Event) -> list[str]:
    """What was said about the search beside its beam, in the recipe's words."""
    return [f"{name} {value}" for name, value in search.items() if name != "beam_size"]


def _leaked(entry: Event) -> str:
    """How many of the lines the run was trained on, and how many chose its weights.

    Nothing of several runs together, whose own rows say it.
    """
    if entry.get("ensemble"):
        return ""
    seen = "unknown" if entry.get("leaked") is None else f"{entry['leaked']:,}"
    return seen + (f"; {entry['in_validation']:,} in validation" if entry.get("in_validation") else "")


def sample_section(analysis: Event, validations: Sequence[Event]) -> str:
    """Outputs for validation lines, the best first."""
    samples = analysis.get("samples")
    if samples:
        how = "Validation lines at fixed places in the order of sentence chrF2; nobody selected them."
        parts = [f"## Samples\n\n{how}"]
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
