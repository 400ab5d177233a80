"""What do the weights that were kept make of the validation data? Found once, when a training has ended.

It is kept as `validation.json`, so that the report can be written anew at any time.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch

from heed.core.environment import memory_bytes, num_cpus, processor_name
from heed.core.files import atomic_write, is_plain_file
from heed.core.progress import message
from heed.decoding.hypothesis import Hypothesis
from heed.evaluation.evaluation import INTERVALS, Evaluation
from heed.evaluation.likelihoods import evaluate_texts, read_by
from heed.evaluation.outputs import System, evaluate_outputs
from heed.evaluation.sentences import ranked, samples
from heed.evaluation.test_set import HeldOut
from heed.metrics.score import Score
from heed.metrics.scoring import score_likelihoods, sentence_scores
from heed.run import Run
from heed.tasks.generation import likelihood
from heed.tasks.prepare import read_valid

VALIDATION = "validation.json"


def write_analysis(run: Run, step: int, quiet: bool = False) -> None:
    """Look at the weights of an update, which were kept, and write down what was found."""
    found = {"step": step, **analyse(run, quiet)}
    with atomic_write(run.folder / VALIDATION, "w") as file:
        json.dump(found, file, ensure_ascii=False, indent=1)


def read_analysis(run: Run, step: int) -> dict[str, Any]:
    """What `write_analysis` wrote of the weights of this update; nothing where it is of others, or damaged."""
    path = run.folder / VALIDATION
    if not is_plain_file(path):
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        for score in found["scores"]:
            Score.from_json(score).render()
        return dict(found) if found["step"] == step and found["num_lines"] > 0 else {}
    except (ValueError, TypeError, LookupError, AttributeError):
        return {}


def analyse(run: Run, quiet: bool = False) -> dict[str, Any]:
    """Scores with intervals, by length and by frequency, samples; and of which model on which machine."""
    found = _translation(run, quiet) if run.predictor.can("translate") else _language_model(run)
    num_parameters = sum(parameter.numel() for parameter in run.model.parameters())
    return {**found, "num_parameters": num_parameters, "machine": machine(run.device)}


def _translation(run: Run, quiet: bool) -> dict[str, Any]:
    """With the search that a user of the run gets, where the validations of a training are greedy."""
    test, run = HeldOut(("source", "target"), read_valid(run.folder)), run.predictor.of_validation()
    options, tokenised = run.recipe.decoding, run.recipe.data.tokenised
    message(f"report: translating {len(test.rows):,} validation lines (beam {options.beam_size})", quiet)
    hypotheses = run.predictor.translator.translate(test.sources, options)
    outputs = [hypothesis.text for hypothesis in hypotheses]
    language = run.predictor.languages[1] or None
    [evaluation] = evaluate_outputs(test, [System("", outputs, run, options)], language, tokenised=tokenised)
    likelihoods = likelihood(run.predictor.translator, test.references, test.sources)
    perplexity = score_likelihoods(likelihoods, INTERVALS)["perplexity"]
    chrf = sentence_scores("chrf", outputs, test.references, language=language, tokenised=tokenised)
    picked = samples(ranked(test, outputs, chrf))
    return {
        **_measured(evaluation),
        "scores": [score.to_json() for score in (*evaluation.scores.values(), perplexity)],
        "flagged": _flagged(hypotheses),
        "samples": [
            {"kind": kind, "line": it.line, "chrf": it.chrf, "source": it.source, "output": it.output,
             "reference": it.reference} for kind, it in picked
        ],
    }  # fmt: skip


def _language_model(run: Run) -> dict[str, Any]:
    test = HeldOut(("text",), read_valid(run.folder))
    [evaluation] = evaluate_texts(test, [read_by(run, test, run.predictor.scorer())])
    return _measured(evaluation)


def _measured(evaluation: Evaluation) -> dict[str, Any]:
    found = evaluation.to_json()
    kept = ("search", "reads", "training_perplexity", "scores", "length_ratio", "by_length", "by_frequency")
    leaked = len(evaluation.leakage.lines) if evaluation.leakage and evaluation.leakage.num_compared else None
    return {"num_lines": len(evaluation.test.rows), "leaked": leaked, **{k: found[k] for k in kept if k in found}}


def _flagged(hypotheses: Sequence[Hypothesis]) -> dict[str, Any]:
    """How many outputs the guard doubts without a look at the reference, in how many it gave another, and why."""
    reasons = Counter(flag for hypothesis in hypotheses for flag in hypothesis.flags)
    return {
        "num_lines": sum(bool(hypothesis.flags) for hypothesis in hypotheses),
        "num_replaced": sum(hypothesis.fallback for hypothesis in hypotheses),
        "reasons": dict(reasons.most_common()),
    }


def machine(device: torch.device) -> str:
    """What computed: `2 CPU cores (Intel Xeon), 23 GiB of memory`."""
    cores = num_cpus()
    text = f"{cores} CPU core{'s' * (cores > 1)} ({processor_name()}), {memory_bytes() / 2**30:.0f} GiB of memory"
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        return f"{properties.name} ({properties.total_memory / 2**30:.0f} GiB), {text}"
    return text
