"""The scorer of a run of phrases: a run in its folder, and the verdict on both together.

`heed.scorer` trains it and writes the verdict. This module and all that it imports do without PyTorch.
"""

from __future__ import annotations

from pathlib import Path

from heed.core.config import Config
from heed.core.errors import MissingInputError
from heed.core.own_files import own_folder
from heed.core.run_files import RunFiles

SCORER, VERDICT = "scorer", "scorer.json"
"""The folder of the scorer, and the file of the verdict, in the folder of the run."""


class Verdict(Config):
    """Whether a run uses its scorer: the contents of `scorer.json`, and BLEU on validation data."""

    is_used: bool
    phrases: float
    """Of phrases alone."""
    scorer: float
    """Of the scorer alone."""
    both: float
    """Of phrases whose translations are scored."""


def verdict_of(folder: Path) -> Verdict | None:
    """The verdict in the folder of a run; None until both models are trained and compared. Raises DataError."""
    files = RunFiles(folder)
    return files.read_as(Verdict, VERDICT) if files.has(VERDICT) else None


def used_scorer(folder: Path) -> Path | None:
    """The folder of the scorer that a run uses; None if it uses none.

    Raises MissingInputError where that is missing, and DataError where it is a link.
    """
    verdict = verdict_of(folder)
    if verdict is None or not verdict.is_used:
        return None
    scorer = own_folder(folder, SCORER)
    if not scorer.is_dir():
        raise MissingInputError(f"{scorer} is missing: it scores what {folder} proposes. Put it back.")
    return scorer
