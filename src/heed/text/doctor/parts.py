"""What is wrong with training data that has several parts? The first part's diagnosis, and what the others add."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from heed.text.doctor.findings import Diagnosis, Finding, sorted_findings
from heed.text.doctor.pairs import too_few
from heed.text.doctor.thresholds import Thresholds

EXCHANGED = "Exchange src and tgt of this part, or say its languages: src_lang and tgt_lang beside them."
NOT_OF_PARTS = ("few",)
"""Checks that are about the corpus as a whole."""


def with_parts(first: Diagnosis, others: Mapping[str, Diagnosis]) -> Diagnosis:
    """One diagnosis of all parts; what is found in a part is told with its name."""
    if not others:
        return first
    findings = [finding for finding in first.findings if finding.check not in NOT_OF_PARTS]
    findings += _few([first, *others.values()])
    summary = [*first.summary]
    for name, found in others.items():
        findings += _named(name, found, first)
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


def _named(name: str, found: Diagnosis, first: Diagnosis) -> Iterator[Finding]:
    """What is found in a part, but for what is said of the validation data, which is the same in all."""
    said = {(finding.check, finding.message) for finding in first.findings}
    for finding in found.findings:
        if finding.check not in NOT_OF_PARTS and (finding.check, finding.message) not in said:
            advice = EXCHANGED if finding.check == "swapped" else finding.advice
            yield replace(finding, message=f"{name}: {finding.message}", advice=advice)
