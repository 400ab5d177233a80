"""Converted translators: runs that are opened for translating without PyTorch, which takes seconds to import.

The folder of the converted model contains `translator.json`: the settings that translating needs of the recipe, already
checked, with digests of the files that they were read from. A run whose files have changed since is opened in full.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

from pydantic import ValidationError

from heed.core.config import Config
from heed.core.environment import num_cpus
from heed.core.errors import DataError, MissingInputError
from heed.core.files import atomic_write, sha256_file
from heed.core.own_files import own_path, read_own
from heed.decoding.ctranslate2_engine import FOLDER, Conversion, CTranslate2Engine
from heed.decoding.detokenizer import Detokenizer
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.line_translator import LineTranslator
from heed.decoding.options import Request, SearchOptions
from heed.tasks.translation.data import TranslationData
from heed.tasks.translation.translating import RunWithoutPyTorch, Translating
from heed.text.tokenizers import Tokenizer, load_tokenizers

SETTINGS = "translator.json"
SIDES = ("src", "tgt")


class Settings(Config):
    """The contents of `translator.json`."""

    format: Literal[1] = 1
    """Version of the file format."""
    made_from: dict[str, str]
    """SHA-256 of the files of the run that the other settings follow from."""
    data: TranslationData
    """The recipe's `[data]`."""
    decoding: SearchOptions
    """The recipe's `[decoding]`."""
    not_usable: str
    """Why the model is not usable yet; empty for a usable one."""


def write_settings(run: Translating) -> None:
    """Write `translator.json` into the folder of the converted model."""
    settings = Settings(made_from=_digests(run.folder), data=run.data, decoding=run.decoding, not_usable=run.not_usable)
    with atomic_write(run.folder / FOLDER / SETTINGS, "w") as file:
        file.write(settings.model_dump_json(indent=1) + "\n")


def _digests(folder: Path) -> dict[str, str]:
    """SHA-256 of the recipe and of the log of the training. Raises DataError for links."""
    names = [name for name in ("recipe.toml", "metrics.jsonl") if os.path.lexists(folder / name)]
    return {name: sha256_file(own_path(folder, name)) for name in names}


def open_converted(
    folder: Path, tag: str | None, precision: str, engine: str, num_workers: int
) -> ConvertedTranslator | None:
    """Open a run without PyTorch; None if it has no valid converted model, or that cannot be used.

    The arguments are those of `heed.load`.
    """
    if find_spec("ctranslate2") is None or precision not in ("float32", "int8") or engine == "torch":
        return None
    try:
        settings = Settings.model_validate_json(read_own(folder, f"{FOLDER}/{SETTINGS}"), strict=False)
        made_from = _digests(folder)
    except (DataError, MissingInputError, ValidationError):
        return None
    conversion = Conversion.read(folder / FOLDER)
    if conversion is None or settings.made_from != made_from:
        return None
    run = ConvertedTranslator(folder, tag, settings, conversion, precision, num_workers)
    vocabularies = run.tokenizers["src"].vocabulary, run.tokenizers["tgt"].vocabulary
    is_valid = conversion.is_of(folder / "model.safetensors", vocabularies) and conversion.is_intact(folder / FOLDER)
    return run if is_valid else None


class ConvertedTranslator(RunWithoutPyTorch):
    """A run with its converted model. Whatever CTranslate2 cannot do opens the run in full."""

    def __init__(
        self, folder: Path, tag: str | None, settings: Settings, conversion: Conversion, precision: str,
        num_workers: int,
    ) -> None:  # fmt: skip
        super().__init__(folder, tag, settings)
        self._not_usable = settings.not_usable
        self._conversion = conversion
        self._precision = precision
        self._num_workers = num_workers

    @property
    def not_usable(self) -> str:
        return self._not_usable

    @cached_property
    def tokenizers(self) -> Mapping[str, Tokenizer]:
        return load_tokenizers(self._folder, SIDES)

    @cached_property
    def engine(self) -> CTranslate2Engine:
        """CTranslate2 with the converted model."""
        src, tgt = self.tokenizers["src"], self.tokenizers["tgt"]
        return CTranslate2Engine(
            self._folder / FOLDER, self._conversion.num_positions, (src.vocabulary, tgt.vocabulary),
            Detokenizer(tgt).never, self._num_workers or num_cpus(), self._precision,
        )  # fmt: skip

    def line_translator(self, with_tokens: bool) -> LineTranslator:
        return self.translator_with(self.engine, self._search_with_pytorch, with_tokens)

    @property
    def translator(self) -> Any:
        """The translator that PyTorch searches for, which knows the model's attention."""
        return self._in_full.translator

    def _search_with_pytorch(self, requests: Sequence[Request], options: SearchOptions) -> dict[Request, Hypothesis]:
        found: dict[Request, Hypothesis] = self.translator.search_in_batches(requests, options)
        return found

    def word_links(self, pairs: Sequence[tuple[str, str]]) -> list[list[tuple[int, int]]]:
        links: list[list[tuple[int, int]]] = self._in_full.word_links(pairs)
        return links

    @cached_property
    def _in_full(self) -> Any:
        """The run, opened with PyTorch, which shares the CPUs with the engine."""
        from heed.api import load
        from heed.nn.device import set_threads

        set_threads(1)
        return load(self._folder, precision=self._precision, tag=self._tag, engine="torch")
