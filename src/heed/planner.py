"""From what a person said to a complete recipe: what is in the data, what fits it, what will it take?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from heed import chooser
from heed.core.config import Document, build
from heed.core.environment import data_dir, num_threads
from heed.core.errors import DataError, UsageError
from heed.models import build_model
from heed.models.vocabulary_change import require_exchangeable
from heed.nn.contract import Vocabularies
from heed.nn.device import choose_device, set_threads
from heed.recipe import Recipe, require_known_format
from heed.run import Run
from heed.tasks.config import DataConfig
from heed.tasks.parts import Part
from heed.tasks.translation import require_tags
from heed.text.doctor import Diagnosis, diagnose_files, diagnose_text_files, how_to_exchange_part, with_parts
from heed.text.readers import read_text
from heed.text.tokenizers import require_trainable
from heed.training.expectation import Expectation, expect
from heed.training.journal import require_tensorboard


@dataclass(frozen=True)
class TrainOptions:
    """What is said about one training beside its recipe."""

    out: Path
    overwrite: bool = False
    force: bool = False
    init: Path | None = None
    device: str = "auto"
    threads: int = 0
    quiet: bool = False
    tokenizer_of: Path | None = None
    """A run whose tokenizers are taken, so that its models and this one can work together."""
    new_vocabulary: bool = False
    """With `init`: learn a vocabulary from the new data; pieces that both have keep their weights."""


@dataclass(frozen=True)
class Plan:
    """A recipe that is complete, what was found in its data, and why what was chosen."""

    recipe: Recipe
    reasons: Mapping[str, str]
    diagnosis: Diagnosis
    machine: chooser.Machine
    device: torch.device
    survey: chooser.Survey


class Planner:
    """From what the user said to a complete recipe."""

    def __init__(self, document: Document, overrides: Mapping[str, object], options: TrainOptions) -> None:
        require_known_format(document)
        self.document = document
        self.overrides = dict(overrides)
        self.quiet = options.quiet
        self.init = Run(options.init) if options.init else None
        if self.init is not None:
            _require_trained(self.init, options.new_vocabulary)
        self.tokenizer_of = tokenizer_of(options, self.init)
        self.device = choose_device(options.device)
        set_threads(options.threads or num_threads())
        if document.name and data_dir() is not None:
            self.overrides = {"data.dir": str(data_dir()), **self.overrides}

    def plan(self) -> Plan:
        """Examine the data and the machine; choose what the user left open when there is no recipe file."""
        machine = chooser.Machine.here(self.device)
        draft, reasons = self._recipe(chooser.Survey(1, 1.0), machine)  # every mistake is told before the data is read
        if draft.training.tensorboard:
            require_tensorboard()
        if self.tokenizer_of is None:
            require_trainable(draft.tokenizer)
        if self.init is None or self.tokenizer_of is not self.init:
            _require_own_embeddings(draft)
        diagnosis, num_repeated = _examine(draft, self.quiet)
        characters = _characters_per_row(diagnosis)
        growth = _growth(diagnosis)
        survey = chooser.Survey(
            diagnosis.num_pairs, characters, diagnosis.num_in_parts, num_repeated, growth, diagnosis.languages
        )
        recipe, reasons = self._recipe(survey, machine)
        if self.init is not None:
            _require_like(self.init, recipe)
        if self.tokenizer_of is not None and recipe.task == "translation":
            taken = self.tokenizer_of.tokenizers  # a language model has one alone
            require_tags(taken.get("src", taken["tgt"]), recipe.data)
        return Plan(recipe, reasons, diagnosis, machine, self.device, survey)

    def _recipe(self, survey: chooser.Survey, machine: chooser.Machine) -> tuple[Recipe, Mapping[str, str]]:
        """The recipe for such a corpus, and the reasons for what was chosen."""
        taken = self._tokenizer_taken()
        flag = "--init" if self.tokenizer_of is self.init else "--tokenizer-of"
        if differing := [key for key, value in taken.items() if self.overrides.get(key, value) != value]:
            advice = ", or learn another vocabulary with --init-vocabulary new" if flag == "--init" else ""
            listed = ", ".join(f"--{key}={self.overrides[key]}" for key in differing)
            raise UsageError(f"{flag} keeps that run's vocabulary: leave out {listed}{advice}.")
        given = {**self.overrides, **taken}
        if self.document.name:
            return build(Recipe, self.document, given), {}
        choose = chooser.CHOOSERS.get(str(given.get("task")), chooser.choose_translation)
        if self.init is None:
            choices = choose(survey, machine, given)
        else:
            choices = chooser.fine_tuned(choose, survey, machine, self.init.recipe.model_dump(), given)
        reasons = {**choices.reasons, **dict.fromkeys(taken, f"as in {flag}")}
        return build(Recipe, Document(_nested(choices.values)), given), reasons

    def _tokenizer_taken(self) -> dict[str, object]:
        """What the recipe of the run whose tokenizers are taken says of them, whatever a recipe file says here.

        Subword dropout is none of it: it is up to each training.
        """
        if self.tokenizer_of is None:
            return {}
        table = self.tokenizer_of.recipe.tokenizer.model_dump(exclude={"dropout"})
        return {f"tokenizer.{name}": value for name, value in table.items()}


def _examine(recipe: Recipe, quiet: bool) -> tuple[Diagnosis, int]:
    """What is found in the data, and how many rows of an epoch are repetitions."""
    data = recipe.data
    if recipe.task == "translation":
        parts = [(part, _examine_part(part, data, quiet)) for part in data.train_parts()]
        num_repeated = sum((part.repeat - 1) * found.num_pairs for part, found in parts)
        to_exchange = {part.label: how_to_exchange_part(part.files, data.errors) for part, _ in parts[1:]}
        return with_parts(parts[0][1], {part.label: found for part, found in parts[1:]}, to_exchange), num_repeated
    if not data.text:
        raise UsageError("data.text is missing: give --text F.")
    if data.vocabulary_text:
        next(iter(read_text(data.resolve(data.vocabulary_text), data.errors)), None)  # whether it can be read
    valid = data.resolve(data.valid_text) if data.valid_text else None
    return diagnose_text_files(data.resolve(data.text), valid, errors=data.errors, quiet=quiet), 0


def _examine_part(part: Part, data: DataConfig, quiet: bool) -> Diagnosis:
    """With the validation data beside it, where that is of the same languages."""
    same_languages = (part.files.src_lang, part.files.tgt_lang) == (data.src_lang, data.tgt_lang)
    valid = data.valid_files() if same_languages else None
    return diagnose_files(part.files, valid, errors=data.errors, pair_filter=data.filter, quiet=quiet)


def tokenizer_of(options: TrainOptions, init: Run | None) -> Run | None:
    """The run whose tokenizers are taken; None where new ones are trained."""
    if options.tokenizer_of is not None:
        return Run(options.tokenizer_of)
    return None if options.new_vocabulary else init


def _require_trained(init: Run, new_vocabulary: bool) -> None:
    """Its weights must be there, and of a kind that goes on: counts are made anew from each text."""
    if init.blank_model.count_based:
        raise UsageError(
            f"--init {init.folder}: its model ({init.recipe.model.kind}) is counted, and counting does not go on from "
            "counts. Count both texts together, or take only its vocabulary with --tokenizer-of."
        )
    init.require_weights()
    if new_vocabulary:
        require_exchangeable(init.recipe.model)


def _require_own_embeddings(recipe: Recipe) -> None:
    """Piece 500 of one vocabulary has nothing to do with piece 500 of another: they cannot share their weights."""
    alike = recipe.tokenizer.kind == "byte" and not recipe.data.tags  # a tag is a piece of the source's alone
    separate = recipe.task == "translation" and not recipe.tokenizer.joint and not alike
    if separate and recipe.model.model_dump().get("tie") == "all":
        raise UsageError(
            'tokenizer.joint = false makes a vocabulary for each side, and model.tie = "all" one embedding for both: '
            'set model.tie = "target", or tokenizer.joint = true.'
        )


def _require_like(init: Run, recipe: Recipe) -> None:
    """Weights fit only a model of the same kind, shape and choices; what may differ is dropout."""
    theirs, ours = (
        {name: value for name, value in config.model_dump().items() if "dropout" not in name}
        for config in (init.recipe.model, recipe.model)
    )
    if theirs != ours:
        names = sorted(name for name in {*theirs, *ours} if theirs.get(name) != ours.get(name))
        said = ", ".join(f"{name} {theirs.get(name, 'none')} there, {ours.get(name, 'none')} here" for name in names)
        raise UsageError(f"--init {init.folder}: its model is another one than the recipe's ({said}).")


def _characters_per_row(diagnosis: Diagnosis) -> float:
    """Characters of the longer side of a row, on average."""
    found = diagnosis.statistics
    return max((found[name] for name in found if name.endswith("_characters")), default=1.0)


def _growth(diagnosis: Diagnosis) -> float:
    """Characters of the target for each of the source; 1 where there is no source."""
    found = diagnosis.statistics
    return found.get("tgt_characters", 1.0) / max(1.0, found.get("src_characters", 1.0))


def _nested(values: Mapping[str, Any]) -> dict[str, Any]:
    tables: dict[str, Any] = {}
    for key, value in values.items():
        table, name = key.split(".")
        tables.setdefault(table, {})[name] = value
    return tables


def expectation(plan: Plan) -> Expectation | None:
    """Time and memory of the training, from a few updates with random tokens; None for a counting model.

    The vocabulary is not learned yet, so its size is the recipe's, and tokens are estimated from characters.
    """
    recipe = plan.recipe
    size = recipe.tokenizer.vocab_size
    vocabularies = Vocabularies(size if recipe.task == "translation" else 0, size)
    model = build_model(recipe.model, vocabularies)
    if model.count_based:
        return None
    length = plan.survey.characters_per_row / chooser.characters_per_token(size, recipe.tokenizer.kind) + 1
    num_tokens = plan.survey.num_in_epoch * length
    processes = plan.machine.num_processes
    shape = _batch_shape(recipe, length, processes)
    return expect(recipe.training, model, vocabularies, num_tokens, shape, plan.device, processes)


def _batch_shape(recipe: Recipe, length: float, processes: int) -> tuple[int, int]:
    """Rows of a process's batch, and tokens of a row, where sentences have `length` tokens."""
    training = recipe.training
    if recipe.data.text_as == "stream":
        return max(1, training.num_streams // processes), training.context
    tokens = training.context if recipe.data.text_as == "windows" else round(length)
    tokens = max(2, min(tokens, training.tokens_per_batch))
    return max(1, training.tokens_per_batch // tokens), tokens


def check_diagnosis(diagnosis: Diagnosis, force: bool) -> None:
    """Stop before a training that its data would ruin."""
    require_readable(diagnosis)
    if diagnosis.stops and not force:
        reasons = "\n".join(f"  {finding.message} {finding.advice}" for finding in diagnosis.stops)
        raise DataError(f"this data would ruin the run:\n{reasons}\nMend it, or go on all the same with --force.")


def require_readable(diagnosis: Diagnosis) -> None:
    """Stop before a training whose data cannot be read to its end: that cannot be forced."""
    if unreadable := [finding.message for finding in diagnosis.stops if finding.check == "unreadable"]:
        raise DataError("\n".join(unreadable))
