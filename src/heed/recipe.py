"""Schema of a recipe, which describes a run completely: the contents of `recipe.toml`.

The table `[data]` depends on the task, so each task has its own schema (`recipe_type`). `[model]` depends on its kind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import Field, create_model, model_validator

from heed.core.config import Config, Document, build, flattened
from heed.core.errors import UsageError
from heed.core.formats import FORMAT, require_format
from heed.decoding.options import SearchOptions
from heed.members import needed, register_installed, require_registered
from heed.models import MODELS, AnyConfig, ModelConfig, kinds_for
from heed.models.transformer import TransformerConfig
from heed.tasks import TASKS, task_type
from heed.tasks.task import Task
from heed.text.tokenizers import TOKENIZERS, TokenizerConfig
from heed.training.config import TrainingConfig


class Recipe(Config):
    """A complete description of a run. `recipe_type` returns the schema for a task."""

    format: int = Field(default=FORMAT, ge=1, le=FORMAT)
    """Format of the run folder; newer versions of heed may write higher ones."""
    task: str
    """The task that is learned."""
    seed: int = Field(default=1, ge=0, lt=1 << 64)
    """Seed of the initial weights, the data order, dropout and subword dropout."""
    members: tuple[str, ...] | None = None
    """Modules and names of the external tasks, models, attentions, tokenizers and metrics that the run needs."""
    data: Any = None
    """Data files and their languages."""
    tokenizer: TokenizerConfig = TokenizerConfig()
    """Tokenizer."""
    model: AnyConfig = TransformerConfig()
    """Model."""
    training: TrainingConfig = TrainingConfig()
    """Training."""
    decoding: SearchOptions = SearchOptions()
    """Search."""

    @model_validator(mode="after")
    def _check(self) -> Recipe:
        task, kinds = task_type(self.task), [kind for kind in MODELS if task_type(self.task).fits(MODELS[kind])]
        if self.model.kind not in kinds:
            raise ValueError(f"task {self.task!r} needs a model.kind of {', '.join(kinds)}, got {self.model.kind!r}")
        if self.training.stop_metric not in task.metrics and not task.measures(self.training.stop_metric):
            allowed = " or ".join(f'"{name}"' for name in task.metrics)
            raise ValueError(
                f"task {self.task!r} cannot compute training.stop_metric = {self.training.stop_metric!r}: "
                f"training.stop_metric = {allowed}"
            )
        if self.training.label_smoothing and getattr(self.model, "cutoffs", None):
            raise ValueError(
                "an adaptive softmax (model.cutoffs) has no label smoothing: set training.label_smoothing = 0"
            )
        if self.training.r_drop and not any(v for k, v in flattened(self.model.model_dump()).items() if "dropout" in k):
            raise ValueError("training.r_drop compares two passes with different dropout: set model.dropout")
        training = self.training
        if training.optimizer == "muon" and training.parallel == "sharded":
            raise ValueError(
                'training.optimizer = "muon" needs whole matrices, which training.parallel = "sharded" divides: set '
                'training.parallel = "data", or another optimizer'
            )
        if self.decoding.unknown != "never" and not TOKENIZERS[self.tokenizer.kind].whole_words:
            raise ValueError(
                f'decoding.unknown = "{self.decoding.unknown}" needs a vocabulary of whole words: leave it out, or set '
                'tokenizer.kind = "word"'
            )
        _check_scorer(training.scorer, self.model.kind, kinds)
        _check_own_words(training, task)
        if task.Head is None and (training.freeze != "none" or training.unfreeze_every or training.layer_decay != 1):
            raise ValueError(
                "training.freeze, training.unfreeze_every and training.layer_decay need a task with a head on a "
                "reader: leave them out"
            )
        task.check(self, is_new="format" not in self.model_fields_set)  # only recipes of run folders have a format
        return self


def _check_scorer(scorer: str, kind: str, kinds: Sequence[str]) -> None:
    """Raise ValueError for a second model where the first does not propose several outputs, or that cannot score them.

    `kinds`: those of the task.
    """
    scoring = [name for name in kinds if not MODELS[name].derives]
    if scorer and not MODELS[kind].proposes_several:
        raise ValueError(
            f'training.scorer scores what phrases propose, and model.kind = "{kind}" does not propose several outputs: '
            "leave it out"
        )
    if scorer and scorer not in scoring:
        raise ValueError(f"training.scorer must be one of the kinds {', '.join(scoring)}; got {scorer!r}")


def _check_own_words(training: TrainingConfig, task: type[Task]) -> None:
    """Raise ValueError where a model cannot be trained on words of its own."""
    scheduled = ("scheduled sampling (training.truth_probability below 1)", "set it to 1")
    risk = ("minimum risk training (training.risk)", 'set it to "none"')
    chosen = [scheduled] * (training.truth_probability < 1) + [risk] * (training.risk != "none")
    for name, off in chosen:
        if not task.can_read_own:
            raise ValueError(f"task {task.name!r} has no {name}: {off}")
        if training.r_drop:
            raise ValueError(f"{name} cannot be combined with R-Drop: {off}, or training.r_drop to 0")
        if training.parallel == "sharded":
            raise ValueError(
                f"{name} reads token by token, and in sharded training all processes must take equally many steps: set "
                'training.parallel = "data"'
            )
    if len(chosen) > 1:
        raise ValueError(f"{scheduled[0]} cannot be combined with {risk[0]}: turn one of them off")
    if training.risk != "none" and training.label_smoothing:
        raise ValueError(f"{risk[0]} has no label smoothing: set training.label_smoothing = 0")


def with_members(recipe: Recipe) -> Recipe:
    """The recipe with the names of the external members that it uses."""
    values = flattened(recipe.model.model_dump()).values()  # kinds and attentions, of an encoder and a decoder too
    chosen = [value for value in values if isinstance(value, str)]
    metrics = (recipe.training.stop_metric, *task_type(recipe.task).metrics)
    keys = dict.fromkeys((recipe.task, *chosen, recipe.tokenizer.kind, *metrics))
    return recipe.model_copy(update={"members": needed(keys)})


def require_trainable_together(recipe: Recipe, num_processes: int) -> None:
    """Raise UsageError for several processes that cannot train the recipe's model together."""
    if num_processes == 1:
        return
    if recipe.training.scorer:
        raise UsageError("training.scorer trains two models, one after the other, in one process: leave out --nproc.")
    model = MODELS[recipe.model.kind]
    if recipe.training.parallel == "sharded" and not (model.generates or model.count_based):
        raise UsageError(
            'training.parallel = "sharded" is for models that write token by token, and model.kind = '
            f'"{recipe.model.kind}" is not one: set training.parallel = "data".'
        )


def data_keys(recipe: Recipe, kind: str) -> dict[str, object]:
    """The keys of a recipe's data for a training of this kind of model.

    They do not include text in the target language alone, unless such a model reads it.
    """
    kept: dict[str, object] = recipe.data.given_keys()
    reads = kind in MODELS and MODELS[kind].reads_target_text
    if not reads and (texts := recipe.data.target_texts()):
        parts = enumerate(recipe.data.parts, start=1)
        kept["data.parts"] = [part.model_dump(exclude_defaults=True) for number, part in parts if number not in texts]
    return kept


def recipe_type(task: str) -> type[Recipe]:
    """The schema of a task's recipes, with its `[data]` table and the registered kinds of models that fit it."""
    return _recipe_type(task_type(task))


@cache
def _recipe_type(task: type[Task]) -> type[Recipe]:
    name: Any = Literal[(task.name,)]
    tables: dict[str, Any] = {
        "data": (task.Data, Field(default=task.Data(), description="Data files and their languages.")),
        "model": (_model_table(task), Field(default=TransformerConfig(), description="Model.")),
    }
    if task.Head is not None:
        tables["head"] = (task.Head, Field(default=task.Head(), description="Head of the reader."))
    return create_model(
        "Recipe",
        __base__=Recipe,
        task=(name, Field(description="The task that is learned.")),
        **tables,
    )


def _model_table(task: type[Task]) -> Any:
    """The type of the `[model]` table: one of the kinds of models that can be trained for the task."""

    def others() -> dict[str, str]:
        """For each other kind, what it is for."""
        tasks = {kind: tasks_of(kind) for kind in MODELS}
        plural = {kind: "tasks" if len(names) > 1 else "task" for kind, names in tasks.items()}
        return {
            kind: f"{kind!r} is for {plural[kind]} {', '.join(map(repr, names))}."
            for kind, names in tasks.items()
            if names and task.name not in names
        }

    return Annotated[ModelConfig, kinds_for(task.fits, others)]


@cache
def _task_type(tasks: tuple[str, ...]) -> type[Config]:
    """The schema of a recipe's task alone, whose errors name the tasks."""
    names: Any = Literal[tasks]
    return create_model("Recipe", __base__=Config, task=(names, ...))


def tasks_of(kind: str) -> list[str]:
    """The tasks for which models of this kind can be trained."""
    return [name for name in TASKS if task_type(name).fits(MODELS[kind])]


def task_of(kind: str) -> str:
    """The first task for which models of this kind can be trained."""
    return tasks_of(kind)[0]


def build_recipe(document: Document, overrides: Mapping[str, object] = {}) -> Recipe:
    """Build a recipe from a document and overrides. Raises UsageError with a line for each mistake."""
    register_installed()
    require_registered(document.values.get("members"), document.name or "the recipe")
    task = overrides.get("task", document.values.get("task"))
    if not isinstance(task, str) or task not in TASKS:
        named = {key: value for key, value in document.values.items() if key == "task"}
        chosen = {key: value for key, value in overrides.items() if key == "task"}
        build(_task_type(tuple(TASKS)), replace(document, values=named), chosen)
        raise UsageError("the recipe has no task.")
    schema = recipe_type(task)
    document, overrides = _without_other_tasks(task, document, overrides)
    recipe = build(schema, document, overrides)
    if document.name:
        _require_factor(document, overrides)
    return recipe


def _require_factor(document: Document, overrides: Mapping[str, object]) -> None:
    """Raise UsageError for the Noam schedule with a learning rate that was not given as its factor.

    The default rate, or that of a recipe with another schedule, would be a thousandth of what is meant.
    """
    table: Any = document.values.get("training", {})
    if overrides.get("training.schedule", table.get("schedule")) != "noam" or "training.lr" in overrides:
        return
    if "lr" not in table or table.get("schedule") != "noam":
        raise UsageError(
            f'{document.name}: with training.schedule = "noam", training.lr is a factor on the published rate: set it, '
            "to 1 for that rate."
        )


def _without_other_tasks(
    task: str, document: Document, overrides: Mapping[str, object]
) -> tuple[Document, Mapping[str, object]]:
    """Remove the keys of `[data]` that only other tasks have, which older run folders contain.

    Raises UsageError if another recipe sets such a key.
    """
    foreign = _foreign_data(task)
    table = document.values.get("data")
    if isinstance(table, dict):
        if "format" not in document.values:
            _refuse_foreign(task, table, foreign, document)
        kept = {name: value for name, value in table.items() if name not in foreign}
        document = replace(document, values={**document.values, "data": kept})
    names = {key: key.split(".")[1] for key in overrides if key.startswith("data.")}
    _refuse_foreign(task, {name: overrides[key] for key, name in names.items()}, foreign)
    return document, {key: value for key, value in overrides.items() if names.get(key) not in foreign}


def _refuse_foreign(
    task: str, values: Mapping[str, object], foreign: Mapping[str, object], document: Document | None = None
) -> None:
    """Raise UsageError if a key of another task is set to another value than its default.

    `document`: where the values are from, if not from the command line.
    """
    for name, value in values.items():
        if name not in foreign:
            continue
        default = foreign[name]
        if isinstance(value, dict) and isinstance(default, dict):
            is_set = any(default.get(key) != each for key, each in value.items())
        else:
            is_set = value != default
        if is_set:
            place = f"{document.name}:{document.line_of(('data', name))}: " if document and document.name else ""
            raise UsageError(f"{place}data.{name} is not read for task {task!r}: leave it out.")


def _foreign_data(task: str) -> dict[str, Any]:
    """The keys of `[data]` that only other tasks have, with their defaults."""
    own = task_type(task).Data.model_fields
    others = [task_type(name).Data() for name in TASKS if name != task]
    return {name: value for data in others for name, value in data.model_dump(mode="json").items() if name not in own}


def require_known_format(document: Document) -> None:
    """Raise DataError for a recipe of a newer heed, before its keys are reported as unknown."""
    require_format(document.values.get("format", FORMAT), document.name)
