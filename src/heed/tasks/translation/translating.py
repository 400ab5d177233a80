"""Translating with a run: tokenizers, tags, output checks and engine, whatever opened the run.

This module and all that it imports do without PyTorch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Protocol

from heed.core.errors import DataError
from heed.data.validation import read_valid
from heed.decoding.options import SearchOptions
from heed.inference.ctranslate2_engine import searcher_with_fallback
from heed.inference.engine_contract import Engine
from heed.inference.line_translator import LineTranslator
from heed.inference.output_checks import Confidence, Guard, OutputChecks, Searcher
from heed.tasks.translation.compatibility import warn_about_input
from heed.tasks.translation.data import TranslationData
from heed.text.language.codes import same_language
from heed.text.tokenizers import Tokenizer

BATCHES_AT_ONCE = 4
"""Batches that one of several threads gives to the engine, which divides them among its workers."""


class Translating(ABC):
    """What translating needs of a run, and what follows from it."""

    @property
    @abstractmethod
    def folder(self) -> Path:
        """The run folder."""

    @property
    @abstractmethod
    def tag(self) -> str | None:
        """The tag before each source; None for the default."""

    @property
    @abstractmethod
    def data(self) -> TranslationData:
        """The run's `[data]` table."""

    @property
    @abstractmethod
    def decoding(self) -> SearchOptions:
        """The run's `[decoding]` table."""

    @property
    @abstractmethod
    def tokenizers(self) -> Mapping[str, Tokenizer]:
        """The tokenizers of both sides."""

    @property
    @abstractmethod
    def not_usable(self) -> str:
        """Why the model is not usable yet; empty for a usable one."""

    @property
    def can_avoid_loops(self) -> bool:
        """Whether a search can be made again without repeated n-grams."""
        return True

    @abstractmethod
    def line_translator(self, with_tokens: bool) -> LineTranslator:
        """The translator of lines. `with_tokens`: hypotheses have the log-probabilities of their tokens."""

    @abstractmethod
    def word_links(self, pairs: Sequence[tuple[str, str]]) -> list[list[tuple[int, int]]]:
        """The word alignment of texts and their translations, by attention (`heed.inference.alignment`)."""

    # --- languages and tags -----------------------------------------------------------------------------

    @property
    def source_tag(self) -> str:
        """The tag before each source. Raises UsageError if it is unknown, or if one must be chosen."""
        return self.data.tag_to_use(self.tokenizers["src"].vocabulary.tags, self.tag)

    @property
    def before_source(self) -> tuple[int, ...]:
        """The ids before each source: that of its tag, if there is one."""
        tag = self.source_tag
        return (self.tokenizers["src"].vocabulary.tag_ids[tag],) if tag else ()

    @property
    def languages(self) -> tuple[str, str]:
        """Language codes of source and target, for the tag of the run; empty if unknown."""
        return self.data.languages(self.data.default_tag if self.tag is None else self.tag)

    # --- translating ------------------------------------------------------------------------------------

    def translator_with(self, engine: Engine, otherwise: Searcher, with_tokens: bool) -> LineTranslator:
        """The translator that uses the engine where it can, and `otherwise` for everything else."""
        sides = self.tokenizers["src"], self.tokenizers["tgt"]
        translator = LineTranslator(*sides, self.data.normaliser, otherwise, self.checks, self.before_source)
        with_tokens = with_tokens or self.checks.confidence is not None
        search = searcher_with_fallback(engine, translator.best_of, otherwise, with_tokens)
        return translator.searched_by(search, num_threads=engine.num_workers + 1, num_batches=BATCHES_AT_ONCE)

    def check_input(self, lines: Sequence[str], quiet: bool = False) -> None:
        """Warn about lines that are XML, differ from the run's text, or are in its target language."""
        warn_about_input(self, lines, quiet)

    @cached_property
    def checks(self) -> OutputChecks:
        """Checks of outputs: the guard for this language pair, and confidences if they were calibrated."""
        src_lang, tgt_lang = self.languages
        like_validation = self.source_tag == self.data.tag_of_validation
        try:
            valid = read_valid(self.folder) if like_validation else []
        except DataError:  # not required for translating; the guard then accepts any length
            valid = []
        guard = Guard.of_pairs([(row[0], row[-1]) for row in valid[:1000]], same_language(src_lang, tgt_lang))
        confidence = self.confidence if like_validation else None
        return OutputChecks(guard, confidence, tgt_lang=tgt_lang, can_avoid_loops=self.can_avoid_loops)

    @cached_property
    def confidence(self) -> Confidence | None:
        """The confidence that `heed evaluate --calibrate` wrote, if any."""
        return Confidence.read(self.folder)


class TranslationSettings(Protocol):
    """What a run is opened with, without reading its recipe in full."""

    data: TranslationData
    """The recipe's `[data]`."""
    decoding: SearchOptions
    """The recipe's `[decoding]`."""


class RunWithoutPyTorch(Translating):
    """A run folder of which only what translates was opened."""

    def __init__(self, folder: Path, tag: str | None, settings: TranslationSettings) -> None:
        self._folder = folder
        self._tag = tag
        self._settings = settings

    @property
    def folder(self) -> Path:
        return self._folder

    @property
    def tag(self) -> str | None:
        return self._tag

    @property
    def data(self) -> TranslationData:
        return self._settings.data

    @property
    def decoding(self) -> SearchOptions:
        return self._settings.decoding
