"""Runs of translators that derive, opened without PyTorch: they compute with NumPy.

Only what translating needs of the recipe is read. Where anything of it is missing, damaged or changed, the run is
opened in full, which explains what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import ConfigDict

from heed.core.config import Config, Document, build
from heed.core.environment import num_cpus
from heed.core.errors import HeedError
from heed.core.formats import FORMAT, require_format
from heed.core.own_scorer import used_scorer, verdict_of
from heed.core.run_files import RECIPE, WEIGHTS, RunFiles
from heed.core.toml import MAX_BYTES, parse_toml
from heed.core.weight_file import read_header
from heed.decoding.options import SearchOptions
from heed.inference.deriving_translator import DerivingTranslator
from heed.inference.rescoring import RescoredDerivations
from heed.report.usability import usability
from heed.statistical.derivation import Derives
from heed.statistical.phrases.settings import PhraseSettings
from heed.statistical.phrases.translator import PhraseTranslator
from heed.statistical.rules.translator import RuleTranslator
from heed.statistical.saved_arrays import Arrays, read_arrays
from heed.tasks.prepare import vocabulary_digests
from heed.tasks.translation.converted import open_converted
from heed.tasks.translation.data import TranslationData
from heed.tasks.translation.translating import RunWithoutPyTorch
from heed.text.tokenizers import Tokenizer, load_tokenizers
from heed.text.vocabulary import BOS_ID, EOS_ID


def _phrases(arrays: Arrays, table: Mapping[str, Any], num_words: int) -> PhraseTranslator:
    settings = build(PhraseSettings, Document(table))
    return PhraseTranslator.from_arrays(arrays, num_words, BOS_ID, EOS_ID, settings.options_per_phrase, settings.limits)


def _rules(arrays: Arrays, table: Mapping[str, Any], num_words: int) -> RuleTranslator:
    return RuleTranslator.from_arrays(arrays, num_words)


KINDS: Mapping[Any, Callable[[Arrays, Mapping[str, Any], int], Derives]] = {
    "phrase_based": _phrases, "rule_based": _rules,
}  # fmt: skip
"""The translator of each `model.kind` from its arrays, the rest of `[model]` and the size of the vocabulary."""


class DerivingRecipe(Config):
    """The tables of a recipe that translating reads besides `[model]`."""

    model_config = ConfigDict(extra="ignore")

    data: TranslationData
    """The recipe's `[data]`."""
    decoding: SearchOptions
    """The recipe's `[decoding]`."""


def open_deriving(folder: Path, tag: str | None, precision: str, engine: str, num_workers: int) -> DerivingRun | None:
    """Open a run without PyTorch; None if it must be opened in full. The arguments are those of `heed.load`."""
    if precision != "float32" or engine == "ctranslate2":
        return None
    try:
        values = parse_toml(RunFiles(folder).read(RECIPE, MAX_BYTES), RECIPE).values
        model = values.get("model")
        if not isinstance(model, dict) or model.get("kind") not in [*KINDS] or values.get("members"):
            return None
        training = values.get("training", {})
        if not isinstance(training, dict):
            return None
        require_format(values.get("format", FORMAT), RECIPE)
        recipe = build(DerivingRecipe, Document(values))
        tokenizers = load_tokenizers(folder, ("src", "tgt"))
        made_with = read_header(folder / WEIGHTS).metadata
        if any(made_with.get(key, digest) != digest for key, digest in vocabulary_digests(tokenizers).items()):
            return None
        table = {key: value for key, value in model.items() if key != "kind"}
        translator = KINDS[model["kind"]](read_arrays(folder / WEIGHTS), table, len(tokenizers["tgt"].vocabulary))
        if training.get("scorer"):
            if verdict_of(folder) is None:  # which is said when it is opened in full
                return None
            if (place := used_scorer(folder)) is not None:
                scorer = open_converted(place, None, precision, engine, num_workers)
                if scorer is None:
                    return None
                sides = tokenizers["src"], tokenizers["tgt"]
                translator = RescoredDerivations(translator, *sides, [scorer.target_scorer], num_workers or num_cpus())
    except HeedError:
        return None
    return DerivingRun(folder, tag, recipe, tokenizers, translator)


class DerivingRun(RunWithoutPyTorch):
    """A run with its translator."""

    can_avoid_loops = False

    def __init__(
        self, folder: Path, tag: str | None, recipe: DerivingRecipe, tokenizers: Mapping[str, Tokenizer],
        derives: Derives,
    ) -> None:  # fmt: skip
        super().__init__(folder, tag, recipe)
        self.recipe = recipe
        self._tokenizers = tokenizers
        self._derives = derives

    @property
    def tokenizers(self) -> Mapping[str, Tokenizer]:
        return self._tokenizers

    @property
    def not_usable(self) -> str:
        return usability(self)

    @cached_property
    def translator(self) -> DerivingTranslator:
        """The translator with its tokenizers, normaliser and output checks."""
        src, tgt = self._tokenizers["src"], self._tokenizers["tgt"]
        return DerivingTranslator(self._derives, src, tgt, self.data.normaliser, self.checks)

    def line_translator(self, with_tokens: bool) -> DerivingTranslator:
        return self.translator

    def word_links(self, pairs: Sequence[tuple[str, str]]) -> list[list[tuple[int, int]]]:
        from heed.inference.alignment import links_of_pairs  # imports PyTorch; translations bring their own links

        return links_of_pairs(self.translator, pairs)
