"""Tables of evaluations for a terminal: one row for each system, followed by signatures, tests and leakage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from heed.evaluation.evaluation import Evaluation
from heed.metrics.significance import BOOTSTRAP_DRAWS, FEWEST_ROWS, RANDOMISATION_DRAWS, Comparison

SIGNIFICANCE = (
    "p: the probability of a difference this large by chance alone, by paired bootstrap (Koehn 2004,\n"
    f"{BOOTSTRAP_DRAWS:,} draws) / approximate randomisation (Riezler & Maxwell 2005, {RANDOMISATION_DRAWS:,} draws).\n"
    "One in twenty comparisons of equal systems has p < 0.05; by bootstrap, with fewer than 100 lines, up to two."
)
FEW = (
    f"Fewer than {FEWEST_ROWS} lines or blocks of lines: intervals are too narrow, and there is no bootstrap test (-)."
)


@dataclass(frozen=True)
class Column:
    """One column of the table."""

    head: str
    cell: Callable[[Evaluation], str]
    test: Callable[[Evaluation], str] | None = None
    """The cell below it, in the row that compares a system with the first."""
    flush_right: bool = False


def render_table(
    evaluations: Sequence[Evaluation],
    table: Sequence[Column],
    sections: Sequence[str] = (),
    clean_scores: Sequence[str] | None = None,
) -> str:
    """The evaluations of one test set: their table, and further sections of text.

    `clean_scores` names the scores to show for the lines that no run was trained on; None: all.
    """
    parts = [evaluations[0].test.label, _scores(evaluations, table), _signatures(evaluations)]
    parts += [*_about_tests(evaluations), _leakage(evaluations, clean_scores), *sections]
    return "\n\n".join(part for part in parts if part)


def score_column(name: str, evaluations: Sequence[Evaluation], interval: bool = True) -> Column:
    """The column of one score, with or without its interval, and with its tests."""

    def cell(evaluation: Evaluation) -> str:
        numbers = evaluation.scores[name].numbers
        return numbers if interval else numbers.partition(" ")[0]

    def test(evaluation: Evaluation) -> str:
        return tested(name, evaluation.against_first.get(name))

    return Column(evaluations[0].scores[name].name, cell, test)


def columns(rows: Sequence[Sequence[str]], right: Iterable[int] = ()) -> str:
    """Rows of cells in aligned columns, the first row being the heads; the columns `right` are flush right."""
    flush_right = set(right)
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if place in flush_right else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _scores(evaluations: Sequence[Evaluation], table: Sequence[Column]) -> str:
    rows = [["", *(column.head for column in table)]]
    for evaluation in evaluations:
        rows.append([_name(evaluation), *(column.cell(evaluation) for column in table)])
        if evaluation.against_first:
            tests = [column.test(evaluation) if column.test else "" for column in table]
            rows.append(["  against the first", *tests])
    return columns(rows, right=[place for place, column in enumerate(table, start=1) if column.flush_right])


def _name(evaluation: Evaluation) -> str:
    tag = evaluation.how.get("tag")
    return evaluation.system + (f" <{tag}>" if tag else "") + (" (synthetic data)" if evaluation.synthetic else "")


def tested(name: str, comparison: Comparison | None) -> str:
    """The difference from the first system with the p-values of both tests; empty for the first itself."""
    if comparison is None:
        return ""
    decimals = 3 if " per " in name else 2
    p_values = [_probability(p) for p in (comparison.p_bootstrap, comparison.p_randomisation)]
    return f"{comparison.difference:+.{decimals}f} p {' / '.join(p_values)}"


def _probability(p: float | None) -> str:
    """Three decimals, or the first non-zero one; a dash if there is no p-value."""
    return "-" if p is None else f"{p:.3f}" if p >= 0.0005 else f"{p:.1g}"


def _about_tests(evaluations: Sequence[Evaluation]) -> list[str]:
    """What the p-values are, and whether there are too few lines."""
    notes = [SIGNIFICANCE] if any(evaluation.against_first for evaluation in evaluations) else []
    return notes + [FEW] * (0 < evaluations[0].num_rows < FEWEST_ROWS)


def _signatures(evaluations: Sequence[Evaluation]) -> str:
    """The signatures of each score; where they differ, with the systems that have them."""
    rows = []
    for name in evaluations[0].scores:
        systems: dict[str, list[str]] = {}
        for evaluation in evaluations:
            reads = evaluation.how.get("reads")  # a column of the table
            signature = evaluation.scores[name].signature.replace(f"|{reads}", "")
            systems.setdefault(signature, []).append(evaluation.system)
        title = evaluations[0].scores[name].name
        rows += [[title, text, ", ".join(names) if len(systems) > 1 else ""] for text, names in systems.items()]
    return columns(rows)


def _leakage(evaluations: Sequence[Evaluation], names: Sequence[str] | None) -> str:
    """The leakage of each run, and the scores without the lines that a run was trained on."""
    unit = evaluations[0].test.unit
    systems: dict[str, list[str]] = {}
    for evaluation in evaluations:
        leakage = evaluation.leakage
        if leakage or evaluation.run is not None:
            unchecked = "not checked, there is no fingerprint of the training data of {}"
            systems.setdefault(leakage.render("{}", unit) if leakage else unchecked, []).append(evaluation.system)
    lines = [f"leakage: {text.format(', '.join(of))}" for text, of in systems.items()]
    clean = [evaluation for evaluation in evaluations if evaluation.without_leaked]
    if clean:
        shown = clean[0].without_leaked if names is None else names
        heads = [f"without those {unit}s", *(clean[0].without_leaked[name].name for name in shown)]
        rows = [[_name(each), *(each.without_leaked[name].numbers for name in shown)] for each in clean]
        lines.append("\n" + columns([heads, *rows]))
    elif any(evaluation.leakage and evaluation.leakage.lines for evaluation in evaluations):
        lines.append(f"Every {unit} was trained on: these scores say nothing about new text.")
    return "\n".join(lines)
