"""What is wrong with training data that has several parts? The first part's diagnosis, and what the others add."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from heed.text.doctor.direction import how_to_exchange
from heed.text.doctor.findings import Diagnosis, Finding, sorted_findings
from heed.text.doctor.pairs import too_few
from heed.text.doctor.thresholds import Thresholds
from heed.text.readers import CorpusFiles, Errors, column_languages

NOT_OF_PARTS = ("few",)
"""Checks that are about the corpus as a whole."""


def how_to_exchange_part(files: CorpusFiles, errors: Errors = "strict") -> str:
    """What to do where the sides of a part are the other way round.

    Columns are said for all parts together, so those of one part alone can only be exchanged in its file. To say
    other languages makes it another direction; where they choose the texts of the file, it does not help.
    """
    direction = " Only if it is meant as the other direction, say its languages instead: src_lang and tgt_lang."
    if files.pairs is None:
        return f"Exchange src and tgt of this part.{direction}"
    if files.record_format == "tmx":
        return how_to_exchange(files)
    if files.record_format not in ("tsv", "csv"):
        return f"Exchange the texts of the two fields in the file of this part.{direction}"
    advice = "Exchange the texts of the two columns in the file of this part; names in its first row stay as they are."
    return advice if any(column_languages(files, errors).values()) else f"{advice}{direction}"


def with_parts(
    first: Diagnosis, others: Mapping[str, Diagnosis], to_exchange: Mapping[str, str] | None = None
) -> Diagnosis:
    """One diagnosis of all parts; what is found in a part is told with its name.

    `to_exchange`: what to do where the sides of a part are the other way round, by its name.
    """
    if not others:
        return first
    findings = [finding for finding in first.findings if finding.check not in NOT_OF_PARTS]
    findings += _few([first, *others.values()])
    summary = [*first.summary]
    for name, found in others.items():
        findings += _named(name, found, first, (to_exchange or {}).get(name, ""))
        train, *held_out = found.summary
        summary += [f"{name}: {train.removeprefix('train: ')}", *(f"{name}, {text}" for text in held_out)]
    return replace(
        first,
        findings=sorted_findings(findings),
        summary=tuple(summary),
        num_in_parts=sum(found.num_pairs for found in others.values()),
        fingerprints={**first.fingerprints, **{name: it.fingerprints.get("train", {}) for name, it in others.items()}},
    )


def _few(parts: Sequence[Diagnosis]) -> Iterator[Finding]:
    """Whether all parts together are too few; of those that could not be read to their end that is no news."""
    if not any(finding.check == "unreadable" for found in parts for finding in found.findings):
        dropped = sum((Counter(found.dropped) for found in parts), Counter[str]())
        yield from too_few(sum(found.num_pairs for found in parts), dropped, Thresholds())


def _named(name: str, found: Diagnosis, first: Diagnosis, to_exchange: str) -> Iterator[Finding]:
    """What is found in a part, but for what is said of the validation data, which is the same in all."""
    said = {(finding.check, finding.message) for finding in first.findings}
    for finding in found.findings:
        if finding.check not in NOT_OF_PARTS and (finding.check, finding.message) not in said:
            advice = to_exchange if to_exchange and finding.check == "swapped" else finding.advice
            yield replace(finding, message=f"{name}: {finding.message}", advice=advice)
