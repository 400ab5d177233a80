"""Converted language models: runs that are opened for greedy search without PyTorch."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from heed.decoding.options import SearchOptions
from heed.export.converted_run import ConvertedRun, ConvertedSettings, made_from, open_conversion
from heed.inference.converted_model import FOLDER
from heed.inference.ctranslate2_engine import searcher_with_fallback
from heed.inference.ctranslate2_generator import CTranslate2Generator
from heed.inference.line_translator import LineTranslator
from heed.tasks.language_model.data import TextData
from heed.text.tokenizers import Tokenizer


class Settings(ConvertedSettings):
    """The contents of `generator.json`."""

    file_name = "generator.json"

    data: TextData
    """The recipe's `[data]`."""
    not_usable: str = ""
    """Why the model is not usable yet; empty for a usable one, and in files of older versions."""


def write_settings(folder: Path, data: TextData, decoding: SearchOptions, not_usable: str) -> None:
    """Write `generator.json` into the folder of the converted model."""
    Settings(made_from=made_from(folder), data=data, decoding=decoding, not_usable=not_usable).write(folder)


def open_converted(
    folder: Path, tag: str | None, precision: str, engine: str, num_workers: int
) -> ConvertedGenerator | None:
    """Open a run without PyTorch; None if it must be opened in full. The arguments are those of `heed.load`."""
    run = open_conversion(Settings, ("tgt",), folder, tag, precision, engine, num_workers)
    return ConvertedGenerator(run) if run is not None else None


class ConvertedGenerator:
    """A language model with its converted model."""

    def __init__(self, run: ConvertedRun[Settings]) -> None:
        self._run = run

    @property
    def folder(self) -> Path:
        """The run folder."""
        return self._run.folder

    @property
    def not_usable(self) -> str:
        """Why the model is not usable yet; empty for a usable one."""
        return self._run.settings.not_usable

    @property
    def data(self) -> TextData:
        """The run's `[data]` table."""
        return self._run.settings.data

    @property
    def decoding(self) -> SearchOptions:
        """The run's `[decoding]` table."""
        return self._run.settings.decoding

    @property
    def tokenizers(self) -> Mapping[str, Tokenizer]:
        """The tokenizer of the text."""
        return self._run.tokenizers

    @cached_property
    def engine(self) -> CTranslate2Generator:
        """CTranslate2 with the converted model."""
        run = self._run
        detokenizer = self.data.detokenizer(self.tokenizers["tgt"])
        return CTranslate2Generator(
            run.folder / FOLDER, run.conversion.num_positions, detokenizer, run.num_workers, run.precision
        )

    @cached_property
    def translator(self) -> LineTranslator:
        """The tokenizer and the normaliser around the search."""
        tokenizer, otherwise = self.tokenizers["tgt"], self._run.search_with_pytorch
        line_end = self.data.detokenizer(tokenizer).line_end
        translator = LineTranslator(None, tokenizer, self.data.normaliser, otherwise, line_end=line_end)
        return translator.searched_by(searcher_with_fallback(self.engine, translator.best_of, otherwise, True))
