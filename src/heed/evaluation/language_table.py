"""How do evaluations of language models look on a screen? A row for each system, and what stands below."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from heed.evaluation.scoring import Evaluation
from heed.evaluation.table import about_tests, columns, tested
from heed.metrics.translation import has_blanks

BY_WORDS, BY_CHARACTERS = "perplexity per word", "bits per character"
NOT_SHOWN = "perplexity per character"
"""Nobody compares it; bits per character say it too."""
TESTED = "bits per byte"
UNKNOWN = (
    "unknown: words of which a model says only that it does not know them, which takes few bits. Systems with other\n"
    "numbers of them are not comparable, and not tested."
)


def render_texts(evaluations: Sequence[Evaluation]) -> str:
    """The evaluations of one test text."""
    parts = [evaluations[0].test.label, _table(evaluations), _signatures(evaluations)]
    parts += [UNKNOWN] * _differ_in_unknown(evaluations)
    parts += [*about_tests(evaluations), "\n".join(_leakage(evaluations))]
    return "\n\n".join(part for part in parts if part)


def _table(evaluations: Sequence[Evaluation]) -> str:
    first = BY_WORDS if has_blanks(evaluations[0].test.sources) else BY_CHARACTERS
    others = [name for name in evaluations[0].scores if name not in (first, BY_WORDS, NOT_SHOWN)]
    measures = [first, *others]
    compared = any(evaluation.against_first for evaluation in evaluations)
    leaked = any(evaluation.without_leaked for evaluation in evaluations)
    differ = _differ_in_unknown(evaluations)
    tests = ["bits per byte against the first"] * compared + [f"{first} without trained lines"] * leaked
    heads = ["", *measures, *["unknown"] * differ, *tests, "training, per token", "parameters", "reads"]
    rows = [heads]
    for evaluation in evaluations:
        cells = [evaluation.scores[first].numbers, *(_value(evaluation, name) for name in others)]
        if differ:
            cells.append(f"{evaluation.how['unknown']:,}" if "unknown" in evaluation.how else "")
        if compared:
            cells.append(tested(TESTED, evaluation.against_first.get(TESTED)))
        if leaked:
            without = evaluation.without_leaked.get(first)
            cells.append(without.numbers.split(" ")[0] if without else "")
        rows.append([evaluation.system + " (synthetic data)" * evaluation.synthetic, *cells, *_facts(evaluation)])
    return columns(rows, right=[len(heads) - 3, len(heads) - 2])


def _value(evaluation: Evaluation, name: str) -> str:
    """Without the interval: it is the first measure in another unit."""
    return evaluation.scores[name].numbers.split(" ")[0]


def _differ_in_unknown(evaluations: Sequence[Evaluation]) -> bool:
    return len({evaluation.how["unknown"] for evaluation in evaluations if "unknown" in evaluation.how}) > 1


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
