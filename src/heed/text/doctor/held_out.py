"""Are validation and test sets what they claim to be: unseen, and in the direction of training?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from heed.text.doctor.findings import Finding, Tally, fault, share
from heed.text.doctor.lines import LineScan
from heed.text.doctor.thresholds import Thresholds
from heed.text.hashing import hash_pair, hash_text
from heed.text.language.identify import are_crossed, profile, similarity


class Overlap:
    """How many texts of a held-out set stand in training too."""

    def __init__(self, name: str, num_examples: int) -> None:
        self.total = 0
        self._name = name
        self.tally = Tally(num_examples)
        self._waiting: dict[int, tuple[int, int]] = {}  # hash -> first line, how many lines

    def expect(self, key: int, number: int) -> None:
        """A text of the held-out set, on line `number` there."""
        self.total += 1
        first, times = self._waiting.get(key, (number, 0))
        self._waiting[key] = first, times + 1

    def meet(self, key: int, number: int, text: str) -> None:
        """A text of the training set, on line `number` there."""
        if key in self._waiting:
            first, times = self._waiting.pop(key)
            self.tally.add(number, f"({self._name} line {first:,}) {text}", times=times)


class HeldOutPairs:
    """A validation or test set of sentence pairs, read completely before training data is looked at."""

    MIN_LINES_TO_COMPARE = 20

    def __init__(self, name: str, pairs: Iterable[tuple[str, str]], thresholds: Thresholds) -> None:
        self.name = name
        self.src = LineScan(f"{name} source", thresholds)
        self.tgt = LineScan(f"{name} target", thresholds)
        self.pairs = Overlap(name, thresholds.num_examples)
        self.sources = Overlap(name, thresholds.num_examples)
        self.targets = Overlap(name, thresholds.num_examples)
        self._thresholds = thresholds
        self._empty = Tally(thresholds.num_examples)
        for number, (src, tgt) in enumerate(pairs, start=1):
            self.src.add(number, src)
            self.tgt.add(number, tgt)
            self.sources.expect(hash_text(src), number)
            self.targets.expect(hash_text(tgt), number)
            self.pairs.expect(hash_pair(src, tgt), number)
            if not (src.strip() and tgt.strip()):
                self._empty.add_pair(number, src, tgt)

    def meet(self, number: int, src: str, tgt: str, src_hash: int, pair_hash: int) -> None:
        """Compare with pair `number` of training."""
        self.sources.meet(src_hash, number, src)
        self.targets.meet(hash_text(tgt), number, tgt)
        self.pairs.meet(pair_hash, number, src)

    @property
    def summary(self) -> str:
        """How much of the set is in training, in words."""
        total = self.pairs.total
        pairs, sources, targets = (
            f"{overlap.tally.count:,} ({share(overlap.tally.count, total)})"
            for overlap in (self.pairs, self.sources, self.targets)
        )
        return (
            f"{self.name}: {total:,} pairs, of which {pairs} are in training, "
            f"{sources} by their source alone and {targets} by their target alone."
        )

    def findings(self, src: LineScan, tgt: LineScan) -> Iterator[Finding]:
        """What was found, given the scans of the training set's sides."""
        limits = self._thresholds
        yield from leak(self.pairs, f"{self.name} pairs", limits.stop_leaked, limits)
        for overlap, what in ((self.sources, "sources"), (self.targets, "targets")):
            if overlap.tally.count > self.pairs.tally.count:
                yield from leak(overlap, f"{self.name} {what}", 1.0, limits)
        yield from fault(
            "empty",
            self._empty,
            self.src.num_lines,
            f"{self.name} pairs",
            "have an empty side",
            "They count as wrong translations: remove them.",
            stop=limits.stop_empty,
            warn=limits.warn,
        )
        for own, beside, other in ((self.src, self.tgt, src), (self.tgt, self.src, tgt)):
            yield from (finding for finding in own.findings(beside) if finding.severity != "note")
            yield from tokenised_differently(own, other, limits.tokenised)
        yield from self._swapped(src, tgt)

    def _swapped(self, src: LineScan, tgt: LineScan) -> Iterator[Finding]:
        if self.src.num_lines < self.MIN_LINES_TO_COMPARE:
            return
        own_src, own_tgt, other_src, other_tgt = (profile(scan.sample.lines) for scan in (self.src, self.tgt, src, tgt))
        crossed = are_crossed(own_src, own_tgt, other_src, other_tgt)
        if crossed and similarity(other_src, other_tgt) < self._thresholds.same_language:
            total = self.src.num_lines
            message = f"The {self.name} source looks like the training target, and the other way round."
            advice = f"Exchange the two sides of {self.name}, or those of training: whichever are the wrong way round."
            yield Finding("swapped", "stop", total, total, message, advice)


class HeldOutText:
    """A monolingual validation or test set. Short lines, which recur in any text, are not compared."""

    MIN_CHARACTERS = 20

    def __init__(self, name: str, lines: Iterable[str], thresholds: Thresholds) -> None:
        self.name = name
        self.scan = LineScan(name, thresholds)
        self.lines = Overlap(name, thresholds.num_examples)
        self._thresholds = thresholds
        for number, line in enumerate(lines, start=1):
            self.scan.add(number, line)
            if len(line) >= self.MIN_CHARACTERS:
                self.lines.expect(hash_text(line), number)

    @property
    def summary(self) -> str:
        """How much of the set is in training, in words."""
        count, total = self.lines.tally.count, self.lines.total
        return (
            f"{self.name}: {total:,} lines of some length, of which {count:,} ({share(count, total)}) are in training."
        )

    def findings(self, train: LineScan) -> Iterator[Finding]:
        """What was found, given the scan of the training text."""
        yield from leak(self.lines, f"{self.name} lines", self._thresholds.stop_leaked, self._thresholds)
        yield from (finding for finding in self.scan.findings() if finding.severity != "note")
        yield from tokenised_differently(self.scan, train, self._thresholds.tokenised)


def leak(overlap: Overlap, what: str, stop: float, thresholds: Thresholds) -> Iterator[Finding]:
    """The finding that held-out texts are in training."""
    return fault(
        "leaked",
        overlap.tally,
        overlap.total,
        what,
        "are in the training data",
        "Remove them from training: a score on what was trained on says nothing.",
        stop=stop,
        warn=thresholds.warn,
    )


def tokenised_differently(one: LineScan, other: LineScan, limit: float) -> Iterator[Finding]:
    """The finding that one side is tokenised and its counterpart is not."""
    shares = one.tokenised_share, other.tokenised_share
    if shares[0] is None or shares[1] is None or abs(shares[0] - shares[1]) <= limit:
        return
    yes, no = (one, other) if shares[0] > shares[1] else (other, one)
    message = f"The {yes.side} lines are tokenised (a space before commas and full stops), the {no.side} lines are not."
    yield Finding("tokenised-differently", "warn", yes.num_lines, yes.num_lines, message, "Use plain text for both.")
