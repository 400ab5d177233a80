"""Word F1 by frequency in the training data.

As compare-mt (Neubig et al. 2019) computes it: the words of the output that are also in the reference, clipped for each
sentence, for bands of frequency. And as Sennrich et al. (2016, tables 2 and 3) report it: for all words, rare ones (not
among the 50,000 most frequent of the training data) and unseen ones. BLEU's tokenizer splits the words, so a full stop
is a word of its own; case matters.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Self, TypeVar

from heed.core.errors import DataError, UsageError
from heed.core.json_text import parse_json
from heed.core.own_files import LARGE
from heed.core.progress import warn
from heed.core.run_files import RunFiles
from heed.metrics.translation import word_cutter

K = TypeVar("K", bound=Hashable)

LEAST_FREQUENT = (0, 1, 2, 5, 10, 100, 1000)
"""The training count of the rarest word of each band."""


@dataclass
class WordCounts:
    """The count of each word in the target side of the training data."""

    tokenizer: str
    """Name of sacreBLEU's tokenizer: `13a`, `zh`, `char`, ..."""
    counts: Counter[str] = field(default_factory=Counter)

    @cached_property
    def cut(self) -> Callable[[str], list[str]]:
        return word_cutter(self.tokenizer)

    def add(self, line: str) -> None:
        self.counts.update(self.cut(line))

    def write(self, files: RunFiles, name: str) -> None:
        """Write the counts into a run folder as JSON, the most frequent first."""
        with files.write(name, "w") as file:
            document = {"tokenizer": self.tokenizer, "counts": dict(self.counts.most_common())}
            json.dump(document, file, ensure_ascii=False, indent=0)

    @classmethod
    def read(cls, files: RunFiles, name: str) -> Self | None:
        """Read what `write` wrote; None if the file does not exist. Raises DataError if it is damaged.

        Also None, with a warning, if the package that its tokenizer needs is missing.
        """
        if not files.has(name):
            return None
        path, advice = files.folder / name, "Remove it to score without frequencies."
        try:
            document = parse_json(files.read(name, LARGE, advice))
            counts = Counter({word: int(count) for word, count in document["counts"].items()})
            read = cls(str(document["tokenizer"]), counts)
        except (ValueError, TypeError, LookupError, AttributeError, OverflowError) as error:
            raise DataError(f"{path} is damaged ({error}). {advice}") from error
        try:
            word_cutter(read.tokenizer)
        except UsageError as error:
            warn(f"no scores by frequency: {error}")
            return None
        return read


@dataclass(frozen=True, kw_only=True)
class WordMatches:
    """The number of words of some kind in outputs, in references, and in both."""

    num_reference: int
    """Such words in the references."""
    num_output: int
    """Such words in the outputs."""
    num_right: int
    """Such words in the output and the reference of the same sentence."""

    @property
    def precision(self) -> float:
        """Share of the outputs' words that are right; 0 without any."""
        return self.num_right / max(self.num_output, 1)

    @property
    def recall(self) -> float:
        """Share of the references' words that were produced; 0 without any."""
        return self.num_right / max(self.num_reference, 1)

    @property
    def f1(self) -> float:
        """2 PR / (P + R) = 2 · right / (output + reference)."""
        return 2 * self.num_right / max(self.num_output + self.num_reference, 1)

    def to_json(self) -> dict[str, str | int | float | None]:
        """The counts, precision, recall and F1, in types that `json` writes."""
        return {**asdict(self), "precision": self.precision, "recall": self.recall, "f1": self.f1}


@dataclass(frozen=True)
class FrequencyBand(WordMatches):
    """The words that occur `rarest` to `commonest` times in the training data."""

    rarest: int
    commonest: int | None
    """None: no limit."""

    @property
    def label(self) -> str:
        """`never`, `once`, `2–4`, `1,000 or more`."""
        if self.commonest is None:
            return f"{self.rarest:,} or more"
        return {0: "never", 1: "once"}.get(self.commonest, f"{self.rarest}–{self.commonest}")

    def to_json(self) -> dict[str, str | int | float | None]:
        return {**super().to_json(), "label": self.label}


def by_frequency(outputs: Sequence[str], references: Sequence[str], training: WordCounts) -> list[FrequencyBand]:
    """Every band, unseen words first."""
    matches = _matches(
        outputs, references, training, lambda word: [bisect_right(LEAST_FREQUENT, training.counts[word]) - 1]
    )
    ends = [*(rarest - 1 for rarest in LEAST_FREQUENT[1:]), None]
    bands = zip(LEAST_FREQUENT, ends, range(len(ends)), strict=True)
    return [FrequencyBand(rarest, commonest, **asdict(matches(place))) for rarest, commonest, place in bands]


def unigram_f1(
    outputs: Sequence[str], references: Sequence[str], training: WordCounts, num_common: int
) -> dict[str, WordMatches]:
    """The matches of `all` words, `rare` ones (not among the `num_common` most frequent) and `unseen` ones.

    Unseen words are rare too. Ties in frequency are broken alphabetically.
    """
    ranked = sorted(training.counts, key=lambda word: (-training.counts[word], word))
    common = frozenset(ranked[:num_common])

    def kinds(word: str) -> list[str]:
        return ["all"] + ["rare"] * (word not in common) + ["unseen"] * (word not in training.counts)

    matches = _matches(outputs, references, training, kinds)
    return {kind: matches(kind) for kind in ("all", "rare", "unseen")}


def _matches(
    outputs: Sequence[str], references: Sequence[str], training: WordCounts, kinds: Callable[[str], Iterable[K]]
) -> Callable[[K], WordMatches]:
    """The matches of each kind of word."""
    reference, output, right = Counter[K](), Counter[K](), Counter[K]()
    for output_line, reference_line in zip(outputs, references, strict=True):
        produced, expected = Counter(training.cut(output_line)), Counter(training.cut(reference_line))
        for totals, words in ((reference, expected), (output, produced), (right, produced & expected)):
            for word, count in words.items():
                for kind in kinds(word):
                    totals[kind] += count
    return lambda kind: WordMatches(num_reference=reference[kind], num_output=output[kind], num_right=right[kind])
