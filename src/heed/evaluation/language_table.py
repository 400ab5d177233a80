"""How do evaluations of language models look on a screen? A row for each system, and what stands below."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from heed.evaluation.scoring import Evaluation
from heed.evaluation.table import SIGNIFICANCE, columns, tested

WITH_INTERVAL = "perplexity per word"
"""The other measures are the same number in another unit."""
NOT_SHOWN = "perplexity per character"
"""Nobody compares it; bits per character say it too."""


def render_texts(evaluations: Sequence[Evaluation]) -> str:
    """The evaluations of one test text."""
    parts = [evaluations[0].test.label, _table(evaluations), _signatures(evaluations)]
    if any(evaluation.against_first for evaluation in evaluations):
        parts.append(SIGNIFICANCE)
    parts.append("\n".join(_leakage(evaluations)))
    return "\n\n".join(part for part in parts if part)


def _table(evaluations: Sequence[Evaluation]) -> str:
    measures = [WITH_INTERVAL, *(name for name in evaluations[0].scores if name not in (WITH_INTERVAL, NOT_SHOWN))]
    compared = any(evaluation.against_first for evaluation in evaluations)
    leaked = any(evaluation.without_leaked for evaluation in evaluations)
    others = ["against the first"] * compared + ["without trained lines"] * leaked
    heads = ["", *measures, *others, "training", "parameters", "reads"]
    rows = [heads]
    for evaluation in evaluations:
        cells = [_cell(evaluation, name) for name in measures]
        if compared:
            cells.append(tested("bits per byte", evaluation.against_first.get("bits per byte")))
        if leaked:
            without = evaluation.without_leaked.get(WITH_INTERVAL)
            cells.append(without.numbers.split(" ")[0] if without else "")
        rows.append([evaluation.system + " (synthetic data)" * evaluation.synthetic, *cells, *_facts(evaluation)])
    return columns(rows, right=[len(heads) - 3, len(heads) - 2])


def _cell(evaluation: Evaluation, name: str) -> str:
    numbers = evaluation.scores[name].numbers
    return numbers if name == WITH_INTERVAL else numbers.split(" ")[0]


def _facts(evaluation: Evaluation) -> list[str]:
    """Perplexity per token of the training text, parameters, and what the model knows before each token."""
    training, parameters = (evaluation.how.get(name) for name in ("training_perplexity", "parameters"))
    return [
        f"{training:.2f}" if training is not None else "",
        f"{parameters:,}" if parameters else "",
        str(evaluation.how["reads"]).replace("context:", ""),
    ]


def _signatures(evaluations: Sequence[Evaluation]) -> str:
    """Each once, but for how a model reads, which the table says."""
    found = [
        (score.name, score.signature.replace(f"|{evaluation.how['reads']}", ""))
        for scores in zip(*([(e, s) for s in e.scores.values()] for e in evaluations), strict=True)
        for evaluation, score in scores
    ]
    return columns([list(pair) for pair in dict.fromkeys(found)])


def _leakage(evaluations: Sequence[Evaluation]) -> Iterator[str]:
    """What runs have met of the text; those that have met the same are told together."""
    met: dict[str, list[str]] = {}
    for evaluation in evaluations:
        if evaluation.run is not None:
            found = evaluation.leakage
            told = found.render("{}") if found else "not checked, there is no fingerprint of what {} was trained on"
            met.setdefault(told, []).append(evaluation.system)
    for told, systems in met.items():
        yield f"leakage: {told.format(', '.join(systems))}"
    if any(e.leakage and e.leakage.lines for e in evaluations) and not any(e.without_leaked for e in evaluations):
        yield "No line is left that was not trained on: these scores say nothing."
