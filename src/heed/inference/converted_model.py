"""Converted model: the description of a run's model in CTranslate2's format, and its checksums."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import PositiveFloat, ValidationError

from heed.core.config import Config
from heed.core.errors import DataError, MissingInputError
from heed.core.files import sha256_file
from heed.core.own_files import own_path, read_own
from heed.text.vocabulary import Vocabulary

FOLDER, DESCRIPTION = "ctranslate2", "heed.json"
"""The converted model in a run folder, and its description."""


class Rounding(Config):
    """What int8 costs and gains, measured on validation data when the model was converted."""

    num_lines: int
    """Lines that both formats translated."""
    beam_size: int
    """Of the recipe's search, which both used."""
    bleu: float
    """BLEU in float32."""
    difference: float
    """BLEU in int8 minus that."""
    signature: str
    """Of BLEU."""
    lines_per_second: tuple[PositiveFloat, PositiveFloat]
    """In float32 and in int8."""
    num_cpus: int
    """CPUs that translated."""
    p: float | None = None
    """Of the difference, by a paired bootstrap; None for too few lines."""

    def render(self) -> str:
        """One line for the user."""
        before, after = self.lines_per_second
        chance = "" if self.p is None else f" (p = {self.p:.2f})"
        return (
            f"BLEU {self.difference:+.2f}{chance} compared with float32, {after / before:.2f} times as fast "
            f"({after:,.0f} and {before:,.0f} lines/s, {self.num_cpus} CPUs): "
            f"{self.num_lines:,} validation lines, beam {self.beam_size}"
        )


class Conversion(Config):
    """The description of a converted model: the contents of `heed.json` in its folder."""

    format: Literal[1] = 1
    """Version of the file format."""
    weights: str
    """SHA-256 of the run's weights that it was made from."""
    vocabularies: tuple[str, ...]
    """SHA-256 of the vocabularies of source and target, or of a language model."""
    num_positions: int
    """The longest source or output, in tokens."""
    files: dict[str, str]
    """SHA-256 of each other file of the folder that CTranslate2 reads."""
    rounding: Rounding | None = None
    """None where it was not measured: without validation data, or by an earlier version."""

    @staticmethod
    def read(folder: Path) -> Conversion | None:
        """The description in a folder; None if there is no valid one."""
        try:
            return Conversion.model_validate_json(read_own(folder.parent, f"{folder.name}/{DESCRIPTION}"))
        except (DataError, MissingInputError, ValidationError):
            return None

    def is_of(self, weights: Path, vocabularies: Sequence[Vocabulary]) -> bool:
        """Whether it was made from these weights, for these vocabularies."""
        is_of_weights = _has_digests(weights.parent, {weights.name: self.weights})
        return is_of_weights and self.vocabularies == _digests(vocabularies)

    def is_usable(self, weights: Path, vocabularies: Sequence[Vocabulary]) -> bool:
        """Whether it may be used in place of the weights of its run folder."""
        return self.is_of(weights, vocabularies) and self.is_intact(weights.parent / FOLDER)

    def is_intact(self, folder: Path) -> bool:
        """Whether the files are those that were written."""
        return _has_digests(folder, self.files)


def _has_digests(folder: Path, digests: Mapping[str, str]) -> bool:
    """Whether these are regular files of the folder with these SHA-256."""
    try:
        return all(sha256_file(own_path(folder, name)) == digest for name, digest in digests.items())
    except (DataError, MissingInputError, OSError):
        return False


def require_intact(folder: Path) -> None:
    """Raise DataError for a converted model whose files are not those that were written. It is not used then."""
    conversion = Conversion.read(folder)
    if conversion is None or not conversion.is_intact(folder):
        raise DataError(
            f"{folder} is damaged and not used. Delete it; translating works without it, but starts more slowly."
        )


def describe(folder: Path, weights: Path, vocabularies: Sequence[Vocabulary], num_positions: int) -> Conversion:
    """The description of the converted model in a folder."""
    files = {path.name: sha256_file(path) for path in sorted(folder.iterdir())}
    return Conversion(
        weights=sha256_file(weights), vocabularies=_digests(vocabularies), num_positions=num_positions, files=files
    )


def _digests(vocabularies: Sequence[Vocabulary]) -> tuple[str, ...]:
    return tuple(vocabulary.sha256 for vocabulary in vocabularies)
