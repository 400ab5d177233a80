"""A run's weights on its validation data: the analysis that the report shows, and whether the model is usable.

The analysis is made once, when training ends, and saved as `validation.json`, from which the report can be rewritten.

A model is not usable yet if every score that has a limit (`Metric.usable_from`) is below it. Below BLEU 5 and chrF2 30
outputs rarely convey their source: sentences paired at random often reach chrF2 15 to 20. A language model is not
usable yet if its perplexity is hardly lower than that of the frequencies of tokens in the validation text itself.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from heed.core.environment import memory_bytes, num_cpus, processor_name
from heed.core.errors import HeedError
from heed.core.json_text import parse_json
from heed.evaluation.evaluation import Evaluation
from heed.metrics import METRICS
from heed.metrics.metric import Score
from heed.run import Run
from heed.tasks.prepare import read_valid
from heed.training.metrics_log import read_metrics

VALIDATION = "validation.json"
Event = Mapping[str, Any]

NEAR_UNIGRAM = 0.9
"""Perplexity relative to that of token frequencies from which a language model is not usable."""


def kept_validation(events: Sequence[Event]) -> Event | None:
    """The validation of the weights that were kept, the last one marked best."""
    best = [event for event in events if event["event"] == "validation" and event.get("best")]
    return best[-1] if best else None


def write_analysis(run: Run, step: int, quiet: bool = False) -> None:
    """Analyse the weights that were kept, those of update `step`, and save the result in the run folder."""
    analysis = {"step": step, **analyse(run, quiet)}
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


def usability(run: Run) -> str:
    """`BLEU 0.4 on validation: not usable yet`; empty for a usable run, or if nothing is known."""
    kept = kept_validation(read_metrics(run.folder))
    return usability_of(run, kept) if kept else ""


def usability_of(run: Run, scores: Mapping[str, Any]) -> str:
    """`usability` for given validation scores of the run, by metric."""
    limits = {name: metric.usable_from for name, metric in METRICS.items() if metric.usable_from is not None}
    limited = {name: scores[name] for name in limits if isinstance(scores.get(name), int | float)}
    if limited:
        poor = [METRICS[name].higher_is_better == (value < limits[name]) for name, value in limited.items()]
        name, value = next(iter(limited.items()))
        return f"{METRICS[name].title} {value:.1f} on validation: not usable yet" if all(poor) else ""
    perplexity = scores.get("perplexity")
    if not isinstance(perplexity, int | float) or (unigram := unigram_perplexity(run)) is None:
        return ""
    if perplexity < NEAR_UNIGRAM * unigram:
        return ""
    return (
        f"perplexity per token {perplexity:.1f} on validation, where token frequencies alone give {unigram:.1f}: "
        "not usable yet"
    )


def unigram_perplexity(run: Run) -> float | None:
    """Perplexity per token of the validation text by the frequencies of its own tokens; None without that text."""
    try:
        lines = [run.recipe.data.normaliser.apply(row[-1]) for row in read_valid(run.folder)]
    except HeedError:
        return None
    counts = Counter(id for ids in run.tokenizers["tgt"].encode(lines) for id in ids)
    counts[-1] = len(lines)  # the ends of lines
    total = sum(counts.values())
    return math.exp(-sum(count / total * math.log(count / total) for count in counts.values() if count))
