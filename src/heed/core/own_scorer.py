"""The scorer of a run of phrases: a run in its folder, and the verdict on both together.

`heed.scorer` trains it and writes the verdict. This module and all that it imports do without PyTorch.
"""

from __future__ import annotations

from pathlib import Path

from heed.core.config import Config
from heed.core.errors import MissingInputError
from heed.core.own_files import own_folder
from heed.core.run_files import WEIGHTS, RunFiles
from heed.core.weight_file import read_header

SCORER, VERDICT = "scorer", "scorer.json"
"""The folder of the scorer of a run, and the file of the verdict on both."""


class Verdict(Config):
    """Whether a run uses its scorer: the contents of `scorer.json`, and BLEU on validation data."""

    weights: str
    """SHA-256 of the scorer's tensors that were compared."""
    is_used: bool
    phrases: float
    """Of phrases alone."""
    scorer: float
    """Of the scorer alone."""
    both: float
    """Of phrases whose translations are scored."""
    gain: float
    """BLEU that the scorer adds to phrases whose weights were not tuned on this data. It decides."""


def verdict_of(folder: Path) -> Verdict | None:
    """The verdict in the folder of a run on its scorer as it is; None until both models are trained and compared.

    Raises DataError where the scorer is a link, and what reading the files raises.
    """
    files, scorer = RunFiles(folder), own_folder(folder, SCORER)
    if not files.has(VERDICT):
        return None
    verdict = files.read_as(Verdict, VERDICT)
    return verdict if not scorer.is_dir() or verdict.weights == digest_of(scorer) else None


def scores_sentence(folder: Path, verdict: Verdict) -> str:
    """The scores of a verdict: `BLEU 31.50 on validation, 29.54 by phrases alone`."""
    has_other_table = "table" in read_header(folder / WEIGHTS).metadata
    before = ", both with the phrase table before `heed import --into`" * has_other_table
    return f"BLEU {verdict.both:.2f} on validation, {verdict.phrases:.2f} by phrases alone{before}"


def digest_of(folder: Path) -> str:
    """The SHA-256 of the tensors of a run, by the header of its weights; empty without weights."""
    return read_header(folder / WEIGHTS).metadata.get("sha256", "") if (folder / WEIGHTS).exists() else ""


def used_scorer(folder: Path) -> Path | None:
    """The folder of the scorer that a run uses; None if it uses none. Raises MissingInputError where it is missing."""
    verdict = verdict_of(folder)
    if verdict is None or not verdict.is_used:
        return None
    if not (folder / SCORER).is_dir():
        raise MissingInputError(f"{folder / SCORER} is missing: it scores what {folder} proposes. Put it back.")
    return folder / SCORER
