"""Tables of evaluations for a terminal: one row for each system, followed by signatures, tests and leakage.

The columns depend on what was evaluated: outputs with references, or the likelihood of a text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from heed.evaluation.evaluation import Evaluation, all_leaked, differ_in_unknown
from heed.metrics.significance import BOOTSTRAP_DRAWS, FEWEST_ROWS, RANDOMISATION_DRAWS, Comparison
from heed.metrics.translation import has_blanks

SIGNIFICANCE = (
    "p: the probability of a difference this large by chance alone, by paired bootstrap (Koehn 2004,\n"
    f"{BOOTSTRAP_DRAWS:,} draws) / approximate randomisation (Riezler & Maxwell 2005, {RANDOMISATION_DRAWS:,} draws).\n"
    "One in twenty comparisons of equal systems has p < 0.05; by bootstrap, with fewer than 100 lines, up to two."
)
FEW = (
    f"Fewer than {FEWEST_ROWS} lines or blocks of lines: intervals are too narrow, and there is no bootstrap test (-)."
)
PER_WORD, PER_TOKEN, PER_CHARACTER = "perplexity per word", "perplexity per token", "perplexity per character"
TOKENS = (
    "perplexity per token: the systems split the text into different tokens, so it cannot be compared between them.\n"
    "Compare perplexity per word or bits per byte, or train with one tokenizer (heed train --tokenizer-of RUN)."
)
UNKNOWN = (
    "unknown: words that a model predicts only as an unknown word, which takes few bits. Scores of systems with\n"
    "different numbers of them cannot be compared, and are not tested. Train the models with one tokenizer\n"
    "(heed train --tokenizer-of RUN), or with subwords or bytes, which have no unknown words."
)


@dataclass(frozen=True)
class Column:
    """One column of the table."""

    head: str
    cell: Callable[[Evaluation], str]
    test: Callable[[Evaluation], str] | None = None
    """The cell below it, in the row that compares a system with the first."""
    right: bool = False
    """Whether the column is aligned to the right."""


def render_table(evaluations: Sequence[Evaluation], analysis: bool = False) -> str:
    """The evaluations of one test set; `analysis` adds tables by length of the source and by frequency of words."""
    first = evaluations[0]
    if "reads" in first.how:
        shown = [PER_WORD if has_blanks(first.test.sources) else "bits per character"]
        table, sections = _text_columns(evaluations, shown[0]), _text_notes(evaluations)
    else:
        shown = list(first.scores)
        table = [_score_column(name, first) for name in shown]
        if first.length_ratio is not None:
            table.append(Column("length", lambda evaluation: f"{evaluation.length_ratio:.3f}"))
        sections = [_by_length(evaluations), _by_frequency(evaluations), _unigram_f1(evaluations)] if analysis else []
        sections.append(_by_label(evaluations))
        sections += [_worst(evaluation) for evaluation in evaluations if evaluation.worst]
    parts = [first.test.label, _scores(evaluations, table), _signatures(evaluations)]
    parts += [SIGNIFICANCE] if any(evaluation.against_first for evaluation in evaluations) else []
    parts += [FEW] if 1 < first.num_rows < FEWEST_ROWS else []
    parts += [_leakage(evaluations, shown), *sections]
    return "\n\n".join(part for part in parts if part)


MOST_LABELS = 30
"""Labels that the table by label shows, the most frequent ones."""


def _by_label(evaluations: Sequence[Evaluation]) -> str:
    """Precision, recall and F1 of each label or type of spans, and the most frequent errors; may be empty."""
    if not evaluations[0].by_label:
        return ""
    many = len(evaluations) > 1
    rows = [["label", *["system"] * many, "precision", "recall", "F1", "number"]]
    labels = [scores["label"] for scores in sorted(evaluations[0].by_label, key=lambda scores: -scores["number"])]
    for label in labels[:MOST_LABELS]:
        for evaluation in evaluations:
            for scores in (each for each in evaluation.by_label if each["label"] == label):
                rates = [f"{scores[name]:.2f}" for name in ("precision", "recall", "f1")]
                rows.append([label or "-", *[evaluation.system] * many, *rates, f"{scores['number']:,}"])
    return "\n".join([columns(rows, right=range(1 + many, 5 + many)), *filter(None, map(_errors, evaluations))])


def _errors(evaluation: Evaluation) -> str:
    errors = [f"{true} → {given} {number:,}" for true, given, number in evaluation.confusions[:5]]
    return f"most frequent errors of {evaluation.system} (true → given): {', '.join(errors)}" if errors else ""


def _text_columns(evaluations: Sequence[Evaluation], main: str) -> list[Column]:
    """One score with its interval, the same in other units, and how each system was trained and reads."""
    first = evaluations[0]
    # Perplexity per character is equivalent to bits per character, and rarely reported.
    others = [name for name in first.scores if name not in (main, PER_WORD, PER_CHARACTER)]
    table = [_score_column(main, first), *(_score_column(name, first, with_interval=False) for name in others)]
    if differ_in_unknown(evaluations):
        table.append(Column("unknown", lambda evaluation: _number(evaluation.how.get("unknown"))))
    perplexity, parameters = "training_perplexity", "parameters"
    return [
        *table,
        Column("training, per token", lambda evaluation: _number(evaluation.how.get(perplexity)), right=True),
        Column("parameters", lambda evaluation: _number(evaluation.how.get(parameters) or None), right=True),
        Column("reads", lambda evaluation: str(evaluation.how["reads"]).replace("context:", "")),
    ]


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.2f}"


def _text_notes(evaluations: Sequence[Evaluation]) -> list[str]:
    """Notes on scores that cannot be compared."""
    num_tokens = {evaluation.scores[PER_TOKEN].signature.split("|")[1] for evaluation in evaluations}
    return [TOKENS] * (len(num_tokens) > 1) + [UNKNOWN] * differ_in_unknown(evaluations)


def _score_column(name: str, first: Evaluation, with_interval: bool = True) -> Column:
    """The column of one score and its tests."""

    def cell(evaluation: Evaluation) -> str:
        numbers = evaluation.scores[name].numbers
        return numbers if with_interval else numbers.partition(" ")[0]

    def test(evaluation: Evaluation) -> str:
        return _tested(name, evaluation.against_first.get(name))

    return Column(first.scores[name].name, cell, test)


def _tested(name: str, comparison: Comparison | None) -> str:
    """The difference from the first system with the p-values of both tests; empty for the first itself."""
    if comparison is None:
        return ""
    decimals = 3 if " per " in name else 2
    p_values = [probability(p) for p in (comparison.p_bootstrap, comparison.p_randomisation)]
    return f"{comparison.difference:+.{decimals}f} p {' / '.join(p_values)}"


def probability(p: float | None) -> str:
    """Three decimals, or the first non-zero one; a dash if there is no p-value."""
    return "-" if p is None else f"{p:.3f}" if p >= 0.0005 else f"{p:.1g}"


def columns(rows: Sequence[Sequence[str]], right: Iterable[int] = ()) -> str:
    """Rows of cells in aligned columns; the first row is the header, the columns `right` are aligned to the right."""
    aligned_right = set(right)
    widths = [max(cell_len(row[place]) for row in rows) for place in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            _padded(cell, width, place in aligned_right)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def _padded(cell: str, width: int, right: bool) -> str:
    """A cell with blanks up to a width on a terminal, where some characters take two columns, and marks none."""
    blanks = " " * (width - cell_len(cell))
    return blanks + cell if right else cell + blanks


def _scores(evaluations: Sequence[Evaluation], table: Sequence[Column]) -> str:
    rows = [["", *(column.head for column in table)]]
    for evaluation in evaluations:
        rows.append([_name(evaluation), *(column.cell(evaluation) for column in table)])
        if evaluation.against_first:
            tests = [column.test(evaluation) if column.test else "" for column in table]
            rows.append(["  against the first", *tests])
    return columns(rows, right=[place for place, column in enumerate(table, start=1) if column.right])


def _name(evaluation: Evaluation) -> str:
    tag = evaluation.how.get("tag")
    return evaluation.system + (f" <{tag}>" if tag else "") + (" (synthetic data)" if evaluation.synthetic else "")


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


def _leakage(evaluations: Sequence[Evaluation], names: Sequence[str]) -> str:
    """The leakage of each run, and these scores on the lines that no run was trained on."""
    first = evaluations[0]
    unit = first.test.unit
    systems: dict[str, list[str]] = {}
    for evaluation in evaluations:
        leakage = evaluation.leakage
        if leakage or (evaluation.run is not None and "vectors" not in evaluation.how):
            unchecked = "not checked, there is no fingerprint of the training data of {}"
            systems.setdefault(leakage.render("{}", unit) if leakage else unchecked, []).append(evaluation.system)
    lines = [f"leakage: {text.format(', '.join(of))}" for text, of in systems.items()]
    clean = [evaluation for evaluation in evaluations if evaluation.without_leaked]
    if clean:
        heads = [f"without those {unit}s", *(clean[0].without_leaked[name].name for name in names)]
        rows = [[_name(each), *(each.without_leaked[name].numbers for name in names)] for each in clean]
        lines.append("\n" + columns([heads, *rows]))
    elif all_leaked(evaluations):
        lines.append(f"Every {unit} that was compared was trained on: these scores say nothing about new text.")
    return "\n".join(lines)


def _by_length(evaluations: Sequence[Evaluation]) -> str:
    """A row for each bucket and system; all systems have the same buckets."""
    rows = []
    for buckets in zip(*(evaluation.by_length for evaluation in evaluations), strict=True):
        for place, (evaluation, bucket) in enumerate(zip(evaluations, buckets, strict=True)):
            label = ["", ""] if place else [bucket.label, f"{bucket.num_sentences:,}"]
            rows.append([*label, evaluation.system, *(score.numbers for score in bucket.scores.values())])
    if not rows:
        return ""
    first = evaluations[0].by_length[0]
    number = f"{evaluations[0].test.unit}s"
    heads = [f"source, {first.unit}", number, "", *(score.name for score in first.scores.values())]
    return columns([heads, *rows], right=[1])


def _by_frequency(evaluations: Sequence[Evaluation]) -> str:
    """F1 of each system on the words of each non-empty frequency band."""
    words_of = next((evaluation.words_of for evaluation in evaluations if evaluation.by_frequency), "")
    of_run = f" of {words_of}" if words_of and len(evaluations) > 1 else ""
    rows = [["word in training" + of_run, "", "in references", "in output", "correct", "precision", "recall", "F1"]]
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
    counted = [evaluation for evaluation in evaluations if evaluation.unigram_f1]
    if not counted:
        return ""
    heads = [f"{kind} words ({it.num_reference:,})" for kind, it in counted[0].unigram_f1.items()]
    rows = [[it.system, *(f"{matches.f1:.3f}" for matches in it.unigram_f1.values())] for it in counted]
    return columns([["unigram F1", *heads], *rows], right=range(1, len(heads) + 1)) + "\n" + counted[0].words_as


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
