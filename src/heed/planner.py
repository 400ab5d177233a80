"""Planning a training: examine the data and the machine, complete the recipe, predict time and memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from heed.core.config import Document
from heed.core.environment import data_dir
from heed.core.errors import DataError, UsageError
from heed.fine_tuning import fine_tuned
from heed.models import build_model
from heed.models.vocabulary_change import require_exchangeable
from heed.nn.contract import Vocabularies
from heed.nn.device import choose_device
from heed.recipe import Recipe, build_recipe, require_known_format, with_members
from heed.run import Run, load_tokenizers
from heed.tasks import TASKS, task_type
from heed.tasks.defaults import CorpusStats, Machine, characters_per_token
from heed.text.doctor import Diagnosis
from heed.text.tokenizers import require_trainable
from heed.training.cost_estimate import CostEstimate, estimate_cost
from heed.training.metrics_log import require_tensorboard

WARM_UPS = (800, 400, 200, 100, 50, 25)
"""Updates of a warm-up that is shortened. After 440 updates, a warm-up of 100 had BLEU 7.2 where 800 had 6.0."""


@dataclass(frozen=True)
class TrainOptions:
    """Options of one training that are not part of its recipe."""

    out: Path
    overwrite: bool = False
    force: bool = False
    init: Path | None = None
    device: str = "auto"
    quiet: bool = False
    tokenizer_of: Path | None = None
    """A run whose tokenizers are used, so that its models and this one can be combined."""
    new_vocabulary: bool = False
    """With `init`: train a vocabulary on the new data; pieces in both vocabularies keep their weights."""


@dataclass(frozen=True)
class Plan:
    """A complete recipe, the findings in its data, and the reasons for what was chosen."""

    recipe: Recipe
    reasons: Mapping[str, str]
    diagnosis: Diagnosis
    machine: Machine
    device: torch.device
    stats: CorpusStats
    vocabularies: Vocabularies | None = None
    """Those of another run, where its tokenizers are used; else they are not known before the training."""


class Planner:
    """Completes a recipe from what the user gave."""

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
        if document.name and data_dir() is not None:
            self.overrides = {"data.dir": str(data_dir()), **self.overrides}

    def plan(self) -> Plan:
        """Examine the data and the machine; without a recipe file, choose what the user left open."""
        machine = Machine.here(self.device)
        draft, reasons = self._recipe(CorpusStats(1, 1.0), machine)  # reports every mistake before the data is read
        member = task_type(draft.task)
        if draft.training.tensorboard:
            require_tensorboard()
        if self.tokenizer_of is None:
            require_trainable(draft.tokenizer)
        if self.init is None or self.tokenizer_of is not self.init:
            member.require_new_tokenizers(draft)
        examination = member.examine(draft.data, self.quiet)
        diagnosis = examination.diagnosis
        stats = CorpusStats(
            diagnosis.num_pairs, _characters_per_row(diagnosis), diagnosis.num_in_parts, examination.num_repeated,
            _growth(diagnosis), diagnosis.languages,
        )  # fmt: skip
        recipe, reasons = self._recipe(stats, machine)
        if self.init is not None:
            _require_like(self.init, recipe)
        vocabularies = None
        if self.tokenizer_of is not None:
            tokenizers = load_tokenizers(self.tokenizer_of.folder, member.sides)
            member.require_tokenizers(tokenizers, recipe.data)
            vocabularies = member.vocabularies({side: len(each.vocabulary) for side, each in tokenizers.items()})
        plan = Plan(with_members(recipe), reasons, diagnosis, machine, self.device, stats, vocabularies)
        return plan if self.document.name else self._with_fitting_warm_up(plan)

    def _with_fitting_warm_up(self, plan: Plan) -> Plan:
        """Shorten the chosen warm-up to a quarter of the updates that the user's time limit allows."""
        key = "training.warmup_steps"
        if key in self.overrides or "training.max_minutes" not in self.overrides or key not in plan.reasons:
            return plan
        expected = expectation(plan)
        if expected is None or expected.num_updates >= 4 * plan.recipe.training.warmup_steps:
            return plan
        fitting = next((steps for steps in WARM_UPS if steps <= expected.num_updates / 4), WARM_UPS[-1])
        training = plan.recipe.training.model_copy(update={"warmup_steps": fitting})
        reasons = {**plan.reasons, key: "updates; a quarter of what the time limit allows"}
        return replace(plan, recipe=plan.recipe.model_copy(update={"training": training}), reasons=reasons)

    def _recipe(self, stats: CorpusStats, machine: Machine) -> tuple[Recipe, Mapping[str, str]]:
        """The recipe for such a corpus, and the reasons for what was chosen."""
        taken = self._tokenizer_taken()
        flag = "--init" if self.tokenizer_of is self.init else "--tokenizer-of"
        if differing := [key for key, value in taken.items() if self.overrides.get(key, value) != value]:
            advice = ", or train a new vocabulary with --init-vocabulary new" if flag == "--init" else ""
            listed = ", ".join(f"--{key}={self.overrides[key]}" for key in differing)
            raise UsageError(f"{flag} keeps that run's vocabulary: leave out {listed}{advice}.")
        given = {**self.overrides, **taken}
        if self.document.name:
            return build_recipe(self.document, given), {}
        task = given.get("task")
        if not isinstance(task, str) or task not in TASKS:
            return build_recipe(Document(), given), {}  # raises the error for it
        if self.init is None:
            choices = task_type(task).defaults(stats, machine, given)
        else:
            choices = fine_tuned(task_type(task), stats, machine, self.init.recipe.model_dump(), given)
        reasons = {**choices.reasons, **dict.fromkeys(taken, f"as in {flag}")}
        return build_recipe(Document(_nested(choices.values)), given), reasons

    def _tokenizer_taken(self) -> dict[str, object]:
        """The `[tokenizer]` keys of the run whose tokenizers are used; they take precedence over a recipe file.

        Subword dropout is not among them: each training chooses its own.
        """
        if self.tokenizer_of is None:
            return {}
        table = self.tokenizer_of.recipe.tokenizer.model_dump(exclude={"dropout"})
        return {f"tokenizer.{name}": value for name, value in table.items()}


def tokenizer_of(options: TrainOptions, init: Run | None) -> Run | None:
    """The run whose tokenizers are used; None where new ones are trained."""
    if options.tokenizer_of is not None:
        return Run(options.tokenizer_of)
    return None if options.new_vocabulary else init


def _require_trained(init: Run, new_vocabulary: bool) -> None:
    """Raise unless the run has weights that can be trained further; counts are made from one text and cannot."""
    if init.blank_model.count_based:
        raise UsageError(
            f"--init {init.folder}: its model ({init.recipe.model.kind}) is count-based and cannot be "
            "fine-tuned. Count both texts together, or take only its vocabulary with --tokenizer-of."
        )
    init.require_weights()
    if new_vocabulary:
        require_exchangeable(init.recipe.model)


def _require_like(init: Run, recipe: Recipe) -> None:
    """Raise UsageError unless both models have the same kind, shapes and choices; dropout may differ."""
    theirs, ours = (
        {name: value for name, value in config.model_dump().items() if "dropout" not in name}
        for config in (init.recipe.model, recipe.model)
    )
    if theirs != ours:
        names = sorted(name for name in {*theirs, *ours} if theirs.get(name) != ours.get(name))
        listed = ", ".join(f"{name} {theirs.get(name, 'none')} there, {ours.get(name, 'none')} here" for name in names)
        raise UsageError(f"--init {init.folder}: its model differs from the recipe's ({listed}).")


def _characters_per_row(diagnosis: Diagnosis) -> float:
    """Characters of the longer side of a row, on average."""
    statistics = diagnosis.statistics
    return max((value for name, value in statistics.items() if name.endswith("_characters")), default=1.0)


def _growth(diagnosis: Diagnosis) -> float:
    """Target characters per source character; 1 where there is no source."""
    statistics = diagnosis.statistics
    return statistics.get("tgt_characters", 1.0) / max(1.0, statistics.get("src_characters", 1.0))


def _nested(values: Mapping[str, Any]) -> dict[str, Any]:
    tables: dict[str, Any] = {}
    for key, value in values.items():
        table, name = key.split(".")
        tables.setdefault(table, {})[name] = value
    return tables


def expectation(plan: Plan) -> CostEstimate | None:
    """Time and memory of the training, from a few updates with random ids; None where they are not predicted.

    A vocabulary that is not known yet has the size that the recipe allows it. Numbers of tokens are estimated from
    characters.
    """
    recipe, member = plan.recipe, task_type(plan.recipe.task)
    vocabularies = plan.vocabularies
    if vocabularies is None:
        vocabularies = member.vocabularies(dict.fromkeys(member.sides, recipe.tokenizer.vocab_size))
    model = build_model(recipe.model, vocabularies)
    if model.count_based:
        return None
    length = plan.stats.characters_per_row / characters_per_token(vocabularies.tgt_size, recipe.tokenizer.kind) + 1
    task = member(Path(), recipe, {}, plan.device)
    batch = task.trial_batch(vocabularies, length, plan.machine.num_processes)
    if batch is None:
        return None
    num_tokens = plan.stats.num_in_epoch * length
    return estimate_cost(recipe.training, model, task, batch.to(plan.device), num_tokens, plan.machine.num_processes)


def check_diagnosis(diagnosis: Diagnosis, force: bool) -> None:
    """Raise DataError for data that would ruin the training."""
    require_readable(diagnosis)
    if diagnosis.stops and not force:
        reasons = "\n".join(f"  {finding.message} {finding.advice}" for finding in diagnosis.stops)
        raise DataError(f"this data would ruin the run:\n{reasons}\nFix it, or continue with --force.")


def require_readable(diagnosis: Diagnosis) -> None:
    """Raise DataError for data that cannot be read to its end, which --force does not change."""
    if unreadable := [finding.message for finding in diagnosis.stops if finding.check == "unreadable"]:
        raise DataError("\n".join(unreadable))
