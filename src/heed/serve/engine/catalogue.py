"""Catalogue of the served models: their abilities, their languages, and paths from one language to another."""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, count
from pathlib import Path
from typing import Any

from heed.core.errors import DataError, MissingInputError, UsageError
from heed.core.own_files import open_own
from heed.core.own_scorer import used_scorer
from heed.core.run_files import WEIGHTS
from heed.decoding.options import SearchOptions
from heed.documents.translation import Step
from heed.inference.translator import ModelTranslator
from heed.memory.shared import SharedMemory
from heed.report.description import model_sentence
from heed.report.page import report_text
from heed.run import Run
from heed.serve.engine.languages import Language, detector_of, language_pair
from heed.serve.errors import MODEL_NOT_FOUND, ApiError
from heed.tasks.predictor import Predictor
from heed.text.language.codes import code_of
from heed.text.language.identify import Detected, LanguageIdentifier

MAX_HOPS = 3
"""Maximum number of models on the way from one language to another."""


@dataclass(frozen=True, eq=False)
class Direction:
    """One model translating from one language to another."""

    model: ServedModel
    translator: ModelTranslator
    source: Language
    target: Language
    tag: str = ""
    """The tag before each source; may be empty."""
    is_guided: bool = False
    """Whether a translation memory guides its searches, all of which are then PyTorch's."""

    @property
    def step(self) -> Step:
        """The direction as a step of a translation."""
        engine = None if self.is_guided else self.model.loaded.engine
        src_lang, _ = codes_of(self.source, self.target)
        return Step(self.model.name, self.translator, self.model.options, src_lang, engine)


@dataclass(frozen=True)
class Route:
    """The languages of a translation, and the models on the way."""

    source: Language
    target: Language
    path: list[Direction]
    detected: Detected | None
    """The source language as it was detected; None if it was given."""

    @property
    def steps(self) -> list[Step]:
        """The path as steps of a translation."""
        return [direction.step for direction in self.path]

    @property
    def codes(self) -> tuple[str, str]:
        """The codes of the first and the last language; empty if a run does not name them."""
        return codes_of(self.path[0].source, self.path[-1].target) if self.path else ("", "")


@dataclass(eq=False)
class ServedModel:
    """A run, alone or with the other runs of an ensemble, and the name that clients know it by.

    It is in memory, and so are the facts about it: its folder may be deleted, or replaced by another run's.
    """

    name: str
    loaded: Predictor
    directions: tuple[Direction, ...] = ()

    def __post_init__(self) -> None:
        runs = [self.run, *self.loaded.combined.others]
        self.folders = [run.folder for run in runs]
        """Its run folder, and those of the other runs of its ensemble."""
        self._fingerprints = list(map(fingerprint_of, self.folders))
        self.fingerprint = "-".join(self._fingerprints)
        """Eight hexadecimal digits for each run that identify its weights, from their beginning and size."""
        self._versions = list(map(version_of, self.folders))
        self._scorer = used_scorer(self.run.folder)
        self.num_parameters = sum(run.num_parameters for run in runs)
        self.description = model_sentence(self.run)
        if any(run is not self.run.scorer for run in runs[1:]):
            self.description = f"{len(runs)} models together; the first is {self.description}"
        self._abilities = frozenset(filter(self.loaded.can, self.loaded.abilities))

    def is_current(self) -> bool:
        """Whether the weights are still those in its folders, and its run has no other scorer.

        Raises MissingInputError and DataError.
        """
        has_scorer = used_scorer(self.run.folder) == self._scorer
        return has_scorer and list(map(version_of, self.folders)) == self._versions

    @property
    def run(self) -> Run:
        """Its run folder."""
        run: Run = self.loaded.run
        return run

    @property
    def abilities(self) -> frozenset[str]:
        """Its abilities: `translate`, `generate`, `predict`, ..."""
        return self._abilities

    def can(self, ability: str) -> bool:
        """Whether it has an ability."""
        return ability in self.abilities

    @property
    def searches(self) -> bool:
        """Whether it generates text by a search."""
        return self.can("translate") or self.can("generate")

    @property
    def translator(self) -> ModelTranslator:
        """The model with its tokenizers, as the run's recipe uses it."""
        return self.directions[0].translator if self.directions else self.loaded.translator

    @property
    def options(self) -> SearchOptions:
        """Its default search."""
        return self.run.recipe.decoding

    @property
    def language(self) -> Language:
        """The language of its outputs."""
        if not self.searches:
            return Language("und")
        data = self.run.recipe.data
        return self.directions[0].target if self.directions else Language(data.tgt_lang or data.src_lang or "und")

    @property
    def has_report(self) -> bool:
        """Whether `read_report` has a text."""
        return self.read_report() is not None

    def read_report(self) -> str | None:
        """The text of its report.md; None without one, if it is not a regular file, or if it is another run's."""
        try:
            report = report_text(self.run)
            return report if fingerprint_of(self.run.folder) == self._fingerprints[0] else None
        except (MissingInputError, DataError):
            return None

    @cached_property
    def attends(self) -> bool:
        """Whether it has attention to its source. Call it from the thread that owns the model."""
        if not self.can("translate") or self.can("derive"):
            return False
        trace, _, _ = self.translator.trace("1", "1")
        return any(name.endswith("cross") for name in trace.weights)

    def warm_up(self) -> None:
        """Run it once."""
        if self.can("translate"):
            short = {} if self.can("derive") else {"max_tokens": 2, "min_tokens": 0}
            for direction in self.directions:
                direction.translator.translate(["1"], self.options.model_copy(update=short))
            _ = self.attends
        elif not self.searches:
            self.loaded.warm_up()
        else:
            self.translator.generate([""], SearchOptions(beam_size=1, max_tokens=2))


class Catalogue:
    """All models of a server."""

    def __init__(self, models: Sequence[ServedModel], guide: SharedMemory | None = None) -> None:
        """`guide`: the translation memory that guides the models that it can."""
        self.guide = guide
        self.warming = ""
        """The model that `warm_up` runs or ran last, by name."""
        self.replace(models)

    def replace(self, models: Sequence[ServedModel]) -> None:
        """Have these models from now on. Whoever has a model or a route already keeps it."""
        self.models = {model.name: model for model in models}
        self.directions = [direction for model in models for direction in model.directions]

    @staticmethod
    def of_runs(loaded: Sequence[Predictor], names: Sequence[str] = (), guide: SharedMemory | None = None) -> Catalogue:
        """Runs and the names of their models, by default those of their folders."""
        names = names or names_of([each.run.folder for each in loaded])
        return Catalogue([served(name, each, guide) for name, each in zip(names, loaded, strict=True)], guide)

    def able_to(self, *abilities: str) -> list[ServedModel]:
        """The models that have one of these abilities."""
        return [model for model in self.models.values() if any(map(model.can, abilities))]

    def model(self, name: str | None, ability: str) -> ServedModel:
        """A model by name; without a name, the first with the ability. Raises ApiError if there is none."""
        if name is None:
            for model in self.able_to(ability):
                return model
            raise ApiError(404, f"No model of this server can {ability}.", "model", MODEL_NOT_FOUND)
        if name not in self.models:
            available = ", ".join(self.models)
            message = f"The model {name!r} does not exist; available models: {available}."
            raise ApiError(404, message, "model", MODEL_NOT_FOUND)
        if not self.models[name].can(ability):
            raise ApiError(400, f"The model {name!r} cannot {ability}.", "model")
        return self.models[name]

    @property
    def languages(self) -> list[Language]:
        """All languages that are translated from or to, in the order of the runs."""
        sides = [side for direction in self.directions for side in (direction.source, direction.target)]
        return list(dict.fromkeys(sides))

    def language(self, requested: str) -> Language | None:
        """The language that a code means: `en`, `EN`, `en-GB`, `eng`."""
        by_code = {language.code.lower(): language for language in self.languages}
        if (exact := by_code.get(requested.strip().lower())) is not None:
            return exact
        code = code_of(requested)
        return next((language for language in self.languages if code and code_of(language.code) == code), None)

    def targets(self, source: Language) -> list[Language]:
        """The languages that a language can be translated to; itself only where a model does that."""
        return [language for language in self.languages if self.path(source, language)]

    def path(self, source: Language, target: Language, model: ServedModel | None = None) -> list[Direction] | None:
        """The shortest path from one language to another, or None. From a language to itself it is empty.

        With a `model`, it is the model's own direction from one to the other. A model from a language to itself, such
        as one that corrects spelling, is the path between these.
        """
        if model is not None:
            return [each for each in model.directions if (each.source, each.target) == (source, target)] or None
        if source == target:
            return [each for each in self.directions if each.source == each.target == source][:1]
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

    def warm_up(self) -> None:
        """Run every model once."""
        for model in self.models.values():
            self.warming = model.name
            model.warm_up()

    def detector(self) -> LanguageIdentifier:
        """Detects the languages that are translated from or to."""
        return detector_of((model.run for model in self.models.values() if model.directions), self.languages)


def names_of(folders: Sequence[Path]) -> list[str]:
    """Models are named after their folders, or the links to these; folders of the same name are numbered."""
    names: list[str] = []
    for folder in folders:
        name = folder.name if folder.name not in ("", "..") else folder.resolve().name
        numbered = (f"{name}-{number}" for number in count(2))
        names.append(next(each for each in chain([name], numbered) if each not in names))
    return names


def version_of(run: Path) -> tuple[int, int, int]:
    """What changes when the file with the weights of a run is replaced. Raises MissingInputError and DataError."""
    with open_own(run, WEIGHTS) as file:
        status = os.fstat(file.fileno())
    return status.st_ino, status.st_size, status.st_mtime_ns


def fingerprint_of(run: Path) -> str:
    """Eight hexadecimal digits for the beginning and the size of the weights, which hardly any two runs share.

    Raises MissingInputError and DataError.
    """
    with open_own(run, WEIGHTS) as file:
        head = file.read(1 << 20)
        size = os.fstat(file.fileno()).st_size
    return hashlib.sha256(head + str(size).encode()).hexdigest()[:8]


def can_be_guided(loaded: Predictor) -> bool:
    """Whether a translation memory can guide its searches."""
    return loaded.can("translate") and not loaded.can("derive")


def served(name: str, loaded: Predictor, guide: SharedMemory | None = None) -> ServedModel:
    """A model with a direction for each pair of languages among its tags, guided by a memory if it can be."""
    model = ServedModel(name, loaded)
    if not model.can("translate"):
        return model
    if model.options.unknown == "replace":
        raise UsageError(
            f'{loaded.run.folder}: a server does not replace unknown words. Set decoding.unknown = "keep" or "never" '
            "in its recipe.toml, and leave out decoding.dictionary."
        )
    directions: dict[tuple[Language, Language], Direction] = {}
    for predictor in _predictors(loaded):
        run, pair = predictor.run, language_pair(predictor.languages)
        if pair in directions:
            continue
        is_guided = guide is not None and can_be_guided(loaded)
        if guide is not None and is_guided:
            combined = replace(loaded.combined, memory=guide.to_read(*codes_of(*pair)))
            predictor = run.task_type.predictor(run, combined)
        directions[pair] = Direction(model, predictor.translator, *pair, run.predictor.source_tag, is_guided)
    model.directions = tuple(directions.values())
    return model


def codes_of(source: Language, target: Language) -> tuple[str, str]:
    """The codes of two languages; empty if a run does not name them."""
    source_code, target_code = (language.code if language.is_known else "" for language in (source, target))
    return source_code, target_code


def _predictors(loaded: Predictor) -> list[Any]:
    """The run without a tag and with each of its tags. Raises UsageError if neither works."""
    predictors: list[Any] = []
    refused: UsageError | None = None
    try:
        _ = loaded.translator
        predictors.append(loaded)
    except UsageError as error:  # each of its sources needs a tag
        refused = error
    tagged = [loaded.run.with_tag(tag) for tag in loaded.run.recipe.data.tags]
    predictors += [run.task_type.predictor(run, loaded.combined) for run in tagged]
    if refused is not None and not predictors:
        raise refused
    return predictors
