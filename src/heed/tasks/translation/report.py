"""Validation section of a translation report: scores with the recipe's search, flagged outputs and samples."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import torch

from heed.core.progress import message
from heed.data.validation import read_valid
from heed.decoding.hypothesis import Hypothesis
from heed.evaluation.evaluation import INTERVALS
from heed.evaluation.outputs import System, composed, evaluate_outputs, ranked, samples
from heed.evaluation.test_set import HeldOut
from heed.metrics import score_likelihoods, sentence_scores
from heed.report.validation import measured
from heed.run import Run
from heed.tasks.generation import likelihood


def analyse(run: Run, quiet: bool) -> dict[str, Any]:
    """Evaluate with the recipe's search; validations during training are greedy."""
    test, run = HeldOut(("source", "target"), read_valid(run.folder)), run.predictor.of_validation()
    options, tokenised = run.recipe.decoding, run.recipe.data.tokenised
    message(f"report: translating {len(test.rows):,} validation lines (beam {options.beam_size})", quiet)
    run.num_workers = torch.get_num_threads()  # no more than the training
    hypotheses = run.predictor.line_translator(with_tokens=False).translate(test.sources, options)
    outputs = [hypothesis.text for hypothesis in hypotheses]
    language = run.predictor.languages[1] or None
    [evaluation] = evaluate_outputs(test, [System("", outputs, run, options)], language, tokenised=tokenised)
    scores = [*evaluation.scores.values()]
    if run.predictor.can("score"):
        likelihoods = likelihood(run.predictor.translator, test.references, test.sources)
        scores.append(score_likelihoods(likelihoods, INTERVALS)["perplexity"])
    written, references = (list(map(composed, texts)) for texts in (outputs, test.references))
    chrf = sentence_scores("chrf", written, references, language=language, tokenised=tokenised)
    return {
        **measured(evaluation),
        "scores": [score.to_json() for score in scores],
        "flagged": _flagged(hypotheses),
        "samples": [
            {"kind": kind, "line": it.line, "chrf": it.chrf, "source": it.source, "output": it.output,
             "reference": it.reference} for kind, it in samples(ranked(test, outputs, chrf))
        ],
    }  # fmt: skip


def _flagged(hypotheses: Sequence[Hypothesis]) -> dict[str, Any]:
    """Number of outputs that the checks flagged and replaced, and the reasons."""
    reasons = Counter(flag for hypothesis in hypotheses for flag in hypothesis.flags)
    return {
        "num_lines": sum(bool(hypothesis.flags) for hypothesis in hypotheses),
        "num_replaced": sum(hypothesis.fallback for hypothesis in hypotheses),
        "reasons": dict(reasons.most_common()),
    }
