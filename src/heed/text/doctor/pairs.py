"""Checks of sentence pairs: empty sides, copies, duplicates, lengths, alignment."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from statistics import correlation, pstdev
from typing import ClassVar

from heed.core.environment import guide
from heed.text.doctor.findings import Check, Finding, Tallies, Tally, Thresholds, grade, merge_tallies, share
from heed.text.pair_filter import PairFilterConfig, reason_to_drop

# fmt: off
EMPTY = Check("empty", "have an empty side", "Check whether the files are misaligned.", stop=Thresholds.stop_empty)
PAIR_CHECKS = (
    Check("copy", "have a target identical to the source",
          "Remove them, except names and numbers: they teach a model to copy.", stop=Thresholds.stop_copies),
    Check("length-ratio", "have one side more than {ratio:g} times as long as the other",
          "Check whether they are translations."),
    Check("long", f"have a side of more than {Thresholds.long_line:,} characters",
          "Split them into sentences on both sides: pairs that are too long for the model are left out."),
    Check("duplicate", "repeat an earlier one", "Check why they repeat: one of each is enough.",
          warn=Thresholds.warn_repeated),
    Check("several-targets", "repeat an earlier source with another target", warn=1.0),
)
# fmt: on


@dataclass
class LengthCorrelation:
    """Correlation of source and target lengths, block by block; where there is none, the files are misaligned.

    Pearson's correlation of the logarithms of the lengths in characters, so that a few very long lines do not decide. A
    block whose lengths hardly vary (a corpus sorted by length, numbers of fixed width) is not judged.
    """

    BLOCK: ClassVar = 250
    """Small enough for some hundred misaligned lines to fill blocks, large enough for a correlation exact to 0.1."""
    SMALLEST_BLOCK: ClassVar = 200
    MIN_DEVIATION: ClassVar = 0.2
    """Standard deviation of the logarithms on each side: lengths that vary by about a fifth."""

    first: int = 1
    """The number of the first pair; later ones are added in order."""
    next: int = 1
    num_judged: int = 0
    unrelated: list[int] = field(default_factory=list)
    """The first pair, counted from 1, of each block with a correlation below `Thresholds.unrelated_lengths`."""
    open: dict[int, list[tuple[int, int]]] = field(default_factory=dict)
    """The lengths of the pairs in blocks that are not complete, by the number of the first pair of the block."""

    def add(self, src: str, tgt: str) -> None:
        """Add the next pair; one with an empty side is not counted."""
        start = self.next - (self.next - 1) % self.BLOCK
        if src and tgt:
            self.open.setdefault(start, []).append((len(src), len(tgt)))
        self.next += 1
        if self.next == start + self.BLOCK:
            self._judge_complete()

    def merge(self, next_part: LengthCorrelation) -> None:
        """Add the next part of the pairs."""
        self.next = next_part.next
        self.num_judged += next_part.num_judged
        self.unrelated += next_part.unrelated
        for start, lengths in next_part.open.items():
            self.open.setdefault(start, []).extend(lengths)
        self._judge_complete()
        self.unrelated.sort()

    def _judge_complete(self) -> None:
        for start in [start for start in self.open if self.first <= start <= self.next - self.BLOCK]:
            self._judge(start)

    def _judge(self, start: int) -> None:
        lengths = self.open.pop(start)
        if len(lengths) < self.SMALLEST_BLOCK:
            return
        src, tgt = ([math.log(length) for length in side] for side in zip(*lengths, strict=True))
        if min(pstdev(src), pstdev(tgt)) > self.MIN_DEVIATION:
            self.num_judged += 1
            if correlation(src, tgt) < Thresholds.unrelated_lengths:
                self.unrelated.append(start)

    def close(self) -> None:
        """Evaluate the pairs since the last complete block."""
        for start in sorted(self.open):
            self._judge(start)


@dataclass
class PairScan:
    """Counts the problems of the pairs of a training corpus, and those that the filter would drop."""

    config: PairFilterConfig = field(default_factory=PairFilterConfig)
    """The filter."""
    in_one_file: bool = False
    lengths: LengthCorrelation = field(default_factory=LengthCorrelation)
    num_pairs: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    """Pairs that the filter would drop, by reason."""
    tallies: Tallies = field(default_factory=lambda: defaultdict(Tally))

    def add(self, number: int, src: str, tgt: str, is_new_source: bool, is_new: bool) -> None:
        """Examine pair `number`, counted from 1; whether its source and the pair occur for the first time."""
        self.num_pairs += 1
        self.lengths.add(src.strip(), tgt.strip())
        is_empty = not (src.strip() and tgt.strip())
        if is_empty:
            self.tallies["empty"].add_pair(number, src, tgt)
        elif src.strip() == tgt.strip():
            self.tallies["copy"].add_pair(number, src, tgt)
        if max(len(src), len(tgt)) > Thresholds.long_line:
            self.tallies["long"].add_pair(number, src, tgt)
        if not is_new and not is_empty:
            self.tallies["duplicate"].add_pair(number, src, tgt)
        elif not is_new_source and not is_empty:
            self.tallies["several-targets"].add_pair(number, src, tgt)
        if reason := reason_to_drop(self.config, src, tgt, lambda: is_new):
            self.dropped[reason] += 1
        if reason == "length ratio":
            self.tallies["length-ratio"].add_pair(number, src, tgt)

    def merge(self, next_part: PairScan) -> None:
        """Add the counts of the next part of the pairs."""
        self.lengths.merge(next_part.lengths)
        self.num_pairs += next_part.num_pairs
        self.dropped += next_part.dropped
        merge_tallies(self.tallies, next_part.tallies)

    @property
    def num_kept(self) -> int:
        """The number of pairs that the filter keeps."""
        return self.num_pairs - self.dropped.total()

    def findings(self) -> Iterator[Finding]:
        """The findings. Ends the scan."""
        empty = EMPTY
        if self.in_one_file:  # where sides cannot shift
            advice = "They are left out. Check whether the right columns or languages were selected."
            empty = replace(empty, advice=advice, stop=1.0)
        ratio = self.config.max_length_ratio
        for check in (empty, *PAIR_CHECKS):
            filled = replace(check, what=check.what.format(ratio=ratio))
            yield from filled.findings(self.tallies[check.name], self.num_pairs, "pairs")
        yield from self._misaligned()
        yield from self._filtered()
        yield from too_few(self.num_pairs, self.dropped)

    def _misaligned(self) -> Iterator[Finding]:
        self.lengths.close()
        bad, judged = self.lengths.unrelated, self.lengths.num_judged
        if not bad:
            return
        severity = grade(len(bad) / judged, Thresholds.stop_misaligned, 0.0)
        starts = ", ".join(f"{start:,}" for start in bad[:4]) + (", ..." if len(bad) > 4 else "")
        message = (
            f"In {len(bad):,} of {judged:,} blocks of {LengthCorrelation.BLOCK:,} pairs, the lengths of source and "
            f"target are unrelated (blocks that start at line {starts}): there the files are misaligned, or the target "
            "is not a translation."
        )
        advice = "Look at the pairs around these lines and align the files again."
        yield Finding("misaligned", severity, len(bad), judged, message, advice)

    def _filtered(self) -> Iterator[Finding]:
        dropped = self.dropped
        count = dropped.total()
        if count:
            part = share(count, self.num_pairs)
            message = f"The filter drops {count:,} of {self.num_pairs:,} pairs ({part}): {reasons_of(dropped)}."
            severity = grade(count / self.num_pairs, 1.0, Thresholds.warn_repeated)
            yield Finding("filter", severity, count, self.num_pairs, message, "Training does not use them.")


def too_few(num_pairs: int, dropped: Counter[str]) -> Iterator[Finding]:
    """The finding that few pairs are left to train on, of `num_pairs` of which the filter drops some."""
    kept = num_pairs - dropped.total()
    there_are = f"There {'is 1 pair' if kept == 1 else f'are {kept:,} pairs'} to train on"
    if kept < Thresholds.min_pairs and 2 * dropped.total() > num_pairs:
        message = f"The filter keeps {kept:,} of {num_pairs:,} pairs to train on; it drops {reasons_of(dropped)}."
        yield Finding("few", "stop", kept, num_pairs, message, "Check that these are the right files and columns.")
    elif kept < Thresholds.min_pairs:
        message = f"{there_are}; a model learns nothing from fewer than {Thresholds.min_pairs:,}."
        yield Finding("few", "stop", kept, num_pairs, message, "Provide more data.")
    elif kept < Thresholds.few_pairs:
        message = f"{there_are}: expect a weak translator."
        advice = f"More pairs help, and so does starting from a related run (--init): see {guide('more-data.md')}."
        yield Finding("few", "warn", kept, num_pairs, message, advice)


def reasons_of(dropped: Counter[str]) -> str:
    """`10 duplicate, 1 empty`."""
    return ", ".join(f"{number:,} {reason}" for reason, number in dropped.most_common())
