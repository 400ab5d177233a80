"""Log of scores, `scores.jsonl` in the run folder: one line for each evaluation, and none is removed.

A test set that is evaluated often turns into validation data, so reports show how often it was used.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from heed.core.environment import library_versions
from heed.core.errors import DataError
from heed.core.files import sha256_file, storage_errors
from heed.core.json_text import parse_json
from heed.core.own_files import LARGE
from heed.core.own_scorer import VERDICT
from heed.core.progress import warn
from heed.core.run_files import WEIGHTS
from heed.evaluation.evaluation import Evaluation
from heed.metrics.metric import Score
from heed.run import Run

SCORE_LOG = "scores.jsonl"
_CHANGED = "Its record of earlier evaluations may be wrong."


def now() -> str:
    """The current time, which all entries of one command share."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def weights_of(run: Run) -> str:
    """What identifies the weights of a run: their SHA-256, and after a `+` that of its scorer, if it uses one."""
    scorer = run.scorer if run.files.has(VERDICT) else None
    models = [run] if scorer is None else [run, scorer]
    return "+".join(sha256_file(each.files.path(WEIGHTS)) for each in models)


def log_scores(run: Run, evaluation: Evaluation, time: str) -> None:
    """Append the scores of a run, alone or in an ensemble. Raises StorageError."""
    entry = {
        "time": time,
        "heed": library_versions()["heed"],
        "test": evaluation.test.fingerprint(),
        "weights": weights_of(run),
        **evaluation.how,
        **({"ensemble": [member.folder.resolve().name for member in evaluation.members]} if evaluation.members else {}),
        "scores": [score.to_json() for score in evaluation.scores.values()],
        "length_ratio": evaluation.length_ratio,
        "leaked": len(evaluation.leakage.lines) if evaluation.leakage and evaluation.leakage.num_compared else None,
        "in_validation": evaluation.leakage.in_validation if evaluation.leakage else None,
        "lines_without_leaked": evaluation.num_clean,
        "without_leaked": [score.to_json() for score in evaluation.without_leaked.values()],
    }
    with storage_errors("log the scores", path=run.folder / SCORE_LOG):
        run.files.append(SCORE_LOG, json.dumps(entry, ensure_ascii=False).encode() + b"\n", _CHANGED)


def read_scores(run: Run) -> list[dict[str, Any]]:
    """All entries, the oldest first, without damaged lines. Warns of a log that is not a regular file of the run."""
    if not run.files.has(SCORE_LOG):
        return []
    try:
        lines = run.files.read_anyway(SCORE_LOG, _CHANGED, LARGE).decode(errors="replace").split("\n")
    except DataError as error:
        warn(f"{error} Earlier evaluations are not counted.")
        return []
    return [entry for line in lines if (entry := _entry(line)) is not None]


def _entry(line: str) -> dict[str, Any] | None:
    """The entry in a line; None if it is not one that `log_scores` writes."""
    try:
        entry = parse_json(line)
        texts = [entry["time"], *(file["sha256"] for file in entry["test"]), *entry.get("ensemble", ())]
        for score in entry["scores"]:
            Score.from_json(score).render()
    except (ValueError, TypeError, LookupError, AttributeError):
        return None
    return entry if all(isinstance(text, str) for text in texts) else None


def times_scored(run: Run, evaluation: Evaluation, excluding: str) -> list[str]:
    """The times at which this run was scored on these lines, the oldest first, without the time `excluding`."""
    lines = [file["sha256"] for file in evaluation.test.fingerprint()]
    times = (entry["time"] for entry in read_scores(run) if [file["sha256"] for file in entry["test"]] == lines)
    return [time for time in dict.fromkeys(times) if time != excluding]
