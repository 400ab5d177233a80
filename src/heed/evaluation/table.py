"""How do evaluations look on a screen? One table for a test set, and what stands below it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from heed.evaluation.scoring import Evaluation
from heed.metrics.significance import BOOTSTRAP_DRAWS, FEWEST_ROWS, RANDOMISATION_DRAWS, Comparison

SIGNIFICANCE = (
    "p: how likely so large a difference is by chance alone, by paired bootstrap (Koehn 2004,\n"
    f"{BOOTSTRAP_DRAWS:,} draws) / approximate randomisation (Riezler & Maxwell 2005, {RANDOMISATION_DRAWS:,} draws).\n"
    "Of twenty comparisons of equal systems one has p < 0.05; of fewer than 100 lines by bootstrap up to two."
)
FEW = f"Fewer than {FEWEST_ROWS} lines or blocks of lines: intervals are too narrow, and a bootstrap is no test (-)."


def render(evaluations: Sequence[Evaluation], analysis: bool = False) -> str:
    """The evaluations of one test set; with `analysis` also by length of the source and by frequency of words."""
    parts = [evaluations[0].test.label, _scores(evaluations), _signatures(evaluations)]
    parts += [*about_tests(evaluations), _leakage(evaluations)]
    if analysis:
        parts += [_by_length(evaluations), _by_frequency(evaluations), _unigram_f1(evaluations)]
    parts += [_worst(evaluation) for evaluation in evaluations if evaluation.worst]
    return "\n\n".join(part for part in parts if part)


def columns(rows: Sequence[Sequence[str]], right: Iterable[int] = ()) -> str:
    """Rows of cells in columns, the first row being the heads; the columns `right` are flush right."""
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


def _scores(evaluations: Sequence[Evaluation]) -> str:
    names = list(evaluations[0].scores)
    has_length = evaluations[0].length_ratio is not None
    heads = ["", *(score.name for score in evaluations[0].scores.values()), *(["length"] * has_length)]
    rows = [heads]
    for evaluation in evaluations:
        length = [f"{evaluation.length_ratio:.3f}"] if evaluation.length_ratio is not None else []
        rows.append([_name(evaluation), *(score.numbers for score in evaluation.scores.values()), *length])
        if evaluation.against_first:
            tests = [tested(name, evaluation.against_first.get(name)) for name in names]
            rows.append(["  against the first", *tests, *([""] * has_length)])
    return columns(rows)


def _name(evaluation: Evaluation) -> str:
    tag = evaluation.how.get("tag")
    return evaluation.system + (f" <{tag}>" if tag else "") + (" (synthetic data)" if evaluation.synthetic else "")


def tested(name: str, comparison: Comparison | None) -> str:
    """A difference to the first system with the p of both tests; empty for the first itself."""
    if comparison is None:
        return ""
    decimals = 3 if " per " in name else 2
    p_values = [_probability(p) for p in (comparison.p_bootstrap, comparison.p_randomisation)]
    return f"{comparison.difference:+.{decimals}f} p {' / '.join(p_values)}"


def _probability(p: float | None) -> str:
    """Three decimals, or the first one that is not 0; a dash where there is none."""
    return "-" if p is None else f"{p:.3f}" if p >= 0.0005 else f"{p:.1g}"


def about_tests(evaluations: Sequence[Evaluation]) -> list[str]:
    """What the p of a table are, and whether there are too few lines for some."""
    told = [SIGNIFICANCE] if any(evaluation.against_first for evaluation in evaluations) else []
    return told + [FEW] * (0 < evaluations[0].num_rows < FEWEST_ROWS)


def _signatures(evaluations: Sequence[Evaluation]) -> str:
    """Each once."""
    scores = [score for found in zip(*(e.scores.values() for e in evaluations), strict=True) for score in found]
    return columns([list(pair) for pair in dict.fromkeys((score.name, score.signature) for score in scores)])


def _leakage(evaluations: Sequence[Evaluation]) -> str:
    """What is known of each run, and the scores without the lines that a run was trained on."""
    lines = []
    for evaluation in evaluations:
        if evaluation.leakage is not None:
            lines.append(f"leakage: {evaluation.leakage.render(evaluation.system, evaluation.test.counted)}")
        elif evaluation.run is not None:
            lines.append(f"leakage: not checked, {evaluation.system} has no fingerprint of what it was trained on")
    without = [evaluation for evaluation in evaluations if evaluation.without_leaked]
    if without:
        those = f"without those {without[0].test.counted}s"
        heads = [those, *(score.name for score in without[0].without_leaked.values())]
        rows = [[_name(found), *(score.numbers for score in found.without_leaked.values())] for found in without]
        lines.append("\n" + columns([heads, *rows]))
    elif any(evaluation.leakage and evaluation.leakage.lines for evaluation in evaluations):
        counted = evaluations[0].test.counted
        lines.append(f"No {counted} is left that was not trained on: these scores say nothing.")
    return "\n".join(lines)


def _by_length(evaluations: Sequence[Evaluation]) -> str:
    """Buckets are the same for all systems: a row for each bucket and system."""
    rows = []
    for buckets in zip(*(evaluation.by_length for evaluation in evaluations), strict=True):
        for place, (evaluation, bucket) in enumerate(zip(evaluations, buckets, strict=True)):
            begins = ["", ""] if place else [bucket.label, f"{bucket.num_sentences:,}"]
            rows.append([*begins, evaluation.system, *(score.numbers for score in bucket.scores.values())])
    if not rows:
        return ""
    first = evaluations[0].by_length[0]
    number = f"{evaluations[0].test.counted}s"
    heads = [f"source, {first.unit}", number, "", *(score.name for score in first.scores.values())]
    return columns([heads, *rows], right=[1])


def _by_frequency(evaluations: Sequence[Evaluation]) -> str:
    """How well each system produces the words of each band that is not empty."""
    known = next((evaluation.words_of for evaluation in evaluations if evaluation.by_frequency), "")
    of_run = f" of {known}" if known and len(evaluations) > 1 else ""
    rows = [["word in training" + of_run, "", "in references", "in output", "right", "precision", "recall", "F1"]]
    for bands in zip(*(evaluation.by_frequency for evaluation in evaluations), strict=True):
        if not any(band.num_reference + band.num_output for band in bands):
            continue
        for place, (evaluation, band) in enumerate(zip(evaluations, bands, strict=True)):
            counts = [f"{count:,}" for count in (band.num_reference, band.num_output, band.num_right)]
            shares = [f"{share:.3f}" for share in (band.precision, band.recall, band.f1)]
            rows.append(["" if place else band.label, evaluation.system, *counts, *shares])
    return columns(rows, right=range(2, 8)) if rows[1:] else ""


def _unigram_f1(evaluations: Sequence[Evaluation]) -> str:
    """The table of Sennrich et al. (2016): a column for each kind of word, with how many the references have."""
    known = [evaluation for evaluation in evaluations if evaluation.unigram_f1]
    if not known:
        return ""
    heads = [f"{kind} words ({it.num_reference:,})" for kind, it in known[0].unigram_f1.items()]
    rows = [[it.system, *(f"{matches.f1:.3f}" for matches in it.unigram_f1.values())] for it in known]
    return columns([["unigram F1", *heads], *rows], right=range(1, len(heads) + 1)) + "\n" + known[0].words_as


def _worst(evaluation: Evaluation) -> str:
    lines = [f"worst {evaluation.test.counted}s of {evaluation.system} by chrF2"]
    for sentence in evaluation.worst:
        lines += [
            f"  {evaluation.test.counted} {sentence.line:,}, chrF2 {sentence.chrf:.2f}",
            f"    source     {sentence.source}",
            f"    output     {sentence.output}",
            f"    reference  {sentence.reference}",
        ]
        if sentence.links:
            lines.append(f"    links      {sentence.links}")
    return "\n".join(lines)
