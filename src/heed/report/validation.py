"""Analysis of a run's weights on its validation data, made once when training ends.

It is kept as `validation.json`, so that the report can be rewritten at any time.
"""

from __future__ import annotations

import json
from typing import Any

import torch

from heed.core.environment import memory_bytes, num_cpus, processor_name
from heed.evaluation.evaluation import Evaluation
from heed.metrics.metric import Score
from heed.run import Run

VALIDATION = "validation.json"


def write_analysis(run: Run, step: int, quiet: bool = False) -> None:
    """Look at the weights of an update, which were kept, and write down what was found."""
    found = {"step": step, **analyse(run, quiet)}
    with run.files.write(VALIDATION, "w") as file:
        json.dump(found, file, ensure_ascii=False, indent=1)


def read_analysis(run: Run, step: int) -> dict[str, Any]:
    """What `write_analysis` wrote of the weights of this update; nothing where it is of others, or damaged."""
    if not run.files.has(VALIDATION):
        return {}
    try:
        found = json.loads(run.files.read_anyway(VALIDATION, "The report may repeat wrong numbers."))
        for score in found["scores"]:
            Score.from_json(score).render()
        return dict(found) if found["step"] == step and found["num_lines"] > 0 else {}
    except (ValueError, TypeError, LookupError, AttributeError):
        return {}


def analyse(run: Run, quiet: bool = False) -> dict[str, Any]:
    """Scores with intervals, by length and by frequency, samples; and of which model on which machine."""
    found = run.predictor.analyse(quiet)
    num_parameters = sum(parameter.numel() for parameter in run.model.parameters())
    return {**found, "num_parameters": num_parameters, "machine": machine(run.device)}


def measured(evaluation: Evaluation) -> dict[str, Any]:
    """What the report keeps of an evaluation on the validation data."""
    found = evaluation.to_json()
    kept = ("search", "reads", "training_perplexity", "scores", "length_ratio", "by_length", "by_frequency")
    leaked = len(evaluation.leakage.lines) if evaluation.leakage and evaluation.leakage.num_compared else None
    return {"num_lines": len(evaluation.test.rows), "leaked": leaked, **{k: found[k] for k in kept if k in found}}


def machine(device: torch.device) -> str:
    """What computed: `1 of 2 CPU cores (Intel Xeon), 23 GiB of memory`."""
    cores, threads = num_cpus(), torch.get_num_threads()
    used = f"{threads} of " if threads < cores and device.type == "cpu" else ""
    text = f"{used}{cores} CPU core{'s' * (cores > 1)} ({processor_name()}), {memory_bytes() / 2**30:.0f} GiB of memory"
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        return f"{properties.name} ({properties.total_memory / 2**30:.0f} GiB), {text}"
    return text
