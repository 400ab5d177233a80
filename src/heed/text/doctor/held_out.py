"""Checks of validation and test sets: not in the training data, and in the same direction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from heed.text.doctor.findings import Check, Finding, Tally, Thresholds, excerpt, share
from heed.text.doctor.lines import LineScan
from heed.text.doctor.pairs import EMPTY
from heed.text.hashing import hash_pair, hash_text
from heed.text.language.identify import are_crossed, profile, similarity

LEAKED_ADVICE = "Remove them from the training data: a score on training sentences is meaningless."
LEAKED = Check("leaked", "are in the training data", LEAKED_ADVICE, stop=Thresholds.stop_leaked)
LEAKED_SIDE = Check("leaked", "are in the training data", LEAKED_ADVICE)
EMPTY_HELD_OUT = Check("empty", EMPTY.what, "Remove them: they count as wrong translations.", stop=EMPTY.stop)


Found = dict[int, tuple[int, str]]
"""Where a text of a held-out set is first in the training data, by its hash: the line, and an excerpt."""


class Overlap:
    """Counts the texts of a held-out set that are also in the training data."""

    def __init__(self, name: str) -> None:
        self.total = 0
        self._name = name
        self._expected: dict[int, tuple[int, int]] = {}  # hash -> first line, how many lines
        self.found: Found = {}

    @property
    def tally(self) -> Tally:
        """The texts that are in the training data, with the first examples there."""
        tally = Tally()
        for key, (number, text) in self.found.items():
            tally.add(number, text, times=self._expected[key][1])
        return tally

    @property
    def extent(self) -> str:
        """Number and share of these texts: `12 (3.4 %)`."""
        return f"{self.tally.count:,} ({share(self.tally.count, self.total)})"

    def expect(self, key: int, number: int) -> None:
        """Add a text of the held-out set, on its line `number`."""
        self.total += 1
        first, times = self._expected.get(key, (number, 0))
        self._expected[key] = first, times + 1

    def compare(self, key: int, number: int, text: str) -> None:
        """Look up a text of the training set, on its line `number`."""
        if key in self._expected and key not in self.found:
            first, _ = self._expected[key]
            self.found[key] = number, excerpt(f"({self._name} line {first:,}) {text}")


class HeldOutPairs:
    """A validation or test set of sentence pairs, read completely before the training data."""

    MIN_LINES_TO_COMPARE = 20

    def __init__(self, name: str, pairs: Iterable[tuple[str, str]], normalise: Callable[[str], str]) -> None:
        self.name = name
        self.src = LineScan(f"{name} source")
        self.tgt = LineScan(f"{name} target")
        self.pairs = Overlap(name)
        self.sources = Overlap(name)
        self.targets = Overlap(name)
        self._empty = Tally()
        for number, (src, tgt) in enumerate(pairs, start=1):
            self.src.add(number, src)
            self.tgt.add(number, tgt)
            src, tgt = normalise(src), normalise(tgt)
            self.sources.expect(hash_text(src), number)
            self.targets.expect(hash_text(tgt), number)
            self.pairs.expect(hash_pair(src, tgt), number)
            if not (src.strip() and tgt.strip()):
                self._empty.add_pair(number, src, tgt)

    def compare(self, number: int, src: str, tgt: str, src_hash: int, pair_hash: int) -> None:
        """Compare with pair `number` of the training data, which is normalised."""
        self.sources.compare(src_hash, number, src)
        self.targets.compare(hash_text(tgt), number, tgt)
        self.pairs.compare(pair_hash, number, src)

    @property
    def overlaps(self) -> tuple[Overlap, ...]:
        """All that is compared."""
        return self.pairs, self.sources, self.targets

    @property
    def summary(self) -> str:
        """The overlap with the training data, as a sentence."""
        return (
            f"{self.name}: {self.pairs.total:,} pairs. In the training data: {self.pairs.extent} of the pairs, "
            f"{self.sources.extent} of the sources, {self.targets.extent} of the targets."
        )

    def findings(self, src: LineScan, tgt: LineScan) -> Iterator[Finding]:
        """The findings, given the scans of the two sides of the training data."""
        total = self.pairs.total
        yield from LEAKED.findings(self.pairs.tally, total, f"{self.name} pairs")
        for overlap, what in ((self.sources, "sources"), (self.targets, "targets")):
            if overlap.tally.count > self.pairs.tally.count:
                yield from LEAKED_SIDE.findings(overlap.tally, total, f"{self.name} {what}")
        yield from EMPTY_HELD_OUT.findings(self._empty, total, f"{self.name} pairs")
        for own, opposite, other in ((self.src, self.tgt, src), (self.tgt, self.src, tgt)):
            yield from (finding for finding in own.findings(opposite) if finding.severity != "note")
            yield from tokenised_differently(own, other)
        yield from self._swapped(src, tgt)

    def _swapped(self, src: LineScan, tgt: LineScan) -> Iterator[Finding]:
        total = self.pairs.total
        if total < self.MIN_LINES_TO_COMPARE:
            return
        own_src, own_tgt, other_src, other_tgt = (profile(scan.sample.lines) for scan in (self.src, self.tgt, src, tgt))
        crossed = are_crossed(own_src, own_tgt, other_src, other_tgt)
        if crossed and similarity(other_src, other_tgt) < Thresholds.same_language:
            message = f"The {self.name} source looks like the training target, and the target like the source."
            advice = f"Swap the two sides of the {self.name} data or of the training data, whichever are wrong."
            yield Finding("swapped", "stop", total, total, message, advice)


class HeldOutText:
    """A monolingual validation or test set. Short lines, which recur in any text, are not compared."""

    MIN_CHARACTERS = 20

    def __init__(self, name: str, lines: Iterable[str], normalise: Callable[[str], str]) -> None:
        self.name = name
        self.scan = LineScan(name)
        self.lines = Overlap(name)
        for number, line in enumerate(lines, start=1):
            self.scan.add(number, line)
            line = normalise(line)
            if len(line) >= self.MIN_CHARACTERS:
                self.lines.expect(hash_text(line), number)

    @property
    def overlaps(self) -> tuple[Overlap, ...]:
        """All that is compared."""
        return (self.lines,)

    @property
    def summary(self) -> str:
        """The overlap with the training data, as a sentence."""
        count, total = self.lines.tally.count, self.lines.total
        return (
            f"{self.name}: {total:,} lines of {self.MIN_CHARACTERS} characters or more; {count:,} of them "
            f"({share(count, total)}) are in the training data."
        )

    def findings(self, train: LineScan) -> Iterator[Finding]:
        """The findings, given the scan of the training text."""
        yield from LEAKED.findings(self.lines.tally, self.lines.total, f"{self.name} lines")
        yield from (finding for finding in self.scan.findings() if finding.severity != "note")
        yield from tokenised_differently(self.scan, train)


def tokenised_differently(one: LineScan, other: LineScan) -> Iterator[Finding]:
    """The finding that of two corresponding sides only one is tokenised."""
    shares = one.tokenised_share, other.tokenised_share
    if shares[0] is None or shares[1] is None or abs(shares[0] - shares[1]) <= Thresholds.tokenised:
        return
    yes, no = (one, other) if shares[0] > shares[1] else (other, one)
    message = f"The {yes.side} lines are tokenised (a space before commas and full stops); the {no.side} lines are not."
    yield Finding("tokenised-differently", "warn", yes.num_lines, yes.num_lines, message, "Use plain text for both.")
