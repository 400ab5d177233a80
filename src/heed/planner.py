"""Planning of a training: examine the data and the machine, complete the recipe, estimate time and memory.

A training that starts from the weights of another run (fine-tuning) inherits settings from that run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, get_args

import torch

from heed.core.config import Document
from heed.core.environment import data_dir
from heed.core.errors import UsageError
from heed.core.progress import warn
from heed.data.batch import TrainingBatch
from heed.limits import LIMITS
from heed.members import register_installed
from heed.models import MODELS, GenerativeModel
from heed.models.depth_change import DEPTHS, fills
from heed.models.transfer import without_dropout
from heed.models.vocabulary_change import require_exchangeable
from heed.nn.contract import Vocabularies
from heed.nn.device import choose_device
from heed.nn.weight_file import shapes_of
from heed.recipe import Recipe, build_recipe, require_known_format, require_trainable_together, with_members
from heed.run import Run
from heed.tasks import TASKS, task_type
from heed.tasks.defaults import SCHEDULE, TABLES, WARM_UP, Choices, CorpusStats, Machine, characters_per_token
from heed.tasks.task import Task
from heed.text.doctor.findings import Diagnosis
from heed.text.tokenizers import load_tokenizers, require_trainable
from heed.training.config import TrainingConfig
from heed.training.cost_estimate import CostEstimate, estimate_cost, speeds_with_fewer_threads, thread_advice
from heed.training.metrics_log import require_tensorboard
from heed.transfer import Transfer

LONG_UPDATE = 2.0
"""Seconds of an update from which it is not timed with other numbers of threads."""
InitParts = Literal["all", "encoder", "embeddings"]


@dataclass(frozen=True)
class TrainOptions:
    """Options of a training that are not part of its recipe."""

    out: Path
    overwrite: bool = False
    force: bool = False
    init: Path | None = None
    device: str = "auto"
    quiet: bool = False
    tokenizer_of: Path | None = None
    """A run whose tokenizers are used, so that both models can be combined."""
    new_vocabulary: bool = False
    """With `init`: train a new vocabulary; pieces in both vocabularies keep their weights."""
    init_parts: InitParts = "all"
    """With `init`: start from all its weights, or from those of its reader or its token vectors, for another task."""
    init_backward: Path | None = None
    """With `init` and its reader: a second language model, which reads from the end (ELMo)."""
    is_student: bool = False
    """The model learns from teachers; with `init`, as fast as if it began with random weights."""
    is_part: bool = False
    """The model only serves another one of the same data: the data and what to expect are not described again."""

    def require_consistent(self) -> None:
        """Raise UsageError for parts of weights that do not exist, and for options that need others or exclude them."""
        if self.new_vocabulary and (self.init is None or self.tokenizer_of is not None):
            raise UsageError("--init-vocabulary new needs --init RUN, and cannot be combined with --tokenizer-of.")
        if self.init_parts not in get_args(InitParts):
            raise UsageError(f"--init-parts must be all, encoder or embeddings, got {self.init_parts!r:.80}.")
        if self.init_parts == "all" and self.init_backward is None:
            return
        if self.init is None or self.new_vocabulary or self.tokenizer_of is not None:
            raise UsageError(
                "--init-parts and --init-backward need --init RUN, whose vocabulary they keep: leave out "
                "--init-vocabulary new and --tokenizer-of."
            )
        if self.init_backward is not None and self.init_parts != "encoder":
            raise UsageError("--init-backward needs --init-parts encoder.")


@dataclass(frozen=True)
class Plan:
    """A complete recipe, the reasons for its default settings, and the findings in its data."""

    recipe: Recipe
    reasons: Mapping[str, str]
    diagnosis: Diagnosis
    machine: Machine
    device: torch.device
    stats: CorpusStats
    vocabularies: Vocabularies | None = None
    """Vocabulary sizes, if the tokenizers of another run are used; otherwise they are not known yet."""
    estimate: CostEstimate | None = None
    """Time and memory of the training, if the choices needed it."""
    expected_quality: str = ""
    """The score to expect, with its spread; empty if that is not known, or the training starts from other weights."""
    similar_corpora: tuple[str, ...] = ()
    """A heading, and what similar corpora were measured to give."""
    begins_trained: bool = False
    """The training starts from all weights of another run, and has its vocabulary."""

    @cached_property
    def expected(self) -> CostEstimate | None:
        """Time and memory of the training; None if its task or model has no estimate."""
        return self.estimate or estimate_training(self)

    @property
    def warning(self) -> str:
        """Warning about limits that end the warm-up or the decay of the rate early; "" if there is none."""
        if self.expected is None:
            return ""
        return self.expected.warning(self.recipe.training, self.begins_trained)


class Planner:
    """Completes a recipe from a document and overrides."""

    def __init__(self, document: Document, overrides: Mapping[str, object], options: TrainOptions) -> None:
        require_known_format(document)
        options.require_consistent()
        self.document = document
        self.overrides = dict(overrides)
        self.quiet = options.quiet
        self.init = Run(options.init) if options.init else None
        if self.init is not None:
            _require_trained(self.init, options.new_vocabulary)
        self.tokenizer_of = tokenizer_of(options, self.init)
        self.transfer = transfer_of(options, self.init)
        self.is_part = options.is_part
        self.is_fine_tuning = self.init is not None and not options.is_student
        self.device = choose_device(options.device)
        if document.name and data_dir() is not None:
            self.overrides = {"data.dir": str(data_dir()), **self.overrides}

    def plan(self) -> Plan:
        """Examine the data and the machine; without a recipe file, choose the settings that were not given."""
        machine = Machine.here(self.device)
        draft, _ = self._recipe(CorpusStats(1, 1.0), machine)  # reports mistakes before the data is read
        require_trainable_together(draft, machine.num_processes)
        task = task_type(draft.task)
        if draft.training.tensorboard:
            require_tensorboard()
        if self.tokenizer_of is None:
            require_trainable(draft.tokenizer)
        if self.init is None or self.tokenizer_of is not self.init:
            task.require_new_tokenizers(draft)
        examination = task.examine(draft.data, self.quiet)
        diagnosis = examination.diagnosis
        stats = CorpusStats(
            diagnosis.num_pairs, _characters_per_row(diagnosis), diagnosis.num_in_parts, examination.num_repeated,
            _growth(diagnosis), diagnosis.languages, diagnosis.statistics,
        ).of_share(getattr(draft.data, "share", 1.0))  # fmt: skip
        recipe, reasons = self._recipe(stats, machine)
        if self.transfer is not None:
            self.transfer.require_like(recipe)
        elif self.init is not None:
            _require_like(self.init, recipe)
        vocabularies = None
        if self.tokenizer_of is not None:
            tokenizers = load_tokenizers(self.tokenizer_of.folder, task.sides)
            task.require_tokenizers(tokenizers, recipe.data)
            vocabularies = task.vocabularies({side: len(each.vocabulary) for side, each in tokenizers.items()})
        self._name_unused_limits(recipe)
        quality, similar = "", tuple[str, ...]()
        if not self.is_part:
            quality = task.expected_quality(recipe, stats, machine) if self.init is None else ""
            similar = tuple(task.similar_corpora(stats.num_all, stats.characters_per_row))
        plan = Plan(
            with_members(recipe), reasons, diagnosis, machine, self.device, stats, vocabularies,
            expected_quality=quality, similar_corpora=similar,
            begins_trained=None not in (self.init, self.tokenizer_of) and self.transfer is None,
        )  # fmt: skip
        return plan if self.document.name else self._with_fitting_schedule(plan)

    def _name_unused_limits(self, recipe: Recipe) -> None:
        """Warn about limits of updates and time for a model that is estimated from counts."""
        used = {"training.max_minutes"} if getattr(recipe.model, "tuning_rounds", 0) else set[str]()  # it ends tuning
        unused = [key for key in LIMITS if key in self.overrides and key not in used]
        if unused and MODELS[recipe.model.kind].count_based and not recipe.training.scorer:
            verb = "have" if len(unused) > 1 else "has"
            warn(f"{' and '.join(unused)} {verb} no effect: {recipe.model.kind} is estimated from counts.", self.quiet)

    def _with_fitting_schedule(self, plan: Plan) -> Plan:
        """Choose the schedule for the updates that the limits allow, around the keys that were given.

        Heed's own limit of time counts if there is no other.
        """
        training, given = plan.recipe.training, self.overrides
        is_only_limit = not (training.max_epochs or "training.max_steps" in given)
        is_timed = training.max_minutes > 0 and ("training.max_minutes" in given or is_only_limit)
        is_usual = not self.is_fine_tuning and "training.schedule" not in given and plan.machine.num_processes == 1
        free = {key for key in SCHEDULE if key not in given}
        if not (is_timed and is_usual):
            free &= {WARM_UP} & plan.reasons.keys()
        if not free or training.schedule == "noam":  # whose peak rate depends on its warm-up
            return plan
        estimate = estimate_training(plan) if is_timed else None
        if estimate is not None:
            num_updates = estimate.num_updates
        elif "training.max_steps" in given:
            num_updates = float(training.max_steps)
            free &= {WARM_UP}
        else:
            return plan
        chosen = task_type(plan.recipe.task).schedule_for(plan.recipe, num_updates, free)
        values = {key.removeprefix("training."): value for key, (value, _) in chosen.items()}
        training = training.model_copy(update=values)
        reasons = {**plan.reasons, **{key: reason for key, (_, reason) in chosen.items()}}
        reasons = {key: reasons[key] for key in sorted(reasons, key=lambda key: TABLES.index(key.split(".")[0]))}
        recipe = plan.recipe.model_copy(update={"training": training})
        return replace(plan, recipe=recipe, reasons=reasons, estimate=estimate)

    def _recipe(self, stats: CorpusStats, machine: Machine) -> tuple[Recipe, Mapping[str, str]]:
        """The recipe for a corpus and a machine, and the reasons for its default settings."""
        kept = self._kept_tokenizer()
        flag = "--init" if self.tokenizer_of is self.init else "--tokenizer-of"
        if differing := [key for key, value in kept.items() if self.overrides.get(key, value) != value]:
            advice = ", or train a new vocabulary with --init-vocabulary new" if flag == "--init" else ""
            listed = ", ".join(f"--{key}={self.overrides[key]}" for key in differing)
            raise UsageError(f"{flag} keeps that run's vocabulary: leave out {listed}{advice}.")
        given = {**self.overrides, **kept}
        if self.document.name:
            return build_recipe(self.document, given), {}
        register_installed()
        task = given.get("task")
        if not isinstance(task, str) or task not in TASKS:
            return build_recipe(Document(), given), {}  # raises an error
        if self.transfer is not None:
            choices = self.transfer.choices(task_type(task), stats, machine, given)
        elif self.init is None or not self.is_fine_tuning:
            choices = task_type(task).defaults(stats, machine, given)
        elif self.init.recipe.task != task:
            raise UsageError(
                f"--init {self.init.folder} is a run of the task {self.init.recipe.task}, and this training is of "
                f"{task}. Begin with a part of its weights: --init-parts encoder or --init-parts embeddings."
            )
        else:
            choices = fine_tuned(task_type(task), stats, machine, self.init.recipe.model_dump(), given)
        reasons = {**choices.reasons, **dict.fromkeys(kept, f"as in {flag}")}
        return build_recipe(Document(_nested(choices.values)), given), reasons

    def _kept_tokenizer(self) -> dict[str, object]:
        """The `[tokenizer]` keys of the run whose tokenizers are used, which override a recipe file.

        They do not include subword dropout, which each training chooses.
        """
        if self.tokenizer_of is None:
            return {}
        table = self.tokenizer_of.recipe.tokenizer.model_dump(exclude={"dropout"})
        return {f"tokenizer.{name}": value for name, value in table.items()}


def fine_tuned(
    task: type[Task], stats: CorpusStats, machine: Machine, trained: Mapping[str, Any], given: Mapping[str, Any]
) -> Choices:
    """Choose the settings of a fine-tuning: those of the other run's model and text, and a lower learning rate.

    `trained` is the other run's recipe. The remaining settings are chosen to fit the inherited ones, and the keys
    `task.chosen_anew` for the new data.
    """
    inherited = {key: value for key, value in _inherited(task, trained, given).items() if key not in given}
    fitted = {key: value for key, value in inherited.items() if key == "model.kind" or not key.startswith("model.")}
    choices = task.defaults(stats, machine, {**fitted, **given})
    anew = set(task.chosen_anew) & set(choices.values)
    inherited = {key: value for key, value in inherited.items() if key not in anew}
    values = {key: value for key, value in choices.values.items() if key in anew or not key.startswith("model.")}
    reasons = {key: choices.reasons[key] for key in values} | dict.fromkeys(inherited, "as in --init")
    if "training.lr" in inherited:
        reasons["training.lr"] = "a quarter of the rate of --init"
    return Choices(values | inherited, reasons)


_TIED_TO_RATE = (
    "optimizer", "schedule", "lr_decay", "decay_after", "clip_norm", "weight_decay", "beta1", "beta2", "epsilon",
)  # fmt: skip
"""Settings that a learning rate depends on: a rate of 20 suits SGD and ruins the weights with Adam."""


def _inherited_rate(trained: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """A quarter of a run's learning rate, with the settings that it depends on; empty if the user changes one."""
    training = trained["training"]
    if any(given.get(f"training.{name}", training[name]) != training[name] for name in ("optimizer", "schedule")):
        return {}
    defaults = TrainingConfig().model_dump()
    changed = {f"training.{name}": training[name] for name in _TIED_TO_RATE if training[name] != defaults[name]}
    if training["schedule"] == "noam":  # the rate depends on the warm-up
        changed["training.warmup_steps"] = training["warmup_steps"]
    return {**changed, "training.lr": training["lr"] / 4}


def _inherited(task: type[Task], trained: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that the weights of a run require. A new vocabulary has the same kind; its size fits the new data."""
    keys = [f"{table}.{name}" for table in ("tokenizer", "model") for name in trained[table]]
    keys.remove("tokenizer.vocab_size")
    keys += ["data.normaliser", *task.inherited_keys(given, trained)]
    values = {key: trained[table][name] for key in keys for table, name in [key.split(".")]}
    values = {key: value for key, value in values.items() if value is not None}
    return {**values, **_inherited_rate(trained, given)}


def tokenizer_of(options: TrainOptions, init: Run | None) -> Run | None:
    """The run whose tokenizers are used; None if new ones are trained."""
    if options.tokenizer_of is not None:
        return Run(options.tokenizer_of)
    return None if options.new_vocabulary else init


def transfer_of(options: TrainOptions, init: Run | None) -> Transfer | None:
    """The transfer to another task, if only parts of another run's weights are used."""
    if options.init_parts == "all" or init is None:
        return None
    return Transfer(init, options.init_parts, Run(options.init_backward) if options.init_backward else None)


def require_beginning(init: Run, recipe: Recipe) -> None:
    """Raise HeedError unless a run with a vocabulary of its own can begin with the weights of `init`."""
    _require_trained(init, new_vocabulary=True)
    _require_like(init, recipe)


def _require_trained(init: Run, new_vocabulary: bool) -> None:
    """Raise UsageError or MissingInputError unless the run has weights that can be trained further."""
    if init.blank_model.count_based:
        raise UsageError(
            f"--init {init.folder}: its model ({init.recipe.model.kind}) is count-based and cannot be "
            "fine-tuned. Count both texts together, or take only its vocabulary with --tokenizer-of."
            + (f" Its scorer can be fine-tuned: name {init.scorer.folder}." if init.scorer else "")
        )
    init.require_weights()
    if new_vocabulary:
        require_exchangeable(init.recipe.model)


def _require_like(init: Run, recipe: Recipe) -> None:
    """Raise UsageError unless both models have the same kind, shapes and choices; dropout and depth may differ."""
    if is_like(init, recipe):
        return
    old, new = _models(init, recipe)
    names = sorted(name for name in {*old, *new} if old.get(name) != new.get(name))
    listed = ", ".join(f"{name} {old.get(name, 'none')} there, {new.get(name, 'none')} here" for name in names)
    raise UsageError(f"--init {init.folder}: its model differs from the recipe's ({listed}).")


def is_like(init: Run, recipe: Recipe) -> bool:
    """Whether the recipe's model is that of `init` but for dropout and depth, and can begin with its weights."""
    old, new = _models(init, recipe)
    return old == new or _differs_in_depth(init, recipe)


def _models(init: Run, recipe: Recipe) -> tuple[dict[str, Any], dict[str, Any]]:
    """The `[model]` tables of both without dropout."""
    old, new = (without_dropout(config.model_dump()) for config in (init.recipe.model, recipe.model))
    return old, new


def _differs_in_depth(init: Run, recipe: Recipe) -> bool:
    """Whether the recipe's model is that of `init` with another number of layers, which can start as copies."""
    old, new = _models(init, recipe)
    changed = {name.rpartition(".")[2] for name in {*old, *new} if old.get(name) != new.get(name)}
    if not changed or not changed <= DEPTHS:
        return False
    with torch.device("meta"):
        model = task_type(recipe.task).new_model(recipe, init.vocabularies)
    shapes = shapes_of(dict(model.named_parameters()))
    return fills(init.shapes, shapes)


def _characters_per_row(diagnosis: Diagnosis) -> float:
    """Mean number of characters of the longer side of a row."""
    return max((value for name, value in diagnosis.statistics.items() if name.endswith("_characters")), default=1.0)


def _growth(diagnosis: Diagnosis) -> float:
    """Target characters per source character; 1 without a source."""
    statistics = diagnosis.statistics
    return statistics.get("tgt_characters", 1.0) / max(1.0, statistics.get("src_characters", 1.0))


def _nested(values: Mapping[str, Any]) -> dict[str, Any]:
    tables: dict[str, Any] = {}
    for key, value in values.items():
        *path, name = key.split(".")
        table = tables
        for part in path:
            table = table.setdefault(part, {})
        table[name] = value
    return tables


@torch.random.fork_rng(devices=[])  # preserves the state of the caller's random generator on the CPU
def estimate_training(plan: Plan) -> CostEstimate | None:
    """Estimate time and memory from a few updates with random ids; None if the task or model has no estimate.

    A vocabulary that is not known yet is assumed to have its maximum size. Numbers of tokens are estimated from
    characters.
    """
    trial = _trial(plan)
    if trial is None:
        return None
    model, task, batch, length = trial
    recipe, num_processes = plan.recipe, plan.machine.num_processes
    per_row = 1 if batch.num_targets == len(batch.rows) else length  # a label or a span for a whole row
    num_targets = max(1.0, plan.stats.num_in_epoch - _num_held_in_epoch(recipe.data)) * per_row
    return estimate_cost(recipe.training, model, task, batch, num_targets, num_processes)


@torch.random.fork_rng(devices=[])
def advise_threads(plan: Plan) -> str:
    """Time a few updates with fewer CPU threads, and advise on them; "" if there is nothing to advise.

    Updates that take long are not timed again.
    """
    is_alone = plan.device.type == "cpu" and plan.machine.num_processes == 1
    if not is_alone or plan.expected is None or plan.expected.seconds_per_update > LONG_UPDATE:
        return ""
    trial = _trial(plan)
    assert trial is not None, "there is an estimate"
    model, task, batch, _ = trial
    can_join = task.can_combine and not plan.recipe.data.holds_out
    speeds = speeds_with_fewer_threads(plan.recipe.training, model, task, batch)
    is_timed = plan.recipe.training.max_minutes > 0
    return thread_advice(torch.get_num_threads(), speeds, can_join, is_timed)


def _trial(plan: Plan) -> tuple[GenerativeModel, Task, TrainingBatch, float] | None:
    """A model, its task, a batch of the usual size with random ids, and the tokens of a row; None without these."""
    recipe, task_class = plan.recipe, task_type(plan.recipe.task)
    vocabularies = plan.vocabularies
    if vocabularies is None:
        vocabularies = task_class.vocabularies(dict.fromkeys(task_class.sides, recipe.tokenizer.vocab_size))
    model = task_class.new_model(recipe, vocabularies)
    if model.count_based:
        return None
    of_texts = task_class.targets == "texts"
    size = vocabularies.src_size if of_texts else vocabularies.tgt_size
    length = plan.stats.characters_per_row / characters_per_token(size, recipe.tokenizer.kind) + 1
    task = task_class(Path(), recipe, {}, plan.device)
    batch = task.trial_batch(vocabularies, length, plan.machine.num_processes)
    return (model, task, batch.to(plan.device), length) if batch is not None else None


def _num_held_in_epoch(data: Any) -> float:
    """About how many of an epoch's rows, with repetitions, are held out for validation."""
    return data.num_held_out * getattr(data, "share", 1.0) * getattr(data, "repeat", 1) if data.holds_out else 0.0
