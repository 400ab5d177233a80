"""`heed info`: a description of one run, or a table of several."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heed.cli.options import Json, require_writable
from heed.core.config import flattened
from heed.core.errors import DataError, UsageError
from heed.core.files import storage_errors

if TYPE_CHECKING:
    from heed.run import Run

Runs = Annotated[list[Path], typer.Argument(metavar="RUN", help="A run folder, or several to compare.")]
Plot = Annotated[Path | None, typer.Option(metavar="F", help="Write the validation curves of the runs as PNG.")]


Verify = Annotated[bool, typer.Option("--verify", help="Compare every file of the runs with its checksum.")]


def info(runs: Runs, plot: Plot = None, verify: Verify = False, json_output: Json = False) -> None:
    """Describe a run, or compare several in a table.

    For one run: task, languages, model, sizes, data and best validation scores. --plot draws the learning curves of
    all runs in one picture. --verify reads all files instead and exits with 65 if one is not as heed wrote it.

    Examples:

      heed info runs/en-de

      heed info runs/small runs/large --plot curves.png

      heed info runs/en-de --verify
    """
    from heed.run import Run
    from heed.statistical.alignment.run_folder import is_aligner_run

    if aligners := [folder for folder in runs if is_aligner_run(folder)]:
        _aligner(aligners[0], len(runs), plot, verify, json_output)
        return
    opened = [Run(folder) for folder in runs]
    if verify:
        _verify(opened, plot, json_output)
        return
    facts = [_facts(folder, run) for folder, run in zip(runs, opened, strict=True)]
    if plot is not None:
        _plot(plot, opened)
    if json_output:
        print(json.dumps(facts[0] if len(facts) == 1 else facts, ensure_ascii=False))
    elif len(facts) == 1:
        print("\n".join(_lines(facts[0])))
    else:
        print(_table(facts))


def _aligner(folder: Path, num_runs: int, plot: Path | None, verify: bool, json_output: bool) -> None:
    """Print the facts about the run of an aligner, or what its files are."""
    from heed.statistical.alignment.run_folder import describe, verify_run

    if num_runs > 1 or plot is not None:
        raise UsageError(f"{folder} is an aligner, which can be neither plotted nor compared: give it alone.")
    facts: dict[str, Any] = dict(verify_run(folder) if verify else describe(folder))
    print(json.dumps(facts, ensure_ascii=False) if json_output else "\n".join(_lines(facts)))
    if verify and (damaged := [name for name, state in facts.items() if state != "as heed wrote it"]):
        raise DataError(f"{len(damaged)} damaged: {', '.join(damaged[:5])}. Copy the run again, or train it again.")


def _verify(runs: Sequence[Run], plot: Path | None, json_output: bool) -> None:
    """Print what every file is. Raises DataError if one is damaged."""
    from heed.integrity import verify

    if plot is not None:
        raise UsageError("--verify cannot be combined with --plot: it reads files and draws nothing.")
    checked = {str(run.folder): list(verify(run)) for run in runs}
    if json_output:
        print(json.dumps({run: [asdict(each) for each in found] for run, found in checked.items()}, ensure_ascii=False))
    else:
        print("\n".join(f"{run}/{each.name}: {each.state}" for run, found in checked.items() for each in found))
    damaged = [f"{run}/{each.name}" for run, found in checked.items() for each in found if each.is_damaged]
    if damaged:
        raise DataError(f"{len(damaged)} damaged: {', '.join(damaged[:5])}. Copy the run again, or train it again.")


def _facts(folder: Path, run: Run) -> dict[str, Any]:
    from heed.core.run_files import WEIGHTS
    from heed.report.description import directions, parts, validated_on

    recipe, corpus = run.recipe, run.corpus
    sizes = ", ".join(f"{side} {len(tokenizer.vocabulary):,}" for side, tokenizer in run.tokenizers.items())
    facts: dict[str, Any] = {
        "run": str(folder),
        "task": recipe.task,
        "languages": directions(run) or None,
        "synthetic": recipe.data.synthetic,
        "model": recipe.model.model_dump(),
        "tokenizer": f"{recipe.tokenizer.kind}, {sizes}",
        "trained on": corpus["num_rows"] - corpus.get("num_repeated", 0) if "num_rows" in corpus else "?",
    }
    facts |= run.predictor.facts()
    if several := parts(run):
        facts["parts"] = [asdict(part) for part in several]
        facts["validated on"] = validated_on(run)
    if run.files.has(WEIGHTS):
        facts["parameters"] = run.num_parameters
    if best := [event for event in _validations(run) if event.get("best")]:
        names = best[-1]["signatures"]
        facts["best validation"] = {"update": best[-1]["step"], **{name: best[-1][name] for name in names}}
    return facts


def _validations(run: Run) -> list[dict[str, Any]]:
    """The validations of a run, from its metrics log."""
    from heed.training.metrics_log import read_metrics

    return [event for event in read_metrics(run.folder) if event["event"] == "validation"]


def _plot(path: Path, runs: Sequence[Run]) -> None:
    """Draw the validation curves of all runs. Raises UsageError if no run has any, or without matplotlib."""
    from heed.report.curves import draw_runs

    curves = {str(run.folder): _validations(run) for run in runs}
    if not any(curves.values()):
        raise UsageError("--plot needs a run that was validated: none of these was.")
    require_writable(path, "--plot")
    with storage_errors("write the plot", path=path):
        draw_runs(path, curves)


def _lines(facts: dict[str, Any]) -> list[str]:
    """One line for each fact about a run; facts and settings that are not set are left out."""
    from heed.report.description import PartFacts

    lines = []
    for name, value in facts.items():
        if value is None:
            continue
        if name == "parts":
            for number, part in enumerate(value):
                lines.append(f"{f'part {number}' if number else 'main part':16} {PartFacts(**part).render()}")
        elif isinstance(value, dict):
            lines.append(f"{name:16} {_settings(value)}")
        else:
            lines.append(f"{name:16} {_shown(value)}")
    return lines


def _settings(values: dict[str, Any]) -> str:
    return "  ".join(f"{key}={value}" for key, value in flattened(values).items() if value is not None)


def _table(runs: Sequence[dict[str, Any]]) -> str:
    """One row for each run."""
    from heed.evaluation.table import columns

    rows = [
        {
            "run": facts["run"], "task": facts["task"], "model": facts["model"]["kind"],
            "parameters": facts.get("parameters", ""), "trained on": facts["trained on"],
            **facts.get("best validation", {}),
        }
        for facts in runs
    ]  # fmt: skip
    names = list(dict.fromkeys(name for row in rows for name in row))
    numbers = [i for i, name in enumerate(names) if not all(isinstance(row.get(name, ""), str) for row in rows)]
    return columns([names, *([_shown(row.get(name, "")) for name in names] for row in rows)], right=numbers)


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:,.2f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
