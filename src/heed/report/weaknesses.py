"""Where is the model weak? Sentences that follow from numbers on validation data, and the tables behind them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from heed.report.markdown import table

FEW_SENTENCES = 10
"""A bucket with fewer sentences says nothing."""
FEW_LINES = 500
"""With fewer validation lines every number is uncertain."""
OFF_LENGTH = 0.05
"""How far the length of the outputs may be from that of the references, as a share."""
MANY_LEAKED = 0.01
"""The share of validation lines that are in training from which they are told."""
OVERFITTED = 1.5
"""How many times the perplexity of training text that of validation text may be."""
COMMON = 100
"""Words that training has at least so often are what rare ones are compared with."""


def weaknesses(analysis: Mapping[str, Any], validations: Sequence[Mapping[str, Any]], reason: str) -> str:
    """The section; empty without an analysis."""
    if not analysis:
        return ""
    found = [
        *_unfinished(validations, reason),
        *_overfitting(validations),
        *_lengths(analysis),
        *_rare_words(analysis),
        *_length_ratio(analysis),
        *_flags(analysis),
        *_doubts(analysis),
    ]
    if not found and not analysis.get("by_length"):  # nothing was looked for
        return ""
    lines = [f"- {sentence}" for sentence in found] or ["None that the numbers on validation data show."]
    parts = ["## Known weaknesses\n\nComputed from the validation data.\n\n" + "\n".join(lines)]
    parts += [_length_table(analysis), _frequency_table(analysis)]
    return "\n\n".join(part for part in parts if part)


def _unfinished(validations: Sequence[Mapping[str, Any]], reason: str) -> Iterator[str]:
    if len(validations) > 1 and validations[-1].get("best"):
        yield f"It was still learning: the last validation was the best. It ended because it {reason}. Train longer."


def _overfitting(validations: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Of a language model: how much better it knows what it was trained on."""
    kept = [event for event in validations if event.get("best")]
    training, validation = (kept[-1].get(name) if kept else None for name in ("training_perplexity", "perplexity"))
    if training and validation and validation > OVERFITTED * training:
        yield (
            f"It has learned much by heart: perplexity per token {training:.1f} on training text, {validation:.1f} on "
            "validation text. More text, or a model that is held back more (dropout, size), helps."
        )


def _lengths(analysis: Mapping[str, Any]) -> Iterator[str]:
    """Buckets that are worse than the whole by more than chance."""
    whole = _score(analysis["scores"], "chrF2")
    for bucket in analysis.get("by_length", ()):
        chrf = bucket["scores"]["chrf"]
        if whole is not None and bucket["num_sentences"] >= FEW_SENTENCES and chrf["high"] < whole["value"]:
            yield (
                f"Sentences of {bucket['label']} {bucket['unit']} ({bucket['num_sentences']:,} of "
                f"{analysis['num_lines']:,}) score chrF2 {chrf['value']:.1f} [{chrf['low']:.1f}, {chrf['high']:.1f}], "
                f"all together {whole['value']:.1f}."
            )


def _score(scores: Sequence[Mapping[str, Any]], name: str) -> Mapping[str, Any] | None:
    return next((score for score in scores if score["name"] == name), None)


def _rare_words(analysis: Mapping[str, Any]) -> Iterator[str]:
    bands = analysis.get("by_frequency", ())
    num_words = sum(band["num_reference"] for band in bands)
    rare = [
        f"that training {text} ({band['num_reference']:,} of {num_words:,}): F1 {band['f1']:.2f}"
        for times, text in ((0, "does not have"), (1, "has once"))
        for band in bands
        if band["rarest"] == times and band["num_reference"]
    ]
    if rare:
        common = [band for band in bands if band["rarest"] >= COMMON]
        beside = f"; those that it has {COMMON} times or more: {_f1(common):.2f}"
        yield f"Words {'; '.join(rare)}{beside * any(band['num_reference'] for band in common)}."


def _f1(bands: Sequence[Mapping[str, int]]) -> float:
    right, words = (sum(band[name] for band in bands for name in names)
                    for names in (("num_right",), ("num_output", "num_reference")))  # fmt: skip
    return 2 * right / max(words, 1)


def _length_ratio(analysis: Mapping[str, Any]) -> Iterator[str]:
    ratio = analysis.get("length_ratio")
    if ratio is not None and abs(ratio - 1) > OFF_LENGTH:
        how = "shorter" if ratio < 1 else "longer"
        yield f"Outputs are {how} than the references: {ratio:.2f} words for each of theirs."


def _flags(analysis: Mapping[str, Any]) -> Iterator[str]:
    """Outputs that are wrong whatever the reference says."""
    flagged = analysis.get("flagged", {})
    if flagged.get("num_lines"):
        count, lines = flagged["num_lines"], analysis["num_lines"]
        reasons = ", ".join(f"{reason} {times:,}" for reason, times in flagged["reasons"].items())
        replaced = flagged["num_replaced"]
        yield (
            f"{count:,} of {lines:,} outputs ({100 * count / lines:.1f} %) cannot be right ({reasons})."
            + f" The next best hypothesis took the place of {replaced:,}." * (replaced > 0)
        )


def _doubts(analysis: Mapping[str, Any]) -> Iterator[str]:
    """What makes the numbers themselves doubtful."""
    if analysis["num_lines"] < FEW_LINES:
        yield f"There are only {analysis['num_lines']:,} validation lines: all numbers here have wide intervals."
    leaked = analysis.get("leaked") or 0
    if leaked > MANY_LEAKED * analysis["num_lines"]:
        yield (
            f"{leaked:,} of {analysis['num_lines']:,} validation lines ({100 * leaked / analysis['num_lines']:.1f} %) "
            "have a side that is in the training data too: the scores are higher than on unseen text."
        )


def _length_table(analysis: Mapping[str, Any]) -> str:
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


def _frequency_table(analysis: Mapping[str, Any]) -> str:
    rows = [
        [band["label"], f"{band['num_reference']:,}", f"{band['num_output']:,}", f"{band['num_right']:,}",
         f"{band['precision']:.2f}", f"{band['recall']:.2f}", f"{band['f1']:.2f}"]
        for band in analysis.get("by_frequency", ()) if band["num_reference"] or band["num_output"]
    ]  # fmt: skip
    heads = ["training has the word", "in references", "in output", "right", "precision", "recall", "F1"]
    return "Words by how often training has them:\n\n" + table([heads, *rows], right=range(1, 7)) if rows else ""
