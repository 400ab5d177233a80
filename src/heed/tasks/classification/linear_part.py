"""The linear part of a classifier: its estimation, its file, and what is printed about it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from heed.core.allocator import give_memory_back
from heed.core.progress import message
from heed.core.run_files import RunFiles
from heed.data.validation import read_valid
from heed.models.linear import LinearConfig, LinearNgrams
from heed.nn.contract import Vocabularies
from heed.nn.weight_file import read_weights, save_weights
from heed.tasks.classification.labels import Labels
from heed.tasks.classification.prepare import examples
from heed.tasks.classification.scores import METRICS_OF, scores_of

LINEAR = "linear.safetensors"
"""The linear part of a run with a neural one."""
HELD_OUT = "data/held_out.safetensors"
"""Outputs of the linear model for the validation rows before it was fitted on them too."""


def fit_linear(recipe: Any, folder: Path, quiet: bool) -> None:
    """Fit the linear part of a classifier, print its validation score, and write it into the run folder."""
    begin = time.perf_counter()
    give_memory_back()  # from the tokenizer
    labels, valid = Labels.read(RunFiles(folder)), read_valid(folder)
    model = LinearNgrams(LinearConfig(), Vocabularies(0, len(labels)))
    given = examples(recipe, labels, valid)
    model.estimate(given)
    save_weights(folder / LINEAR, model.state_dict(), {"counted": "true"})
    write_held_out(folder, model)
    probabilities = labels.link.probabilities(outputs_on_valid(folder, model, given.valid_texts)).tolist()
    scores = scores_of(labels.kind, [labels.answer(row) for row in probabilities], [row[-1] for row in valid], 1000)
    score = scores[METRICS_OF[labels.kind][0]]
    report_linear(model, time.perf_counter() - begin, f"{score.name} {score.numbers}", quiet)


def read_linear(folder: Path, num_labels: int) -> LinearNgrams | None:
    """The linear part of a run, if it has one."""
    if not RunFiles(folder).has(LINEAR):
        return None
    model = LinearNgrams(LinearConfig(), Vocabularies(0, num_labels))
    model.load_state_dict(read_weights(folder / LINEAR))
    return model


def write_held_out(folder: Path, model: LinearNgrams) -> None:
    """Keep the outputs for validation rows that the model has been fitted on since."""
    if model.held_out_outputs is not None:
        save_weights(folder / HELD_OUT, {"outputs": model.held_out_outputs}, {})


def outputs_on_valid(folder: Path, model: LinearNgrams, texts: Sequence[tuple[str, ...]]) -> Tensor:
    """Outputs [N, K] for the validation texts of a run, of the model before it was fitted on them."""
    if RunFiles(folder).has(HELD_OUT):
        return read_weights(folder / HELD_OUT)["outputs"]
    return model.logits(texts)


def report_linear(model: Any, seconds: float, score: str, quiet: bool) -> None:
    """Print what the linear model is, and its validation score."""
    facts = model.facts
    scaling = "Naive Bayes ratios" if facts["scaling"] == "naive_bayes" else "tf-idf"
    what = f"{facts['features']:,} n-grams, {scaling}, C = {facts['strength']:g}"
    again = "" if model.held_out_outputs is None else "; fitted again on all rows"
    message(f"linear model: {score} on validation ({what}; {seconds:.1f} s{again})", quiet)
