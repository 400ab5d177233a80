"""A run's weights on its validation data: the analysis that the report shows, and whether the model is usable.

The analysis is made once, when training ends, and saved as `validation.json`, from which the report can be rewritten.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import torch

from heed.core.environment import memory_bytes, num_cpus, processor_name
from heed.core.json_text import parse_json
from heed.evaluation.evaluation import Evaluation
from heed.metrics.metric import Score
from heed.run import Run

VALIDATION = "validation.json"
Event = Mapping[str, Any]


def write_analysis(run: Run, step: int, quiet: bool = False) -> None:
    """Analyse the weights that were kept, those of update `step`, and save the result in the run folder."""
    save_analysis(run, {"step": step, **analyse(run, quiet)})


def save_analysis(run: Run, analysis: Mapping[str, Any]) -> None:
    """Save an analysis in the run folder."""
    with run.files.write(VALIDATION, "w") as file:
        json.dump(analysis, file, ensure_ascii=False, indent=1)


def read_analysis(run: Run, step: int) -> dict[str, Any]:
    """The saved analysis of the weights of this update; empty if it is of other weights, or damaged."""
    if not run.files.has(VALIDATION):
        return {}
    try:
        analysis = parse_json(run.files.read_anyway(VALIDATION, "The report may repeat wrong numbers."))
        for score in analysis["scores"]:
            Score.from_json(score).render()
        return dict(analysis) if analysis["step"] == step and analysis["num_lines"] > 0 else {}
    except (ValueError, TypeError, LookupError, AttributeError):
        return {}


def add_section(run: Run, section: str) -> None:
    """Add a section of Markdown to the saved analysis, which the report repeats."""
    analysis = parse_json(run.files.read(VALIDATION))
    save_analysis(run, {**analysis, "sections": [*analysis.get("sections", ()), section]})


def analyse(run: Run, quiet: bool = False) -> dict[str, Any]:
    """The task's analysis of the validation data, with the size of the model and the machine."""
    num_parameters = sum(parameter.numel() for parameter in run.model.parameters())
    return {**run.predictor.analyse(quiet), "num_parameters": num_parameters, "machine": _machine(run.device)}


def measured(evaluation: Evaluation) -> dict[str, Any]:
    """The fields of an evaluation of the validation data that an analysis keeps."""
    fields = evaluation.to_json()
    kept = ("search", "reads", "training_perplexity", "scores", "length_ratio", "by_length", "by_frequency")
    leaked = len(evaluation.leakage.lines) if evaluation.leakage and evaluation.leakage.num_compared else None
    return {
        "num_lines": len(evaluation.test.rows),
        "leaked": leaked,
        **{name: fields[name] for name in kept if name in fields},
    }


def _machine(device: torch.device) -> str:
    """The hardware: `1 of 2 CPU cores (Intel Xeon), 23 GiB of memory`."""
    cores, threads = num_cpus(), torch.get_num_threads()
    used = f"{threads} of " if threads < cores and device.type == "cpu" else ""
    text = f"{used}{cores} CPU core{'s' * (cores > 1)} ({processor_name()}), {memory_bytes() / 2**30:.0f} GiB of memory"
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        return f"{properties.name} ({properties.total_memory / 2**30:.0f} GiB), {text}"
    return text
