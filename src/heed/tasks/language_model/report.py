"""What a language model's report shows of its validation data: perplexities with intervals."""

from __future__ import annotations

from typing import Any

from heed.evaluation.likelihoods import evaluate_texts, read_by
from heed.evaluation.test_set import HeldOut
from heed.report.validation import measured
from heed.run import Run
from heed.tasks.prepare import read_valid


def analyse(run: Run) -> dict[str, Any]:
    """Evaluate the validation text as a whole, read as users' texts are."""
    test = HeldOut(("text",), read_valid(run.folder))
    [evaluation] = evaluate_texts(test, [read_by(run, test, run.predictor.scorer())])
    return measured(evaluation)
