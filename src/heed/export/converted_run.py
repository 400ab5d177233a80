"""Runs that are opened with their converted model, without PyTorch, which takes seconds to import.

The folder of the converted model contains the settings that the task needs of the recipe, already checked, with digests
of the files that they were read from. A run whose files have changed since is opened in full.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, TypeVar

from pydantic import ValidationError

from heed.core.config import Config
from heed.core.environment import num_cpus
from heed.core.errors import DataError, MissingInputError
from heed.core.files import atomic_write, sha256_file
from heed.core.own_files import own_path, read_own
from heed.core.run_files import RECIPE, WEIGHTS
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.options import Request, SearchOptions
from heed.inference.converted_model import FOLDER, Conversion
from heed.text.tokenizers import Tokenizer, load_tokenizers


class ConvertedSettings(Config):
    """What a run is opened with, in a file in the folder of its converted model."""

    file_name: ClassVar[str]
    """The name of the file."""

    format: Literal[1] = 1
    """Version of the file format."""
    made_from: dict[str, str]
    """SHA-256 of the files of the run that the other settings follow from."""
    decoding: SearchOptions
    """The recipe's `[decoding]`."""

    def write(self, folder: Path) -> None:
        """Write the settings into the folder of a run's converted model."""
        with atomic_write(folder / FOLDER / self.file_name, "w") as file:
            file.write(self.model_dump_json(indent=1) + "\n")


def made_from(folder: Path) -> dict[str, str]:
    """SHA-256 of the recipe and of the log of the training. Raises DataError for links."""
    names = [name for name in (RECIPE, "metrics.jsonl") if os.path.lexists(folder / name)]
    return {name: sha256_file(own_path(folder, name)) for name in names}


Settings = TypeVar("Settings", bound=ConvertedSettings)


@dataclass(frozen=True)
class ConvertedRun(Generic[Settings]):
    """A run with a valid converted model. Whatever CTranslate2 cannot do opens the run in full."""

    folder: Path
    tag: str | None
    precision: str
    num_workers: int
    """Batches that are searched at the same time."""
    settings: Settings
    conversion: Conversion
    tokenizers: Mapping[str, Tokenizer]

    @cached_property
    def in_full(self) -> Any:
        """The run, opened with PyTorch, which shares the CPUs with the engine.

        In float32, with a warning, where PyTorch, unlike CTranslate2, has no eight-bit products on this processor.
        """
        from heed.api import load
        from heed.nn.device import set_threads
        from heed.nn.packing import has_rounded_products, name_lack_of_rounded_products

        set_threads(1)
        precision = self.precision
        if precision == "int8" and not has_rounded_products():
            name_lack_of_rounded_products()
            precision = "float32"
        return load(self.folder, precision=precision, tag=self.tag, engine="torch")

    def search_with_pytorch(self, requests: Sequence[Request], options: SearchOptions) -> dict[Request, Hypothesis]:
        """The best hypothesis of each request, by PyTorch's search."""
        found: dict[Request, Hypothesis] = self.in_full.translator.search_in_batches(requests, options)
        return found


def open_conversion(
    kind: type[Settings], sides: tuple[str, ...], folder: Path, tag: str | None, precision: str, engine: str,
    num_workers: int,
) -> ConvertedRun[Settings] | None:  # fmt: skip
    """Open a run whose settings are of this kind; None if it has no valid converted model, or that cannot be used.

    `sides`: those with a tokenizer. The other arguments are those of `heed.load`.
    """
    if find_spec("ctranslate2") is None or precision not in ("float32", "int8") or engine == "torch":
        return None
    try:
        content = read_own(folder, f"{FOLDER}/{kind.file_name}")
        settings = kind.model_validate_json(content, strict=False)
        is_current = settings.made_from == made_from(folder)
    except (DataError, MissingInputError, ValidationError):
        return None
    conversion = Conversion.read(folder / FOLDER)
    if conversion is None or not is_current:
        return None
    tokenizers = load_tokenizers(folder, sides)
    vocabularies = [tokenizers[side].vocabulary for side in sides]
    if not conversion.is_usable(folder / WEIGHTS, vocabularies):
        return None
    return ConvertedRun(folder, tag, precision, num_workers or num_cpus(), settings, conversion, tokenizers)
