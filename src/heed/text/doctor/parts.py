"""Diagnosis of training data in several parts: that of the first part, with the findings of the others added."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from heed.text.doctor.findings import Diagnosis, Finding, sorted_findings
from heed.text.doctor.pairs import too_few
from heed.text.doctor.thresholds import Thresholds

WHOLE_CORPUS = ("few",)
"""Checks of the corpus as a whole."""


def with_parts(
    first: Diagnosis, others: Mapping[str, Diagnosis], to_exchange: Mapping[str, str] | None = None
) -> Diagnosis:
    """One diagnosis of all parts; the findings of a part start with its name.

    `to_exchange`: the advice for a part whose sides are exchanged, by its name.
    """
    if not others:
        return first
    findings = [finding for finding in first.findings if finding.check not in WHOLE_CORPUS]
    findings += _few([first, *others.values()])
    summary = [*first.summary]
    for name, part in others.items():
        findings += _named(name, part, first, (to_exchange or {}).get(name, ""))
        train, *held_out = part.summary
        summary += [f"{name}: {train.removeprefix('train: ')}", *(f"{name}, {text}" for text in held_out)]
    return replace(
        first,
        findings=sorted_findings(findings),
        summary=tuple(summary),
        num_in_parts=sum(part.num_pairs for part in others.values()),
        fingerprints={**first.fingerprints, **{name: it.fingerprints.get("train", {}) for name, it in others.items()}},
    )


def _few(parts: Sequence[Diagnosis]) -> Iterator[Finding]:
    """The finding that all parts together are too few, unless one could not be read to its end."""
    if not any(finding.check == "unreadable" for part in parts for finding in part.findings):
        dropped = sum((Counter(part.dropped) for part in parts), Counter[str]())
        yield from too_few(sum(part.num_pairs for part in parts), dropped, Thresholds())


def _named(name: str, part: Diagnosis, first: Diagnosis, to_exchange: str) -> Iterator[Finding]:
    """The findings of a part, without those about the validation data, which all parts share."""
    known = {(finding.check, finding.message) for finding in first.findings}
    for finding in part.findings:
        if finding.check not in WHOLE_CORPUS and (finding.check, finding.message) not in known:
            advice = to_exchange if to_exchange and finding.check == "swapped" else finding.advice
            yield replace(finding, message=f"{name}: {finding.message}", advice=advice)
