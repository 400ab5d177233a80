"""When was a run scored on which test set? `scores.jsonl` of the run folder: a line for each time, none removed.

A test set that was looked at often is no test set any more. Whoever reads a report can see how often it was.
"""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from typing import Any

from heed.core.environment import library_versions
from heed.core.errors import StorageError
from heed.core.files import is_plain_file, sha256_file, storage_errors
from heed.evaluation.scoring import Evaluation
from heed.metrics.score import Score
from heed.run import WEIGHTS, Run

LEDGER = "scores.jsonl"


def now() -> str:
    """The time of one command, which all that it logs has: the test set was looked at once."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def log_scores(run: Run, evaluation: Evaluation, time: str) -> None:
    """Append what a run scored, by itself or as one of an ensemble. Raises StorageError."""
    entry = {
        "time": time,
        "heed": library_versions()["heed"],
        "test": evaluation.test.fingerprint(),
        "weights": sha256_file(run.folder / WEIGHTS),
        **evaluation.how,
        **({"ensemble": [member.folder.resolve().name for member in evaluation.members]} if evaluation.members else {}),
        "scores": [score.to_json() for score in evaluation.scores.values()],
        "length_ratio": evaluation.length_ratio,
        "leaked": len(evaluation.leakage.lines) if evaluation.leakage and evaluation.leakage.num_compared else None,
        "in_validation": evaluation.leakage.in_validation if evaluation.leakage else None,
        "lines_without_leaked": evaluation.num_clean,
        "without_leaked": [score.to_json() for score in evaluation.without_leaked.values()],
    }
    path = run.folder / LEDGER
    if os.path.lexists(path) and not is_plain_file(path):
        raise StorageError(f"{path} is no regular file: the score is not written where it leads.")
    with storage_errors("log the scores", path=path), path.open("a+b") as file:
        if file.tell() and not path.read_bytes().endswith(b"\n"):  # what a crash cut off takes no line with it
            file.write(b"\n")
        file.write(json.dumps(entry, ensure_ascii=False).encode() + b"\n")


def read_scores(run: Run) -> list[dict[str, Any]]:
    """All entries, the oldest first; without lines that are damaged."""
    path = run.folder / LEDGER
    if not is_plain_file(path):
        return []
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    return [entry for line in lines if (entry := _entry(line)) is not None]


def _entry(line: str) -> dict[str, Any] | None:
    """What a line says, or None when it is not what `log_scores` writes."""
    try:
        found = json.loads(line)
        texts = [found["time"], *(file["sha256"] for file in found["test"]), *found.get("ensemble", ())]
        for score in found["scores"]:
            Score.from_json(score).render()
    except (ValueError, TypeError, LookupError, AttributeError):
        return None
    return found if all(isinstance(text, str) for text in texts) else None


def times_scored(run: Run, evaluation: Evaluation, but_at: str) -> list[str]:
    """When this run was scored on these very lines, the oldest first; not by the command of `but_at`."""
    ours = [file["sha256"] for file in evaluation.test.fingerprint()]
    found = (entry["time"] for entry in read_scores(run) if [file["sha256"] for file in entry["test"]] == ours)
    return [time for time in dict.fromkeys(found) if time != but_at]
