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
from heapq import nsmallest
from pathlib import Path
from typing import Any

from heed.core.errors import DataError, UsageError
from heed.core.files import atomic_write
from heed.data.validation import Row, read_valid
from heed.metrics.significance import Comparison
from heed.tasks.translation.data import TranslationData
from heed.tasks.translation.prepare import filtered_pairs
from heed.text.hashing import hash_text
from heed.text.readers.tables import one_line

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

        `data` and `run`: of the model that is trained further. Corrections have the tag of the validation data. Raises
        UsageError if that is not the tag with which the run translates, if only a share of the pairs would be learned,
        or if the run was trained on files of the folder, and DataError without its training data.
        """
        if data.share != 1:
            raise UsageError(
                f"data.share = {data.share} would leave out corrections, too. With --data.share=1, the new model "
                "learns from all corrections, and from old pairs sampled from all training data."
            )
        _require_tag_of_validation(data)
        if data.reads_from(folder):
            raise UsageError(f"{folder} has training data of the run, and would be written. Name another --out.")
        judged = {src for src, _ in self.judged_by}
        valid = [*(row for row in self.not_learned(read_valid(run)) if row[0] not in judged), *self.chosen_by]
        kept_apart = {text for row in (*valid, *self.judged_by) for text in row}
        number = max(LEAST_REPLAY, REPLAY * len(self.learned))
        replay = list(_sample(old_pairs(data, kept_apart), number, seed))
        by_tag = {tag: [row for row in replay if row[2] == tag] for tag in data.tags_used}  # that of `data` first
        names = {tag: f"replay-{place}" if place else "replay" for place, tag in enumerate(by_tag)}
        folder.mkdir(parents=True, exist_ok=True)
        replayed = {names[tag]: rows for tag, rows in by_tag.items()}
        for name, rows in {**replayed, "learned": self.learned, "valid": valid}.items():
            for side, suffix in enumerate(("src", "tgt")):
                with atomic_write(folder / f"{name}.{suffix}", "w") as file:
                    file.writelines(f"{one_line(row[side])}\n" for row in rows)
        repeat = min(MOST_REPEATS, max(1, round(SHARE / (1 - SHARE) * len(replay) / len(self.learned))))
        learned = _part(folder, "learned", data.tag_of_validation, data) | {"repeat": repeat}
        others = [_part(folder, names[tag], tag, data) for tag, rows in by_tag.items() if rows and tag != data.tag]
        valid_files = {f"valid_{side}": path for side, path in _files(folder, "valid").items()}
        return {
            **_files(folder, "replay"), **valid_files, "parts": [learned, *others], "pairs": "", "valid_pairs": "",
            "repeat": 1, "max_valid": max(data.max_valid, len(valid)),
        }  # fmt: skip

    def not_learned(self, rows: Iterable[Row]) -> list[Row]:
        """Those of some rows whose sources are not learned."""
        learned = {src for src, _ in self.learned}
        return [row for row in rows if row[0] not in learned]

    @staticmethod
    def decide(on_corrections: Mapping[str, Comparison], on_validation: Mapping[str, Comparison]) -> Decision:
        """Accept a model that is better on corrections it has not seen, and not worse on the old validation data.

        The comparisons are with the old model, by BLEU and chrF. Better: chrF is higher, and chance explains the
        difference with a probability below `LEVEL`. Worse: either score is lower with such a probability.
        """
        gain = on_corrections["chrf"]
        if not (gain.difference > 0 and _p(gain) < LEVEL):
            reason = f"chrF {gain.difference:+.1f}, p = {_p(gain):.3f}"
            return Decision(False, f"the new model is not better on the corrections: {reason}")
        for name, each in on_validation.items():
            if each.difference < 0 and _p(each) < LEVEL:
                reason = f"{name} {each.difference:+.1f}, p = {_p(each):.3f}"
                return Decision(False, f"the new model is worse on the old validation data: {reason}")
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


def _part(folder: Path, name: str, tag: str, data: TranslationData) -> dict[str, Any]:
    """A part of the training data, with its tag and its languages if they are others than those of all data."""
    part: dict[str, Any] = {**_files(folder, name)}
    if tag:
        part["tag"] = tag
    sides = zip(("src_lang", "tgt_lang"), data.languages(tag), (data.src_lang, data.tgt_lang), strict=True)
    return part | {key: language for key, language, usual in sides if language != usual}


def _require_tag_of_validation(data: TranslationData) -> None:
    """Raise UsageError if the run translates with another tag than that of its validation data unless it is asked."""
    tag = data.tag_of_validation
    if not data.requires_tag and (used := data.tag_to_use(data.tags, None)) != tag:
        raise UsageError(
            f"the run translates with {_named(used)}, and its validation data has {_named(tag)}. Learning from "
            "corrections needs one tag for both: train a run with data.valid_tag equal to data.default_tag."
        )


def _named(tag: str) -> str:
    return f"the tag {tag}" if tag else "no tag"


def old_pairs(data: TranslationData, kept_apart: set[str], synthetic: bool = True) -> Iterator[tuple[str, str, str]]:
    """The old training pairs with their tags; `synthetic`: also those that a model wrote."""
    for part in data.train_parts():
        if part.by_model and not synthetic:
            continue
        for src, tgt in filtered_pairs(data, part.files, Counter()):
            if kept_apart.isdisjoint((src, tgt)):
                yield src, tgt, part.tag


def _sample(pairs: Iterator[tuple[str, str, str]], number: int, seed: int) -> Iterator[tuple[str, str, str]]:
    """Up to `number` pairs, those with the smallest hashes: the same ones whatever their order."""
    numbered = ((hash_text(f"{seed} {src}"), *row) for row in pairs for src in row[:1])
    yield from ((src, tgt, tag) for _, src, tgt, tag in nsmallest(number, numbered))


def _p(comparison: Comparison) -> float:
    p = comparison.p_randomisation
    return 1.0 if p is None else p
