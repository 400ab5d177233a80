"""Known weaknesses of a model: sentences that follow from scores on validation data, and the tables behind them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from heed.report.markdown import table

MIN_SENTENCES = 10
"""Buckets with fewer sentences are not reported."""
MIN_LINES = 500
"""With fewer validation lines every score is uncertain."""
OFF_LENGTH = 0.05
"""Relative difference in length between outputs and references that is reported."""
MANY_LEAKED = 0.01
"""Share of validation lines in the training data from which they are reported."""
OVERFITTED = 1.5
"""Ratio of validation to training perplexity from which a model is overfitted."""
COMMON = 100
"""Minimum training frequency of the words that rare ones are compared with."""

Analysis = Mapping[str, Any]


def weaknesses(analysis: Analysis, validations: Sequence[Mapping[str, Any]], reason: str) -> str:
    """The section; empty without an analysis. `reason`: why the training ended."""
    if not analysis:
        return ""
    sentences = [
        *_unfinished(validations, reason),
        *_overfitting(validations),
        *_lengths(analysis),
        *_rare_words(analysis),
        *_length_ratio(analysis),
        *_flags(analysis),
        *_doubts(analysis),
    ]
    if not sentences and not analysis.get("by_length"):  # nothing was examined
        return ""
    lines = [f"- {sentence}" for sentence in sentences] or ["None visible in the scores on validation data."]
    parts = ["## Known weaknesses\n\nComputed from the validation data.\n\n" + "\n".join(lines)]
    parts += [_length_table(analysis), _frequency_table(analysis)]
    return "\n\n".join(part for part in parts if part)


def _unfinished(validations: Sequence[Mapping[str, Any]], reason: str) -> Iterator[str]:
    if len(validations) > 1 and validations[-1].get("best"):
        yield f"Training ended early ({reason}): the last validation was the best. Train longer."


def _overfitting(validations: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Language models validate on training text too."""
    kept = [event for event in validations if event.get("best")]
    training, validation = (kept[-1].get(name) if kept else None for name in ("training_perplexity", "perplexity"))
    if training and validation and validation > OVERFITTED * training:
        yield (
            f"Overfitting: perplexity per token is {training:.1f} on training text and {validation:.1f} on validation "
            "text. Use more text, more dropout or a smaller model."
        )


def _lengths(analysis: Analysis) -> Iterator[str]:
    """Buckets that are worse than the whole by more than chance."""
    whole = next((score["value"] for score in analysis["scores"] if score["name"] == "chrF2"), None)
    for bucket in analysis.get("by_length", ()):
        chrf = bucket["scores"]["chrf"]
        if whole is not None and bucket["num_sentences"] >= MIN_SENTENCES and chrf["high"] < whole:
            yield (
                f"Sentences of {bucket['label']} {bucket['unit']} ({bucket['num_sentences']:,} of "
                f"{analysis['num_lines']:,}) score chrF2 {chrf['value']:.1f} [{chrf['low']:.1f}, {chrf['high']:.1f}], "
                f"all sentences {whole:.1f}."
            )


def _rare_words(analysis: Analysis) -> Iterator[str]:
    bands = analysis.get("by_frequency", ())
    num_words = sum(band["num_reference"] for band in bands)
    kinds = [
        f"{frequency} ({band['num_reference']:,} of {num_words:,}): F1 {band['f1']:.2f}"
        for times, frequency in ((0, "never occur in training"), (1, "occur once"))
        for band in bands
        if band["rarest"] == times and band["num_reference"]
    ]
    common = [band for band in bands if band["rarest"] >= COMMON]
    if kinds and any(band["num_reference"] for band in common):
        kinds.append(f"occur {COMMON} times or more: F1 {_f1(common):.2f}")
    if kinds:
        yield f"Words that {'; that '.join(kinds)}."


def _f1(bands: Sequence[Mapping[str, int]]) -> float:
    num_right = sum(band["num_right"] for band in bands)
    return 2 * num_right / max(sum(band["num_output"] + band["num_reference"] for band in bands), 1)


def _length_ratio(analysis: Analysis) -> Iterator[str]:
    ratio = analysis.get("length_ratio")
    if ratio is not None and abs(ratio - 1) > OFF_LENGTH:
        how = "shorter" if ratio < 1 else "longer"
        yield f"Outputs are {how} than the references: {ratio:.2f} words per word of the references."


def _flags(analysis: Analysis) -> Iterator[str]:
    """Outputs that the output checks flagged, without looking at the references."""
    flagged = analysis.get("flagged", {})
    if flagged.get("num_lines"):
        count, lines = flagged["num_lines"], analysis["num_lines"]
        reasons = ", ".join(f"{reason} {times:,}" for reason, times in flagged["reasons"].items())
        yield (
            f"{count:,} of {lines:,} outputs ({100 * count / lines:.1f} %) failed the output checks ({reasons})."
            + f" The next best hypothesis replaced {flagged['num_replaced']:,}." * (flagged["num_replaced"] > 0)
        )


def _doubts(analysis: Analysis) -> Iterator[str]:
    """Reasons to doubt the scores themselves."""
    num_lines, leaked = analysis["num_lines"], analysis.get("leaked") or 0
    if num_lines < MIN_LINES:
        yield f"There are only {num_lines:,} validation lines, so all intervals are wide."
    if leaked > MANY_LEAKED * num_lines:
        yield (
            f"{leaked:,} of {num_lines:,} validation lines ({100 * leaked / num_lines:.1f} %) have a side that is also "
            "in the training data: the scores are higher than on unseen text."
        )


def _length_table(analysis: Analysis) -> str:
    buckets = analysis.get("by_length")
    if not buckets:
        return ""
    rows = [[f"source, {buckets[0]['unit']}", "lines", "BLEU", "chrF2"]]
    for bucket in buckets:
        scores = [_with_interval(bucket["scores"][name]) for name in ("bleu", "chrf")]
        rows.append([bucket["label"], f"{bucket['num_sentences']:,}", *scores])
    return "By length of the source:\n\n" + table(rows, right=[1, 2, 3])


def _with_interval(score: Mapping[str, Any]) -> str:
    interval = "" if score["low"] is None else f" [{score['low']:.1f}, {score['high']:.1f}]"
    return f"{score['value']:.1f}{interval}"


def _frequency_table(analysis: Analysis) -> str:
    rows = [
        [band["label"], f"{band['num_reference']:,}", f"{band['num_output']:,}", f"{band['num_right']:,}",
         f"{band['precision']:.2f}", f"{band['recall']:.2f}", f"{band['f1']:.2f}"]
        for band in analysis.get("by_frequency", ()) if band["num_reference"] or band["num_output"]
    ]  # fmt: skip
    head = ["times in training", "in references", "in output", "correct", "precision", "recall", "F1"]
    return "By frequency of words in the training data:\n\n" + table([head, *rows], right=range(1, 7)) if rows else ""
