"""Examination of training data row by row: what is counted, and the diagnosis that follows from the counts.

Counts of consecutive parts of the data add up to those of the whole, so that several processes can share the work.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, Self, TypeVar

from heed.core.errors import DataError
from heed.text.doctor.direction import exchanged, partly_exchanged, same_language
from heed.text.doctor.findings import Check, Diagnosis, Finding, Tally, Thresholds, sorted_findings, visible
from heed.text.doctor.held_out import Found, HeldOutPairs, HeldOutText, tokenised_differently
from heed.text.doctor.lines import EvenSample, LineScan
from heed.text.doctor.pairs import LengthCorrelation, PairScan
from heed.text.hashing import hash_pair, hash_text
from heed.text.language.codes import name_of
from heed.text.language.scripts import language_by_script
from heed.text.normalise import Normaliser
from heed.text.pair_filter import PairFilterConfig

Pair = tuple[str, str]
T = TypeVar("T")
Row = TypeVar("Row")

SHOWN = 30
"""Characters of the first line of each side that the summary shows."""

REPEATED = Check(
    "duplicate", "repeat an earlier one", "Check why they repeat: one of each is enough.", warn=Thresholds.warn_repeated
)


@dataclass
class PairCounts:
    """What is counted over pairs."""

    src: LineScan
    tgt: LineScan
    pairs: PairScan
    found: list[list[Found]]
    """Of each held-out set, the pairs, sources and targets that are in the training data."""

    def merge(self, next_part: Self) -> None:
        """Add the counts of the next part of the data."""
        self.src.merge(next_part.src)
        self.tgt.merge(next_part.tgt)
        self.pairs.merge(next_part.pairs)
        _merge_found(self.found, next_part.found)


@dataclass
class TextCounts:
    """What is counted over the lines of a text."""

    text: LineScan
    repeated: Tally
    found: list[list[Found]]

    def merge(self, next_part: Self) -> None:
        """Add the counts of the next part of the data."""
        self.text.merge(next_part.text)
        self.repeated.merge(next_part.repeated)
        _merge_found(self.found, next_part.found)


def _merge_found(own: list[list[Found]], later: list[list[Found]]) -> None:
    """Add where texts of held-out sets are in later lines, if they are not in earlier ones."""
    for own_set, later_set in zip(own, later, strict=True):
        for one, other in zip(own_set, later_set, strict=True):
            for key, place in other.items():
                one.setdefault(key, place)


Counts = TypeVar("Counts", PairCounts, TextCounts)


class Examination(ABC, Generic[Row, Counts]):
    """How rows of one kind are examined, given the held-out sets.

    Lines are examined as they are in the files, and compared with each other as training does, after normalisation.
    """

    num_keys: int
    """Keys of a row."""
    held_out: Sequence[HeldOutPairs | HeldOutText]
    problems: list[Finding]
    """Of the held-out sets."""

    @abstractmethod
    def begin(self, first: int = 0, total: int = 0) -> Counts:
        """The counts before the rows from `first` on, counted from 0, of `total` rows; 0: unknown."""

    @abstractmethod
    def keys(self, row: Row) -> Sequence[int]:
        """Hashes by which repetitions are recognised; 0 for what is not compared with other rows."""

    @abstractmethod
    def add(self, counts: Counts, number: int, row: Row, keys: Sequence[int], are_new: Sequence[bool]) -> None:
        """Count row `number`, from 1. `are_new`: of its keys, whether no earlier row has them."""

    @abstractmethod
    def diagnosis(
        self, counts: Counts, cut: Sequence[Finding] = (), languages: tuple[str, str] = ("", ""), to_exchange: str = ""
    ) -> Diagnosis:
        """The diagnosis. `cut`: the finding that the data could not be read to its end; the others as `diagnose`."""

    def _nothing_found(self) -> list[list[Found]]:
        found: list[list[Found]] = [[{} for _ in held.overlaps] for held in self.held_out]
        self._find_in(found)
        return found

    def _find_in(self, found: list[list[Found]]) -> None:
        """Let the held-out sets use what was found."""
        for held, its in zip(self.held_out, found, strict=True):
            for overlap, own in zip(held.overlaps, its, strict=True):
                overlap.found = own


class PairExamination(Examination[Pair, PairCounts]):
    """Examination of sentence pairs."""

    num_keys = 2
    held_out: Sequence[HeldOutPairs]

    def __init__(
        self, valid: Iterable[Pair] | None = None, test: Iterable[Pair] | None = None,
        pair_filter: PairFilterConfig | None = None, in_one_file: bool = False, normaliser: Normaliser | None = None,
    ) -> None:  # fmt: skip
        self.problems = []
        self._normalise = (normaliser or Normaliser()).apply
        self.held_out = [
            HeldOutPairs(name, until_error(pairs, name, self.problems), self._normalise)
            for name, pairs in (("validation", valid), ("test", test))
            if pairs is not None
        ]
        self._filter = pair_filter or PairFilterConfig()
        self._in_one_file = in_one_file

    def begin(self, first: int = 0, total: int = 0) -> PairCounts:
        src, tgt = (LineScan(side, EvenSample.of_part(first, total)) for side in ("source", "target"))
        pairs = PairScan(self._filter, self._in_one_file, LengthCorrelation(first + 1, first + 1))
        return PairCounts(src, tgt, pairs, self._nothing_found())

    def keys(self, row: Pair) -> tuple[int, int]:
        """Of the source, and of the pair."""
        src, tgt = map(self._normalise, row)
        return hash_text(src), hash_pair(src, tgt)

    def add(self, counts: PairCounts, number: int, row: Pair, keys: Sequence[int], are_new: Sequence[bool]) -> None:
        is_new_source, is_new = are_new
        counts.src.add(number, row[0])
        counts.tgt.add(number, row[1])
        src, tgt = map(self._normalise, row)
        counts.pairs.add(number, src, tgt, is_new_source, is_new)
        for held in self.held_out:
            held.compare(number, src, tgt, *keys)

    def diagnosis(
        self, counts: PairCounts, cut: Sequence[Finding] = (), languages: tuple[str, str] = ("", ""),
        to_exchange: str = "",
    ) -> Diagnosis:  # fmt: skip
        self._find_in(counts.found)
        src, tgt, pairs = counts.src, counts.tgt, counts.pairs
        own = [*src.findings(tgt), *tgt.findings(src), *pairs.findings()]
        findings = [*self.problems, *_unless_cut(own, cut)]
        findings += exchanged(src, tgt, languages, to_exchange)
        findings += tokenised_differently(src, tgt)
        findings += [*partly_exchanged(src, tgt)] or [*same_language(src, tgt)]
        for held in self.held_out:
            findings += held.findings(src, tgt)
        return Diagnosis(
            findings=sorted_findings(findings),
            num_pairs=pairs.num_pairs,
            statistics={
                **_sizes("src", src), **_sizes("tgt", tgt), "num_kept": pairs.num_kept,
                **{f"num_{held.name}": held.pairs.total for held in self.held_out},
            },
            dropped=dict(pairs.dropped),
            summary=(
                _summary(src, tgt), *_direction(src, tgt, languages), *(held.summary for held in self.held_out)
            ),
            languages={side: language_by_script(scan.sample.lines) for side, scan in (("src", src), ("tgt", tgt))},
        )  # fmt: skip


class TextExamination(Examination[str, TextCounts]):
    """Examination of the lines of a text."""

    num_keys = 1
    held_out: Sequence[HeldOutText]

    def __init__(
        self, valid: Iterable[str] | None = None, test: Iterable[str] | None = None, *,
        normaliser: Normaliser | None = None,
    ) -> None:  # fmt: skip
        self.problems = []
        self._normalise = (normaliser or Normaliser()).apply
        self.held_out = [
            HeldOutText(name, until_error(lines, name, self.problems), self._normalise)
            for name, lines in (("validation", valid), ("test", test))
            if lines is not None
        ]

    def begin(self, first: int = 0, total: int = 0) -> TextCounts:
        return TextCounts(LineScan("text", EvenSample.of_part(first, total)), Tally(), self._nothing_found())

    def keys(self, row: str) -> tuple[int]:
        """Of the line, unless it is short: such lines recur in any text."""
        line = self._normalise(row)
        return (hash_text(line) if len(line) >= HeldOutText.MIN_CHARACTERS else 0,)

    def add(self, counts: TextCounts, number: int, row: str, keys: Sequence[int], are_new: Sequence[bool]) -> None:
        counts.text.add(number, row)
        if not are_new[0]:
            counts.repeated.add(number, row)
        for held in self.held_out:
            held.lines.compare(keys[0], number, row)

    def diagnosis(
        self, counts: TextCounts, cut: Sequence[Finding] = (), languages: tuple[str, str] = ("", ""),
        to_exchange: str = "",
    ) -> Diagnosis:  # fmt: skip
        self._find_in(counts.found)
        scan = counts.text
        findings = [*self.problems, *_unless_cut([*scan.findings(), *_short(scan)], cut)]
        findings += REPEATED.findings(counts.repeated, scan.num_lines, "lines")
        for held in self.held_out:
            findings += held.findings(scan)
        return Diagnosis(
            findings=sorted_findings(findings),
            num_pairs=scan.num_lines,
            statistics=_sizes("text", scan),
            summary=(_summary(scan), *(held.summary for held in self.held_out)),
        )


def until_error(items: Iterable[T], name: str, problems: list[Finding]) -> Iterator[T]:
    """The items up to an error in the file, which becomes a finding; the rest of the diagnosis is still useful."""
    try:
        yield from items
    except DataError as error:
        message = f"The {name} data cannot be read to its end. {error}"
        problems.append(Finding("unreadable", "stop", 1, 1, message, ""))


def _unless_cut(findings: Iterable[Finding], cut: Sequence[Finding]) -> list[Finding]:
    """All findings; if the training data was cut off by an error, without the one that there are few lines."""
    return [*cut, *(finding for finding in findings if not (cut and finding.check == "few"))]


def _short(scan: LineScan) -> Iterator[Finding]:
    if scan.num_characters < Thresholds.min_characters:
        limit = f"{Thresholds.min_characters:,}"
        message = f"The text has {scan.num_characters:,} characters; a model learns nothing from fewer than {limit}."
        yield Finding("few", "stop", scan.num_characters, scan.num_characters, message, "Provide more text.")


def _sizes(prefix: str, scan: LineScan) -> dict[str, float]:
    return {
        f"{prefix}_words": scan.mean_words, f"{prefix}_characters": scan.mean_characters,
        f"{prefix}_unspaced": scan.unspaced_share,
    }  # fmt: skip


def _summary(*scans: LineScan) -> str:
    sizes = [f"{scan.mean_words:.1f} words ({scan.mean_characters:.0f} characters)" for scan in scans]
    if len(scans) > 1:
        sizes = [f"{scan.side} {size}" for scan, size in zip(scans, sizes, strict=True)]
    num, what = scans[0].num_lines, "pair" if len(scans) > 1 else "line"
    return f"train: {num:,} {what}{'s' * (num != 1)}; a line has {', '.join(sizes)}."


def _direction(src: LineScan, tgt: LineScan, languages: tuple[str, str]) -> Iterator[str]:
    """The direction of translation, shown by the first lines, where exchanged files are easy to see."""
    firsts = [next((line for line in scan.sample.lines if line.strip()), "") for scan in (src, tgt)]
    if all(firsts):
        names = [f"{name_of(code)} " if code else "" for code in languages]
        begins = [visible(first[:SHOWN]) + "…" * (len(first) > SHOWN) for first in firsts]
        src_side, tgt_side = (f'{name}"{begin}"' for name, begin in zip(names, begins, strict=True))
        yield f"translates from {src_side} to {tgt_side}."
