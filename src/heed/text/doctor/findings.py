"""Findings of the data doctor, the thresholds of their severity, and their display."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from heed.core.errors import DataError
from heed.text.readers import FileFingerprint

Severity = Literal["stop", "warn", "note"]
SEVERITIES: tuple[Severity, ...] = ("stop", "warn", "note")

EXCERPT = 90
"""Characters of a line shown in an example."""

MANY = 10
"""Beyond this number of findings fewer examples are shown, so that all fit on one screen."""


class Thresholds:
    """Shares of lines or pairs, from 0 to 1. Above a `stop_` share the data would ruin the training."""

    min_pairs: Final = 100
    """Fewer pairs than this, after filtering, stop the training."""
    few_pairs: Final = 10_000
    """Fewer pairs than this give a weak translator: a warning. Measured with 5,865 and 7,239 pairs.

    docs/results/low-resource.md has the figures."""
    min_characters: Final = 1000
    """A monolingual text shorter than this stops the training."""
    stop_empty: Final = 0.1
    """Pairs with an empty side."""
    stop_copies: Final = 0.5
    """Pairs whose target is the source."""
    stop_leaked: Final = 0.1
    """Pairs (of a text: lines) of a validation or test set that are in training."""
    stop_damaged: Final = 0.05
    """Lines damaged by a wrong encoding."""
    stop_nul: Final = 0.5
    """Lines with a NUL character; a file with more is UTF-16."""
    stop_unknown: Final = 0.2
    """Tokens that are not in the vocabulary."""
    stop_misaligned: Final = 0.25
    """Blocks of pairs in which the lengths of the two sides are unrelated."""
    stop_exchanged: Final = 0.25
    """Parts of the pairs whose sides are exchanged relative to most parts."""
    warn: Final = 0.01
    """Any other problem is a warning above this share, and a note below."""
    warn_repeated: Final = 0.2
    """As `warn`, for repeated lines and pairs and for dropped pairs, which are common and do little harm."""
    unrelated_lengths: Final = 0.3
    """A block is misaligned when the correlation of its lengths is below this. Translations have 0.5 to 0.95."""
    same_language: Final = 0.9
    """Sides whose letter trigrams are more similar than this (cosine) are in one language. Related ones have 0.6."""
    tokenised: Final = 0.5
    """A side is tokenised when more of its lines than this have a space before a comma or full stop."""
    long_line: Final = 1000
    """A line with more characters than this is very long."""
    num_examples: Final = 3
    """Examples kept for each finding."""


@dataclass(frozen=True)
class Finding:
    """A problem or a noteworthy fact."""

    check: str
    """The name of the check, for programs: "duplicate", "damaged", ..."""
    severity: Severity
    count: int
    total: int
    message: str
    """One sentence with the numbers."""
    advice: str
    """What to do about it; may be empty."""
    examples: tuple[tuple[int, str], ...] = ()
    """(line number from 1, excerpt of the line)."""


@dataclass(frozen=True)
class Diagnosis:
    """All findings about a corpus, the most severe first."""

    findings: tuple[Finding, ...]
    num_pairs: int
    """The pairs read, or the lines of a monolingual text; of several parts, those of the first."""
    statistics: Mapping[str, float] = field(default_factory=dict)
    """`num_kept`: pairs after filtering; `num_validation`, `num_test`: pairs of these sets; `src_words`,
    `src_characters`, ...: the mean per line."""
    dropped: Mapping[str, int] = field(default_factory=dict)
    """Numbers of pairs that the filter would drop, by reason."""
    fingerprints: Mapping[str, Mapping[str, FileFingerprint]] = field(default_factory=dict)
    """Of each file, by set ("train", "validation", "test") and role ("src", "tgt", "pairs", "text")."""
    summary: tuple[str, ...] = ()
    """The statistics as text, one line each."""
    counted: Literal["line", "pair"] = "line"
    """Unit of the numbers of examples: lines of the files, or pairs of files that have no lines."""
    num_in_parts: int = 0
    """Pairs in the further parts of the training data."""
    languages: Mapping[str, str] = field(default_factory=dict)
    """The language of "src" and "tgt", by the heading of the column or the script; empty if unknown."""

    @property
    def stops(self) -> tuple[Finding, ...]:
        """The findings that would ruin the training."""
        return tuple(finding for finding in self.findings if finding.severity == "stop")

    def to_json(self) -> dict[str, Any]:
        """The diagnosis in types that `json.dumps` accepts."""
        return asdict(self)

    def render(self, width: int = 100) -> str:
        """Plain text for a screen: the summary, then the findings."""
        lines = [line for text in self.summary for line in textwrap.wrap(text, width, subsequent_indent="  ")]
        lines.append("")
        many = len(self.findings) > MANY
        num_examples = {"stop": 2, "warn": 1 if many else 2, "note": 0 if many else 1}
        for finding in self.findings:
            lines += _rendered(finding, num_examples[finding.severity], width, self.counted)
        return "\n".join(lines if self.findings else [*lines, "No problems found."])


def sorted_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The most severe first, and of those the most frequent."""
    return tuple(sorted(findings, key=lambda it: (SEVERITIES.index(it.severity), -it.count / max(it.total, 1))))


def share(count: int, total: int) -> str:
    """A share in per cent: "0.4 %"."""
    percent = 100 * count / max(total, 1)
    return "under 0.1 %" if 0 < percent < 0.05 else f"{percent:.1f} %"


def grade(part: float, stop: float, warn: float) -> Severity:
    """The severity of a problem with this share; a limit of 1 is never exceeded."""
    return "stop" if part > stop else "warn" if part > warn else "note"


def visible(text: str) -> str:
    """The text with invisible characters spelled out: "a<U+0000>b"."""
    return "".join(
        char if char.isprintable() or unicodedata.category(char) == "Zs" else f"<U+{ord(char):04X}>" for char in text
    )


def excerpt(text: str, at: int = 0) -> str:
    """The part of a line around position `at`, with an ellipsis where it was cut."""
    start = max(0, at - EXCERPT // 2) if len(text) > EXCERPT else 0
    part = text[start : start + EXCERPT]
    return f"{'…' if start else ''}{part}{'…' if start + EXCERPT < len(text) else ''}"


def _rendered(finding: Finding, num_examples: int, width: int, counted: str) -> list[str]:
    label = finding.severity.upper() if finding.severity == "stop" else finding.severity
    text = finding.message if finding.severity == "note" else f"{finding.message} {finding.advice}".strip()
    lines = textwrap.wrap(text, width, initial_indent=f"{label:6}", subsequent_indent=" " * 6)
    return lines + [
        f"        {counted} {number:,}: {visible(text)}" for number, text in finding.examples[:num_examples]
    ]


@dataclass
class Tally:
    """Counts the cases of one check, and keeps the first few as examples."""

    count: int = 0
    examples: list[tuple[int, str]] = field(default_factory=list)

    def add(self, number: int, text: str, at: int = 0, times: int = 1) -> None:
        """Count a case on line `number`; the example shows `text` around position `at`."""
        self.count += times
        if len(self.examples) < Thresholds.num_examples:
            self.examples.append((number, excerpt(text, at)))

    def add_pair(self, number: int, src: str, tgt: str) -> None:
        """Count a case; the example shows both sides."""
        self.count += 1
        if len(self.examples) < Thresholds.num_examples:
            half = EXCERPT // 2
            sides = (side if len(side) <= half else f"{side[:half]}…" for side in (src, tgt))
            self.examples.append((number, " ||| ".join(sides)))

    def merge(self, later: Tally) -> None:
        """Add the cases of later lines."""
        self.count += later.count
        self.examples = (self.examples + later.examples)[: Thresholds.num_examples]


Tallies = defaultdict[str, Annotated[Tally, Field(default_factory=Tally)]]
"""Tallies by the name of what they count."""


def merge_tallies(own: Tallies, later: Mapping[str, Tally]) -> None:
    """Add the cases of later lines to each tally."""
    for name, tally in later.items():
        own[name].merge(tally)


@dataclass(frozen=True)
class Check:
    """A problem that single lines, pairs or tokens have.

    Its finding reads "3 of 400 source lines (0.8 %) contain HTML."
    """

    name: str
    what: str
    """The end of the sentence: "contain HTML"."""
    advice: str = ""
    warn: float = Thresholds.warn
    """The share above which the finding is a warning; 1 for never."""
    stop: float = 1.0
    """The share above which the finding stops the training; 1 for never."""
    pattern: re.Pattern[str] | None = None
    """Detects the problem in a line; None if more than a pattern is required."""

    def findings(self, tally: Tally, total: int, of: str) -> Iterator[Finding]:
        """One finding, or none if the tally is empty; `of` names what was counted."""
        if tally.count:
            message = f"{tally.count:,} of {total:,} {of} ({share(tally.count, total)}) {self.what}."
            severity = grade(tally.count / total, self.stop, self.warn)
            yield Finding(self.name, severity, tally.count, total, message, self.advice, tuple(tally.examples))


def check_diagnosis(diagnosis: Diagnosis, force: bool) -> None:
    """Raise DataError for data that would ruin the training."""
    require_readable(diagnosis)
    if diagnosis.stops and not force:
        reasons = "\n".join(f"  {finding.message} {finding.advice}" for finding in diagnosis.stops)
        raise DataError(f"this data would ruin the run:\n{reasons}\nFix it, or continue with --force.")


def require_readable(diagnosis: Diagnosis) -> None:
    """Raise DataError for data that cannot be read completely, even with --force."""
    if unreadable := [finding.message for finding in diagnosis.stops if finding.check == "unreadable"]:
        raise DataError("\n".join(unreadable))
