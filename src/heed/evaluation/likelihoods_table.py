"""Table of evaluations of language models on one text."""

from __future__ import annotations

from collections.abc import Sequence

from heed.evaluation.evaluation import Evaluation
from heed.evaluation.likelihoods import differ_in_unknown
from heed.evaluation.table import Column, render_table, score_column
from heed.metrics.translation import has_blanks

PER_TOKEN, NOT_SHOWN = "perplexity per token", "perplexity per character"
"""The second says the same as bits per character, and is rarely reported."""
TOKENS = (
    "perplexity per token: the systems split the text into different tokens, so it cannot be compared between them.\n"
    "Compare perplexity per word or bits per byte, or train with one tokenizer (heed train --tokenizer-of RUN)."
)
UNKNOWN = (
    "unknown: words that a model predicts only as an unknown word, which takes few bits. Scores of systems with\n"
    "different numbers of them cannot be compared, and are not tested. Train the models with one tokenizer\n"
    "(heed train --tokenizer-of RUN), or with subwords or bytes, which have no unknown words."
)


def render_likelihoods(evaluations: Sequence[Evaluation]) -> str:
    """The evaluations of one test text: one score with its interval, and the same in other units."""
    first = "perplexity per word" if has_blanks(evaluations[0].test.sources) else "bits per character"
    others = [name for name in evaluations[0].scores if name not in (first, "perplexity per word", NOT_SHOWN)]
    table = [score_column(first, evaluations), *(score_column(name, evaluations, interval=False) for name in others)]
    if differ_in_unknown(evaluations):
        table.append(Column("unknown", lambda evaluation: _number(evaluation.how.get("unknown"))))
    table += [
        Column(
            "training, per token", lambda evaluation: _number(evaluation.how.get("training_perplexity")), None, True
        ),
        Column("parameters", lambda evaluation: _number(evaluation.how.get("parameters") or None), None, True),
        Column("reads", lambda evaluation: str(evaluation.how["reads"]).replace("context:", "")),
    ]
    return render_table(evaluations, table, _notes(evaluations), clean_scores=[first])


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.2f}"


def _notes(evaluations: Sequence[Evaluation]) -> list[str]:
    """Which scores cannot be compared."""
    num_tokens = {evaluation.scores[PER_TOKEN].signature.split("|")[1] for evaluation in evaluations}
    notes = [TOKENS] if len(num_tokens) > 1 else []
    return notes + [UNKNOWN] * differ_in_unknown(evaluations)
