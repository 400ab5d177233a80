"""Learning from corrections: data for a fine-tuning, and the decision whether its outcome replaces the old model.

A tenth of the corrected sources chooses the best weights, together with the old validation data; a fifth is never
trained on and decides. The rest is learned, with a replay of the old training data, without which a model forgets
(Chu, Dabre & Kurohashi 2017, mixed fine-tuning). A source belongs to one of the three whatever else is in the memory,
so that a later night does not learn from what an earlier one was judged by.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from heed.core.errors import DataError, UsageError
from heed.core.files import atomic_write
from heed.metrics.significance import Comparison
from heed.tasks.prepare import Row, read_valid
from heed.tasks.translation.data import TranslationData
from heed.tasks.translation.prepare import filtered_pairs
from heed.text.hashing import hash_text

FEWEST = 100
"""Corrected sources that are needed: a fifth of fewer decides nothing."""
REPLAY = 10
"""Old pairs for each correction."""
LEAST_REPLAY = 20_000
SHARE = 0.25
"""Of the rows of an epoch, those of corrections, which are repeated for that."""
MOST_REPEATS = 20
LEVEL = 0.05
"""Of the tests that decide."""


@dataclass(frozen=True)
class Decision:
    """Whether the new model replaces the old one."""

    accepted: bool
    reason: str


@dataclass(frozen=True)
class Lesson:
    """Corrections in three parts, each pairs of a source and its translation."""

    learned: Sequence[Row]
    chosen_by: Sequence[Row]
    judged_by: Sequence[Row]

    def write(self, folder: Path, data: TranslationData, run: Path, seed: int) -> dict[str, Any]:
        """Write the files of a fine-tuning, and return the keys of `[data]` that read them.

        `data` and `run`: of the model that is trained further. Raises UsageError for a run with tags, and DataError
        without its training data.
        """
        if data.tags:
            raise UsageError("learning from corrections does not work with tags before the sources yet.")
        judged = {src for src, _ in self.judged_by}
        valid = [*(row for row in read_valid(run) if row[0] not in judged), *self.chosen_by]
        kept_apart = {text for row in (*valid, *self.judged_by) for text in row}
        number = max(LEAST_REPLAY, REPLAY * len(self.learned))
        replay = list(_sample(_old_pairs(data, kept_apart), number, seed))
        folder.mkdir(parents=True, exist_ok=True)
        for name, rows in (("replay", replay), ("learned", self.learned), ("valid", valid)):
            for side, suffix in enumerate(("src", "tgt")):
                with atomic_write(folder / f"{name}.{suffix}", "w") as file:
                    file.writelines(f"{_one_line(row[side])}\n" for row in rows)
        repeat = min(MOST_REPEATS, max(1, round(SHARE / (1 - SHARE) * len(replay) / len(self.learned))))
        part = {**_files(folder, "learned"), "repeat": repeat}
        valid_files = {f"valid_{side}": path for side, path in _files(folder, "valid").items()}
        return {**_files(folder, "replay"), **valid_files, "parts": [part], "pairs": "", "valid_pairs": ""}

    @staticmethod
    def decide(on_corrections: Mapping[str, Comparison], on_validation: Mapping[str, Comparison]) -> Decision:
        """Accept a model that is better on corrections it has not seen, and not worse on the old validation data.

        The comparisons are with the old model, by BLEU and chrF. Better: chrF is higher, and chance explains the
        difference with a probability below `LEVEL`. Worse: either score is lower with such a probability.
        """
        gain = on_corrections["chrf"]
        if not (gain.difference > 0 and _p(gain) < LEVEL):
            reason = f"chrF {gain.difference:+.1f}, p = {_p(gain):.3f}"
            return Decision(False, f"it is not better on the corrections: {reason}")
        for name, each in on_validation.items():
            if each.difference < 0 and _p(each) < LEVEL:
                reason = f"{name} {each.difference:+.1f}, p = {_p(each):.3f}"
                return Decision(False, f"it is worse on the old validation data: {reason}")
        return Decision(True, f"chrF {gain.difference:+.1f} on the corrections, p = {_p(gain):.3f}")


def split(corrections: Iterable[tuple[str, str]]) -> Lesson:
    """Divide corrections by their sources. Raises DataError for too few."""
    parts: dict[str, list[Row]] = {"learned": [], "chosen_by": [], "judged_by": []}
    sources = set()
    for src, tgt in corrections:
        tenth = hash_text(src) % 10
        parts["judged_by" if tenth < 2 else "chosen_by" if tenth == 2 else "learned"].append((src, tgt))
        sources.add(src)
    if len(sources) < FEWEST or not all(parts.values()):
        raise DataError(
            f"{len(sources):,} sources have an approved translation, and learning from them needs {FEWEST}: approve "
            "more with heed memory review."
        )
    return Lesson(**parts)


def _files(folder: Path, name: str) -> dict[str, str]:
    return {side: str((folder / f"{name}.{side}").absolute()) for side in ("src", "tgt")}


def _old_pairs(data: TranslationData, kept_apart: set[str]) -> Iterator[tuple[str, str]]:
    for part in data.train_parts():
        for src, tgt in filtered_pairs(data, part.files, Counter()):
            if kept_apart.isdisjoint((src, tgt)):
                yield src, tgt


def _sample(pairs: Iterator[tuple[str, str]], number: int, seed: int) -> Iterator[tuple[str, str]]:
    """Up to `number` pairs, those with the smallest hashes: the same ones whatever their order."""
    numbered = ((hash_text(f"{seed} {src}"), src, tgt) for src, tgt in pairs)
    yield from ((src, tgt) for _, src, tgt in islice(sorted(numbered), number))


def _one_line(text: str) -> str:
    return " ".join(text.splitlines())


def _p(comparison: Comparison) -> float:
    p = comparison.p_randomisation
    return 1.0 if p is None else p
