"""Equality of a resumed training with one that was never killed: the comparisons and counts of kill.py."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from heed.core.errors import HeedError
from heed.core.files import is_debris
from heed.training.checkpoints import files_of, list_checkpoints, step_of
from heed.training.manifest import checked_manifest

TIMES = ("seconds", "tokens_per_second")
"""Fields that may differ between two equal trainings."""


class BrokenError(Exception):
    """A promise was broken."""


@dataclass
class Seen:
    """Counts of everything that was compared."""

    kills: int = 0
    in_a_save: int = 0
    in_other_files: int = 0
    before_any_checkpoint: int = 0
    checkpoints: int = 0
    losses: int = 0
    behind: int = 0
    replayed: int = 0
    validations: int = 0
    survivors: int = 0
    not_joined: int = 0
    slowest_end: float = 0.0
    settings: list[str] = field(default_factory=list)


def unfinished(folder: Path) -> set[Path]:
    """Incomplete files and folders in a folder, at any depth."""
    return {path for path in folder.rglob(".heed-*") if is_debris(path)} if folder.exists() else set()


def without_times(value: Any) -> Any:
    """An event without its times."""
    if isinstance(value, dict):
        return {name: without_times(inner) for name, inner in value.items() if name not in TIMES}
    return value


def compare_checkpoint(path: Path, straight: Path) -> None:
    """Check that a checkpoint is complete and equal, bit for bit, to the straight run's at that update."""
    try:
        checked_manifest(path, files_of(path))
    except HeedError as error:
        raise BrokenError(f"{path} is damaged: {error}") from error
    other = straight / "checkpoints" / path.name
    for name in files_of(path):
        one, two = (path / name).read_bytes(), (other / name).read_bytes()
        if name.endswith(".json"):
            one, two = (without_times(json.loads(text)) for text in (one, two))
        if one != two:
            raise BrokenError(f"{path / name} is not what the straight run had")


def events(folder: Path) -> Iterator[tuple[tuple[str, int], Any]]:
    """The lines of the log by kind and update; a kill may have truncated one."""
    for line in (folder / "metrics.jsonl").read_text(encoding="utf-8", errors="replace").split("\n"):
        try:
            event = json.loads(line)
        except json.JSONDecodeError:
            continue
        if event["event"] != "end":
            yield (event["event"], event["step"]), without_times(event)


def is_behind(folder: Path) -> bool:
    """Whether the log has updates that the newest checkpoint does not contain, which resuming computes again."""
    held = [step_of(path) for path in list_checkpoints(folder / "checkpoints")]
    if not held or not (folder / "metrics.jsonl").exists():  # without a checkpoint it starts again, with a new log
        return False
    return any(kind == "train" and step > max(held) for (kind, step), _ in events(folder))


def compare_log(folder: Path, straight: Path, seen: Seen) -> None:
    """Check that every logged line equals the straight run's, and that none is missing."""
    expected = dict(events(straight))
    found: set[tuple[str, int]] = set()
    for key, event in events(folder):
        if event != expected.get(key):
            raise BrokenError(f"{folder}: {key} was logged as {event}, the straight run has {expected.get(key)}")
        seen.replayed += key in found and key[0] == "train"
        seen.losses += key[0] == "train"
        seen.validations += key[0] == "validation"
        found.add(key)
    if missing := expected.keys() - found:
        raise BrokenError(f"{folder}: never logged: {sorted(missing)[0]}")


def compare_end(folder: Path, straight: Path, most_checkpoints: int, seen: Seen) -> None:
    """Check that the training ended like the straight one and left nothing half-written."""
    compare_log(folder, straight, seen)
    if (folder / "model.safetensors").read_bytes() != (straight / "model.safetensors").read_bytes():
        raise BrokenError(f"{folder}: the weights are not those of the straight run")
    checkpoints = list_checkpoints(folder / "checkpoints")
    last = list_checkpoints(straight / "checkpoints")[-1]
    if checkpoints[-1].name != last.name or len(checkpoints) > most_checkpoints:
        raise BrokenError(f"{folder} has the checkpoints {[path.name for path in checkpoints]}")
    for path in checkpoints:
        compare_checkpoint(path, straight)
    there = {path.relative_to(folder).parts[0] for path in folder.rglob("*")}
    expected = {path.relative_to(straight).parts[0] for path in straight.rglob("*")}
    if there != expected or unfinished(folder):
        raise BrokenError(f"{folder} holds {sorted(there)}, unfinished: {sorted(map(str, unfinished(folder)))}")
