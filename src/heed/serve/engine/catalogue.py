"""Which models are served, between which languages, and which of them lead from one language to another?"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from heed.api import Loaded
from heed.core.errors import UsageError
from heed.decoding.options import SearchOptions
from heed.decoding.translator import ModelTranslator
from heed.documents.text_translator import Step
from heed.run import WEIGHTS, Run
from heed.serve.engine.language_samples import sample_pairs
from heed.serve.errors import BadRequestError, ModelNotFoundError
from heed.text.language.codes import code_of, is_right_to_left, name_of
from heed.text.language.frequent_words import FREQUENT_WORDS
from heed.text.language.identify import LanguageIdentifier

_NAMES = {"src": "Source language", "tgt": "Target language", "und": "Unknown language"}
"""Where a run does not say its languages."""
MAX_HOPS = 3
"""Models that one translation may go through."""


@dataclass(frozen=True)
class Language:
    """A language by its code, as the run calls it."""

    code: str

    @property
    def name(self) -> str:
        """In English; the code itself for one that is not known."""
        return _NAMES.get(self.code) or name_of(self.code)

    @property
    def is_known(self) -> bool:
        """Whether the run says what it is."""
        return self.code not in _NAMES

    @property
    def direction(self) -> str:
        """How it is written."""
        return "rtl" if is_right_to_left(self.code) else "ltr"


@dataclass(frozen=True, eq=False)
class Direction:
    """One model translating from one language to another."""

    model: ServedModel
    translator: ModelTranslator
    source: Language
    target: Language
    tag: str = ""
    """What stands before each source; empty: nothing does."""

    @property
    def step(self) -> Step:
        """This one as a step of a translation."""
        return Step(self.model.name, self.translator, self.model.options, self.source.code)


@dataclass(frozen=True, eq=False)
class ServedModel:
    """A run under its name."""

    name: str
    loaded: Loaded
    directions: tuple[Direction, ...] = ()

    @property
    def run(self) -> Run:
        """Its folder."""
        return self.loaded.run

    @property
    def is_translator(self) -> bool:
        """Whether it translates, or else is a language model."""
        return self.run.recipe.task == "translation"

    @property
    def translator(self) -> ModelTranslator:
        """The model with its tokenizers, as the run's recipe uses it."""
        return self.directions[0].translator if self.directions else self.loaded.translator

    @property
    def options(self) -> SearchOptions:
        """How it searches unless something else is asked for."""
        return self.run.recipe.decoding

    @property
    def language(self) -> Language:
        """Of its outputs."""
        data = self.run.recipe.data
        return self.directions[0].target if self.directions else Language(data.tgt_lang or data.src_lang or "und")

    @property
    def report(self) -> Path:
        """Its report.md, which may be missing."""
        return self.run.folder / "report.md"

    @cached_property
    def attends(self) -> bool:
        """Whether it has attention to its source; for the thread that owns the model."""
        if not self.is_translator:
            return False
        trace, _, _ = self.translator.trace("1", "1")
        return any(name.endswith("cross") for name in trace.weights)

    @cached_property
    def fingerprint(self) -> str:
        """Eight digits that are others for another model."""
        weights = self.run.folder / WEIGHTS
        with weights.open("rb") as file:
            head = file.read(1 << 20)
        return hashlib.sha256(head + str(weights.stat().st_size).encode()).hexdigest()[:8]

    def warm_up(self) -> None:
        """Use it once."""
        if self.is_translator:
            for direction in self.directions:
                direction.translator.translate(
                    ["1"], self.options.model_copy(update={"max_tokens": 2, "min_tokens": 0})
                )
            _ = self.attends
        else:
            self.translator.generate([""], SearchOptions(beam_size=1, max_tokens=2))


class Catalogue:
    """All models of a server."""

    def __init__(self, models: Sequence[ServedModel]) -> None:
        self.models = {model.name: model for model in models}
        self.directions = [direction for model in models for direction in model.directions]

    @staticmethod
    def of_runs(loaded: Sequence[Loaded]) -> Catalogue:
        """Names are those of the folders; two of one name get numbers."""
        names: list[str] = []
        for each in loaded:
            name = each.run.folder.resolve().name
            same = sum(other == name or other.startswith(f"{name}-") for other in names)
            names.append(f"{name}-{same + 1}" if name in names else name)
        return Catalogue([_served(name, each) for name, each in zip(names, loaded, strict=True)])

    def model(self, name: str | None, task: str) -> ServedModel:
        """A model by name; without one, the first of its task. Raises ModelNotFoundError or BadRequestError."""
        fitting = [model for model in self.models.values() if model.run.recipe.task == task]
        if name is None:
            if not fitting:
                raise ModelNotFoundError(f"This server has no {task} model.", "model")
            return fitting[0]
        if name not in self.models:
            raise ModelNotFoundError(
                f"The model {name!r} does not exist; there are: {', '.join(self.models)}.", "model"
            )
        if self.models[name] not in fitting:
            what = "a translation model" if self.models[name].is_translator else "a language model"
            raise BadRequestError(f"The model {name!r} is {what}, and this needs a {task} model.", "model")
        return self.models[name]

    @property
    def languages(self) -> list[Language]:
        """All that are translated from or to, in the order of the runs."""
        found = [side for direction in self.directions for side in (direction.source, direction.target)]
        return list(dict.fromkeys(found))

    def language(self, said: str) -> Language | None:
        """The language that somebody means by a code: `en`, `EN`, `en-GB`, `eng`."""
        by_code = {language.code.lower(): language for language in self.languages}
        if (exact := by_code.get(said.strip().lower())) is not None:
            return exact
        code = code_of(said)
        return next((language for language in self.languages if code and code_of(language.code) == code), None)

    def targets(self, source: Language) -> list[Language]:
        """What a language can be translated to, itself left out."""
        others = [language for language in self.languages if language != source]
        return [language for language in others if self.path(source, language) is not None]

    def path(self, source: Language, target: Language) -> list[Direction] | None:
        """The fewest models that lead from one language to another; None where none do. To itself: no model at all."""
        seen, paths = {source}, deque[list[Direction]]([[]])
        while paths:
            path = paths.popleft()
            here = path[-1].target if path else source
            if here == target:
                return path
            for direction in self.directions if len(path) < MAX_HOPS else ():
                if direction.source == here and direction.target not in seen:
                    seen.add(direction.target)
                    paths.append([*path, direction])
        return None

    def detector(self) -> LanguageIdentifier:
        """Tells the languages apart that are translated from or to, by what the runs were trained on."""
        samples = {
            language.code: [" ".join(FREQUENT_WORDS.get(code_of(language.code), ()))] for language in self.languages
        }
        for model in self.models.values():
            for codes, texts in sample_pairs(model.run) if model.directions else ():
                for language, text in zip(_pair(codes), texts, strict=True):
                    if language.code in samples:  # a part without a tag may be of a language that nothing leads to
                        samples[language.code].append(text)
        return LanguageIdentifier(samples)


def _served(name: str, loaded: Loaded) -> ServedModel:
    """With a direction for each pair of languages that its tags lead to."""
    model = ServedModel(name, loaded)
    if not model.is_translator:
        return model
    directions: dict[tuple[Language, Language], Direction] = {}
    for run, translator in _translators(loaded):
        pair = _pair(run.languages)
        directions.setdefault(pair, Direction(model, translator, *pair, run.source_tag))
    object.__setattr__(model, "directions", tuple(directions.values()))
    return model


def _pair(codes: tuple[str, str]) -> tuple[Language, Language]:
    """Source and target as a server calls them, where a run does not say them too."""
    source, target = codes
    return Language(source or "src"), Language(target or "tgt")


def _translators(loaded: Loaded) -> list[tuple[Run, ModelTranslator]]:
    """The run as it is, and with each of its tags. Raises UsageError for one that cannot be used at all."""
    found: list[tuple[Run, ModelTranslator]] = []
    refused: UsageError | None = None
    try:
        found.append((loaded.run, loaded.translator))
    except UsageError as error:  # each of its sources needs a tag
        refused = error
    for tag in loaded.run.recipe.data.tags:
        run = loaded.run.with_tag(tag)
        found.append((run, run.translator))
    if refused is not None and not found:
        raise refused
    return found
