"""Run folder of an aligner: its words, its tables and the facts about them.

    aligner.json                 kind, settings and training text
    words.src.json, words.tgt.json   the words, in the order of their numbers
    forward.safetensors          the tables of P(target | source)
    backward.safetensors         those of the other direction, if it was trained

All files are listed in the manifest (`heed.core.run_files`), and nothing in them can run code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from safetensors import SafetensorError
from safetensors.numpy import load, save

from heed.core.errors import DataError
from heed.core.files import atomic_folder, storage_errors
from heed.core.formats import FORMAT, require_format
from heed.core.own_files import LARGE
from heed.core.run_files import RESTORE, RunFiles
from heed.statistical.alignment.aligner import Aligner, Arrays, checked
from heed.statistical.alignment.lexicon import Lexicon
from heed.statistical.alignment.pairs import FIRST, Words
from heed.statistical.alignment.smoothing import SmoothingKind
from heed.statistical.alignment.training import BACKWARD, FORWARD, AlignerPair, Direction, aligner_type

FACTS = "aligner.json"
_WORDS = TypeAdapter(list[str])


class AlignerFacts(BaseModel):
    """The content of `aligner.json`."""

    model_config = ConfigDict(frozen=True, extra="allow")

    format: int = FORMAT
    kind: str
    """The key in `ALIGNERS`."""
    smoothing: SmoothingKind
    alpha: float = Field(ge=0, allow_inf_nan=False)
    lowercase: bool = True
    """Whether words that differ in case only are one."""
    num_pairs: int = 0
    """Sentence pairs that it was trained on."""
    log_likelihood_per_word: dict[Direction, float] = {}
    """In nats, of the training text, before the last iteration."""
    directions: list[Direction]


@dataclass(frozen=True)
class AlignerRun:
    """A trained pair of aligners, or one, from its folder."""

    folder: Path
    facts: AlignerFacts
    trained: AlignerPair


def is_aligner_run(folder: Path) -> bool:
    """Whether a folder is a run of an aligner."""
    return RunFiles(folder).has(FACTS)


def write_run(folder: Path, trained: AlignerPair, facts: AlignerFacts) -> None:
    """Write a new run folder. Raises StorageError if it exists."""
    with storage_errors("write the run", path=folder), atomic_folder(folder, parents=True) as new:
        files = RunFiles(new)
        for side, words in (("src", trained.src_words), ("tgt", trained.tgt_words)):
            with files.write(f"words.{side}.json") as file:
                file.write(_WORDS.dump_json(list(words)))
        for direction, aligner in trained.aligners.items():
            with files.write(f"{direction}.safetensors") as file:
                file.write(save(_arrays(aligner)))
        files.write_as(facts, FACTS)


def read_facts(folder: Path) -> AlignerFacts:
    """The facts about a run. Raises MissingInputError and DataError."""
    facts = RunFiles(folder).read_as(AlignerFacts, FACTS)
    require_format(facts.format, folder / FACTS)
    return facts


def read_run(folder: Path) -> AlignerRun:
    """The run of a folder. Raises MissingInputError, and DataError for damaged files."""
    facts = read_facts(folder)
    files = RunFiles(folder)
    src, tgt = (_read_words(files, side, facts.lowercase) for side in ("src", "tgt"))
    sizes: dict[Direction, tuple[int, int]] = {FORWARD: (len(src), len(tgt)), BACKWARD: (len(tgt), len(src))}
    aligners = {each: _read_aligner(files, each, facts, *sizes[each]) for each in facts.directions}
    return AlignerRun(folder, facts, AlignerPair(src, tgt, aligners))


def describe(folder: Path) -> dict[str, Any]:
    """The facts about a run, for people. Raises MissingInputError and DataError."""
    run = read_run(folder)
    facts, trained = run.facts, run.trained
    entries = {direction: len(aligner.lexicon.keys) for direction, aligner in trained.aligners.items()}
    return {
        "run": str(folder),
        "model": aligner_type(facts.kind).title,
        "directions": ", ".join(trained.aligners),
        "trained on": facts.num_pairs,
        "words": f"src {len(trained.src_words) - FIRST:,}, tgt {len(trained.tgt_words) - FIRST:,}",
        "pairs of words": entries,
        "log-likelihood": {direction: f"{value:.4f}" for direction, value in facts.log_likelihood_per_word.items()},
    }


def verify_run(folder: Path) -> dict[str, str]:
    """The state of each file of a run."""
    return {name: wrong or "as heed wrote it" for name, wrong in RunFiles(folder).changed().items()}


def _arrays(aligner: Aligner) -> dict[str, np.ndarray[Any, Any]]:
    """The lexical table, with targets of four bytes, and the other parameters."""
    lexicon = aligner.lexicon
    table = {"offsets": lexicon.offsets, "targets": lexicon.targets.astype(np.int32), "probs": lexicon.probs}
    arrays = {**table, **aligner.parameters()}
    return {name: np.ascontiguousarray(array) for name, array in arrays.items()}


def _read_words(files: RunFiles, side: str, lowercase: bool) -> Words:
    name = f"words.{side}.json"
    try:
        return Words(_WORDS.validate_json(files.read(name, LARGE)), lowercase)
    except ValidationError as error:
        raise DataError(f"{files.folder / name} is damaged: it is not a list of words. {RESTORE}") from error


def _read_aligner(files: RunFiles, direction: str, facts: AlignerFacts, src_size: int, tgt_size: int) -> Aligner:
    name = f"{direction}.safetensors"
    try:
        arrays: Mapping[str, Any] = load(files.read(name, LARGE))
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{files.folder / name} is not a safetensors file: {error}. {RESTORE}") from error
    try:
        aligner = aligner_type(facts.kind)(_lexicon(arrays, src_size, tgt_size))
        aligner.restore(arrays)
    except DataError as error:
        raise DataError(f"{files.folder / name}: {error}") from error
    return aligner


def _lexicon(arrays: Arrays, src_size: int, tgt_size: int) -> Lexicon:
    offsets, targets = arrays.get("offsets"), arrays.get("targets")
    if offsets is None or targets is None or offsets.dtype != np.int64 or targets.dtype != np.int32:
        raise DataError(f"not the tables of an aligner. {RESTORE}")
    fits = offsets.shape == (src_size + 1,) and targets.ndim == 1
    fits = fits and offsets[0] == 0 and offsets[-1] == len(targets) and bool((np.diff(offsets) >= 0).all())
    if not fits or bool(((targets < 0) | (targets >= tgt_size)).any()):
        raise DataError(f"the tables do not fit the words. {RESTORE}")
    keys = np.arange(src_size).repeat(np.diff(offsets)) * tgt_size + targets
    if bool((np.diff(keys) <= 0).any()):
        raise DataError(f"the tables are not in order. {RESTORE}")
    lexicon = Lexicon(keys, src_size, tgt_size)
    lexicon.probs[:] = checked(arrays, "probs", (len(targets) + src_size,))
    return lexicon
