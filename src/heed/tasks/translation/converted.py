"""Converted translators: runs that are opened for translating without PyTorch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from heed.decoding.detokenizer import Detokenizer
from heed.export.converted_run import ConvertedRun, ConvertedSettings, made_from, open_conversion
from heed.inference.converted_model import FOLDER
from heed.inference.ctranslate2_engine import CTranslate2Engine
from heed.inference.line_translator import LineTranslator
from heed.inference.target_scorer import ConvertedScorer
from heed.tasks.translation.data import TranslationData
from heed.tasks.translation.translating import RunWithoutPyTorch, Translating
from heed.text.tokenizers import Tokenizer


class Settings(ConvertedSettings):
    """The contents of `translator.json`."""

    file_name = "translator.json"

    data: TranslationData
    """The recipe's `[data]`."""
    not_usable: str
    """Why the model is not usable yet; empty for a usable one."""


def write_settings(run: Translating) -> None:
    """Write `translator.json` into the folder of the converted model."""
    settings = Settings(
        made_from=made_from(run.folder), data=run.data, decoding=run.decoding, not_usable=run.not_usable
    )
    settings.write(run.folder)


def open_converted(
    folder: Path, tag: str | None, precision: str, engine: str, num_workers: int
) -> ConvertedTranslator | None:
    """Open a run without PyTorch; None if it must be opened in full. The arguments are those of `heed.load`."""
    run = open_conversion(Settings, ("src", "tgt"), folder, tag, precision, engine, num_workers)
    return ConvertedTranslator(run) if run is not None else None


class ConvertedTranslator(RunWithoutPyTorch):
    """A translator with its converted model."""

    def __init__(self, run: ConvertedRun[Settings]) -> None:
        super().__init__(run.folder, run.tag, run.settings)
        self._run = run

    @property
    def not_usable(self) -> str:
        return self._run.settings.not_usable

    @property
    def tokenizers(self) -> Mapping[str, Tokenizer]:
        return self._run.tokenizers

    @cached_property
    def engine(self) -> CTranslate2Engine:
        """CTranslate2 with the converted model."""
        src, tgt = self.tokenizers["src"], self.tokenizers["tgt"]
        return CTranslate2Engine(
            self.folder / FOLDER, self._run.conversion.num_positions, (src.vocabulary, tgt.vocabulary),
            Detokenizer(tgt).never, self._run.num_workers, self._run.precision,
        )  # fmt: skip

    def line_translator(self, with_tokens: bool) -> LineTranslator:
        return self.translator_with(self.engine, self._run.search_with_pytorch, with_tokens)

    @property
    def target_scorer(self) -> ConvertedScorer:
        """What scores given targets."""
        return ConvertedScorer(self.line_translator(with_tokens=False), self.engine)

    @property
    def translator(self) -> Any:
        """The translator that PyTorch searches for, which knows the model's attention."""
        return self._run.in_full.translator

    def word_links(self, pairs: Sequence[tuple[str, str]]) -> list[list[tuple[int, int]]]:
        links: list[list[tuple[int, int]]] = self._run.in_full.word_links(pairs)
        return links
