"""Tables of evaluations of outputs: scores, and the analysis by source length and word frequency."""

from __future__ import annotations

from collections.abc import Sequence

from heed.evaluation.evaluation import Evaluation
from heed.evaluation.table import Column, columns, render_table, score_column


def render_outputs(evaluations: Sequence[Evaluation], analysis: bool = False) -> str:
    """The evaluations of one test set; `analysis` adds tables by length of the source and by frequency of words."""
    table = [score_column(name, evaluations) for name in evaluations[0].scores]
    if evaluations[0].length_ratio is not None:
        table.append(Column("length", lambda evaluation: f"{evaluation.length_ratio:.3f}"))
    sections = [_by_length(evaluations), _by_frequency(evaluations), _unigram_f1(evaluations)] if analysis else []
    sections += [_worst(evaluation) for evaluation in evaluations if evaluation.worst]
    return render_table(evaluations, table, sections)


def _by_length(evaluations: Sequence[Evaluation]) -> str:
    """A row for each bucket and system; all systems have the same buckets."""
    rows = []
    for buckets in zip(*(evaluation.by_length for evaluation in evaluations), strict=True):
        for place, (evaluation, bucket) in enumerate(zip(evaluations, buckets, strict=True)):
            begins = ["", ""] if place else [bucket.label, f"{bucket.num_sentences:,}"]
            rows.append([*begins, evaluation.system, *(score.numbers for score in bucket.scores.values())])
    if not rows:
        return ""
    first = evaluations[0].by_length[0]
    number = f"{evaluations[0].test.unit}s"
    heads = [f"source, {first.unit}", number, "", *(score.name for score in first.scores.values())]
    return columns([heads, *rows], right=[1])


def _by_frequency(evaluations: Sequence[Evaluation]) -> str:
    """How well each system produces the words of each frequency band that is not empty."""
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
    """The table of Sennrich et al. (2016): a column for each kind of word, with its count in the references."""
    known = [evaluation for evaluation in evaluations if evaluation.unigram_f1]
    if not known:
        return ""
    heads = [f"{kind} words ({it.num_reference:,})" for kind, it in known[0].unigram_f1.items()]
    rows = [[it.system, *(f"{matches.f1:.3f}" for matches in it.unigram_f1.values())] for it in known]
    return columns([["unigram F1", *heads], *rows], right=range(1, len(heads) + 1)) + "\n" + known[0].words_as


def _worst(evaluation: Evaluation) -> str:
    lines = [f"worst {evaluation.test.unit}s of {evaluation.system} by chrF2"]
    for sentence in evaluation.worst:
        lines += [
            f"  {evaluation.test.unit} {sentence.line:,}, chrF2 {sentence.chrf:.2f}",
            f"    source     {sentence.source}",
            f"    output     {sentence.output}",
            f"    reference  {sentence.reference}",
        ]
        if sentence.links:
            lines.append(f"    links      {sentence.links}")
    return "\n".join(lines)
