"""Diagnosis of tables of texts with labels, before a classifier is trained on them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from heed.core.errors import DataError
from heed.core.progress import watched
from heed.text.doctor.files import fingerprints_of_table
from heed.text.doctor.findings import Check, Diagnosis, Finding, Severity, Tally, sorted_findings
from heed.text.doctor.lines import LineScan
from heed.text.hashing import hash_text
from heed.text.normalise import Normaliser
from heed.text.readers import Errors
from heed.text.readers.labelled import LabelledRow, LabelledTable, open_labelled

MIN_ROWS = 20
"""Fewer labelled texts than this stop the training."""
FEW_ROWS = 500
"""Fewer labelled texts than this are a warning."""
MOST_DISTINCT = 0.5
"""Labels that are distinct in more than this share of the rows are not classes."""
MANY_NUMBERS = 20
"""More distinct numbers than this as labels are numbers to predict; fewer whole ones are classes."""
MAJORITY = 0.9
"""A label that more rows than this have is a warning."""
OF_LABEL, OF_OTHERS = 0.9, 0.1
"""The name of a label is in the texts if more than the first share with it contain it, and less than the second of the
others."""
SHOWN = 5

EMPTY = Check(
    "empty", "have no text, and are left out", "Remove them, or give another column with --text-column.", stop=0.5
)
MISSING = Check("missing-label", "have no label, and are left out", "Label them, or remove them.", stop=0.5)
REPEATED = Check(
    "duplicate", "repeat an earlier text with the same label", "Check why: one of each is enough.", warn=0.2
)
CONTRADICTORY = Check(
    "contradictory",
    "repeat an earlier text with another label",
    "Decide on one label: from contradictory ones, a model can only learn an average.",
)


@dataclass
class TableScan:
    """What is counted over the rows of a table."""

    normaliser: Normaliser = field(default_factory=Normaliser)
    num_rows: int = 0
    labels: Counter[str] = field(default_factory=Counter)
    num_lists: int = 0
    num_numeric: int = 0
    empty: Tally = field(default_factory=Tally)
    missing: Tally = field(default_factory=Tally)
    repeated: Tally = field(default_factory=Tally)
    contradictory: Tally = field(default_factory=Tally)
    label_of: dict[int, int] = field(default_factory=dict)
    """Hash of the labels, by hash of the text."""
    with_name: Counter[str] = field(default_factory=Counter)
    """Texts with a label that contain its name, by label."""
    words: Counter[str] = field(default_factory=Counter)
    """Texts that contain a word, in lower case."""
    num_usable: int = 0

    def add(self, row: LabelledRow) -> bool:
        """Count a row; returns whether it can be trained on."""
        self.num_rows += 1
        text = "\t".join(row.texts)
        if not all(side.strip() for side in row.texts):
            self.empty.add(row.number, text)
            return False
        if not row.labels and not row.is_list:
            self.missing.add(row.number, text)
            return False
        self.num_usable += 1
        self.labels.update(row.labels)
        self.num_lists += row.is_list
        self.num_numeric += all(map(is_number, row.labels))
        self._compare(row)
        words = {word.strip(".,;:!?()\"'") for word in text.casefold().split()}
        self.words.update(words)
        self.with_name.update(label for label in row.labels if label.casefold() in words)
        return True

    def key(self, row: LabelledRow) -> int:
        """A hash of the normalised texts of a row."""
        return hash_text("\t".join(map(self.normaliser.apply, row.texts)))

    def _compare(self, row: LabelledRow) -> None:
        key, labels = self.key(row), hash_text("\t".join(sorted(row.labels)))
        if key not in self.label_of:
            self.label_of[key] = labels
            return
        before = self.label_of[key]
        (self.repeated if before == labels else self.contradictory).add(row.number, "\t".join(row.texts))

    @property
    def kind(self) -> str:
        """The kind of answer: "label", "labels" or "number"."""
        if self.num_lists:
            return "labels"
        whole = all(label.lstrip("-").isdecimal() for label in self.labels)
        few = len(self.labels) <= MANY_NUMBERS and whole
        return "number" if self.num_numeric == self.num_usable > 0 and not few and len(self.labels) > 2 else "label"

    def findings(self) -> Iterator[Finding]:
        """Findings about texts and labels."""
        for check, tally in (
            (EMPTY, self.empty), (MISSING, self.missing), (REPEATED, self.repeated), (CONTRADICTORY, self.contradictory)
        ):  # fmt: skip
            yield from check.findings(tally, self.num_rows, "rows")
        if self.num_usable < FEW_ROWS:
            severity: Severity = "stop" if self.num_usable < MIN_ROWS else "warn"
            what = f"Only {self.num_usable:,} labelled texts can be used"
            yield Finding("few", severity, self.num_usable, self.num_rows, f"{what}.", f"Label at least {FEW_ROWS}.")
        if self.kind != "number" and self.num_usable:
            yield from self._label_findings()

    def _label_findings(self) -> Iterator[Finding]:
        total, number = self.labels.total(), len(self.labels)
        common = self.labels.most_common(1)
        if number < (1 if self.num_lists else 2):
            name = f": {common[0][0]!r}" if common else ""
            advice = "Give a table with two labels or more, or another column with --label-column."
            yield Finding("one-label", "stop", number, total, f"All rows have the same label{name}.", advice)
        if number > MOST_DISTINCT * total and number > SHOWN:
            message = f"{number:,} different labels in {total:,} rows: this column does not hold classes."
            yield Finding("many-labels", "stop", number, total, message, "Choose another one with --label-column.")
            return
        once = [label for label, count in self.labels.items() if count == 1]
        if once:
            what = "labels occur only once" if len(once) > 1 else "label occurs only once"
            message = f"{len(once):,} {what} ({_named(once)}): a model can hardly learn them."
            yield Finding("rare-label", "warn", len(once), number, message, "Label more examples, or merge labels.")
        for group in _alike(self.labels):
            counts = " and ".join(f"{label!r} ({self.labels[label]:,})" for label in group)
            message = f"The labels {counts} differ only in case or spaces, and are learned as different labels."
            yield Finding("label-typo", "warn", len(group), number, message, "Write them alike.")
        if number > 1 and not self.num_lists and common[0][1] > MAJORITY * total:
            part = f"{100 * common[0][1] / total:.1f} %"
            always = "a model that always answers it is right that often."
            message = f"{part} of the rows have the label {common[0][0]!r}: {always}"
            yield Finding("unbalanced", "warn", common[0][1], total, message, "Compare macro F1, not accuracy.")
        yield from self._leaks()

    def _leaks(self) -> Iterator[Finding]:
        for label, count in self.labels.items():
            inside = self.with_name[label]
            others = self.words[label.casefold()] - inside
            rest = max(1, self.num_usable - count)
            if count > 1 and inside > OF_LABEL * count and others < OF_OTHERS * rest:
                message = (
                    f"{inside:,} of {count:,} texts with the label {label!r} contain this word, and few others do."
                )
                advice = "If the label was written into the text, remove it: other texts will not have it."
                yield Finding("leaking-label", "warn", inside, count, message, advice)


def is_number(text: str) -> bool:
    """Whether a label is a finite number."""
    try:
        return abs(float(text)) < float("inf")
    except ValueError:
        return False


def _named(labels: list[str]) -> str:
    return ", ".join(map(repr, labels[:SHOWN])) + (", …" if len(labels) > SHOWN else "")


def _alike(labels: Mapping[str, int]) -> list[list[str]]:
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for label in labels:
        groups["".join(label.casefold().split())].append(label)
    return [group for group in groups.values() if len(group) > 1]


def diagnose_table(
    train: LabelledTable, valid: LabelledTable | None = None, test: LabelledTable | None = None, *,
    errors: Errors = "strict", normaliser: Normaliser | None = None, quiet: bool = True,
) -> Diagnosis:  # fmt: skip
    """Examine a table of labelled texts, and look for the texts of a validation and a test table in it."""
    left_out: Counter[str] = Counter()
    table = open_labelled(train, errors, left_out)
    scan, lines, problems = TableScan(normaliser or Normaliser()), LineScan("text"), list[Finding]()
    try:
        for row in watched(table.rows, "examining", "rows", quiet):
            if scan.add(row):
                lines.add(row.number, " ".join(row.texts))
    except DataError as error:
        message = f"The training data cannot be read to its end. {error}"
        problems.append(Finding("unreadable", "stop", 1, 1, message, ""))
    summary = [_summary(table.choice.how, scan, lines)]
    fingerprints = {"train": fingerprints_of_table(train.path)}
    for name, other in (("validation", valid), ("test", test)):
        if other is not None:
            found, text = _held_out(name, other, scan, len(table.choice.texts), errors)
            problems += found
            summary.append(text)
            fingerprints[name] = fingerprints_of_table(other.path)
    of_lines = [f for f in lines.findings() if f.check not in ("empty", "few")]
    of_table = [f for f in scan.findings() if not (problems and f.check == "few" and f.severity == "stop")]
    return Diagnosis(
        findings=sorted_findings([*problems, *of_lines, *of_table]),
        num_pairs=scan.num_usable,
        statistics={
            "text_words": lines.mean_words, "text_characters": lines.mean_characters, "num_labels": len(scan.labels),
            f"kind_{scan.kind}": 1.0, "num_texts": len(table.choice.texts),
        },
        fingerprints=fingerprints,
        summary=tuple(summary),
    )  # fmt: skip


def _summary(how: str, scan: TableScan, lines: LineScan) -> str:
    rows = f"train: {scan.num_usable:,} texts of {lines.mean_words:.1f} words on average ({how})"
    if scan.kind == "number":
        values = sorted(map(float, scan.labels))
        return f"{rows}; the labels are numbers from {values[0]:g} to {values[-1]:g}."
    shares = [f"{label} {100 * count / max(1, scan.num_usable):.0f} %" for label, count in scan.labels.most_common(8)]
    several = ", several at once" * (scan.kind == "labels")
    more = ", …" * (len(scan.labels) > 8)
    return f"{rows}; {len(scan.labels):,} labels{several}: {', '.join(shares)}{more}."


def _held_out(
    name: str, table: LabelledTable, train: TableScan, num_texts: int, errors: Errors
) -> tuple[list[Finding], str]:
    """Findings about a validation or test table, and its summary. Raises UsageError without `num_texts` columns."""
    opened = open_labelled(table, errors)
    opened.require_texts(num_texts, "Name the columns of both tables with --text-column.")
    leaked, unknown = Tally(), Counter[str]()
    number = 0
    for row in opened.rows:
        number += 1
        if train.key(row) in train.label_of:
            leaked.add(row.number, "\t".join(row.texts))
        unknown.update(label for label in row.labels if label not in train.labels)
    check = Check(
        f"{name}-leak", "are in the training data too", "Remove them from the training data.", warn=0.01, stop=0.5
    )
    findings = list(check.findings(leaked, number, f"{name} texts"))
    if unknown and train.kind != "number":
        message = f"{unknown.total():,} of {number:,} {name} rows have a label that is not in training"
        named = _named(list(unknown))
        findings.append(Finding("unknown-label", "warn", unknown.total(), number, f"{message} ({named}).", "Check it."))
    return findings, f"{name}: {number:,} rows."
