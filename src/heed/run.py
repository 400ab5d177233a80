"""A run folder: recipe, tokenizers, weights and training data of a model."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from heed.core.errors import DataError, MissingInputError, UsageError
from heed.core.files import atomic_folder, first_foreign, storage_errors
from heed.core.json_text import parse_json
from heed.core.own_scorer import SCORER, VERDICT, used_scorer, verdict_of
from heed.core.run_files import RECIPE, WEIGHTS, RunFiles, resume_command
from heed.core.toml import MAX_BYTES as MAX_RECIPE
from heed.core.toml import parse_toml
from heed.core.weight_file import Shapes, read_header, require_shapes
from heed.models import GenerativeModel
from heed.nn.contract import Vocabularies
from heed.nn.packing import name_lack_of_rounded_products, pack
from heed.nn.weight_file import read_weights, save_weights, shapes_of
from heed.recipe import Recipe, build_recipe, require_known_format
from heed.statistical.alignment.run_folder import is_aligner_run
from heed.tasks import task_type
from heed.tasks.prepare import CORPUS, copy_seen, open_tokens, vocabulary_digests
from heed.tasks.task import Task
from heed.text.tokenizers import Tokenizer, load_tokenizers

RESTORING = "restoring-sentences"
"""Name of a run that has only learned to restore masked sentences, for others to begin with."""
_EDITED = "It is used as it is; if nobody edited it on purpose, restore the run's original file."


def load_weights(model: nn.Module, tensors: Mapping[str, Tensor], where: Path) -> None:
    """Load weights into a model. Raises DataError if names or shapes differ."""
    parameters = dict(model.named_parameters())
    if not parameters:  # a count-based model accepts any counts
        model.load_state_dict(tensors)
        return
    require_shapes(shapes_of(tensors), shapes_of(parameters), where)
    for name, parameter in parameters.items():
        parameter.data.copy_(tensors[name])


class Run:
    """A run folder, whose parts are read on first use.

    `tag`: the tag before each source, for runs that were trained with tags (None: the recipe's default).
    """

    def __init__(self, folder: str | Path, device: torch.device | None = None, tag: str | None = None) -> None:
        self.folder = Path(folder)
        self.files = RunFiles(self.folder)
        self.device = device or torch.device("cpu")
        self.tag = tag
        self.precision = "float32"
        """Number format of the weights in memory: float32, bfloat16 or int8."""
        self.pytorch_precision: str | None = None
        """That of PyTorch's model, if it differs from the engine's."""
        self.packs = False
        """Whether the weights are packed for use on a CPU when they are read (`heed.nn.packing`)."""
        self.engine = "auto"
        """Engine that translates and generates: auto, torch or ctranslate2."""
        self.num_workers = 0
        """Batches that CTranslate2 searches at the same time (0: one for each CPU)."""
        self._shares_model_of: Run | None = None
        try:
            is_folder = self.folder.is_dir()
        except OSError as error:  # the name is too long, or a folder above may not be entered
            raise MissingInputError(f"{folder!s:.300}: {error.strerror}.") from error
        if not is_folder:
            raise MissingInputError(f"{folder}: no such run folder. `heed train --out` creates one.")
        if not self.files.has(RECIPE):
            if is_aligner_run(self.folder):
                raise UsageError(
                    f"{folder} is the run of an aligner: use it with `heed align {folder} --src F --tgt F`, or with "
                    f"`heed align {folder} --lexicon WORD`."
                )
            raise MissingInputError(f"{folder} is not a run folder: it has no {RECIPE}.")

    def __repr__(self) -> str:
        return f"<Run {str(self.folder)!r}>"

    @cached_property
    def recipe(self) -> Recipe:
        """The resolved recipe."""
        document = parse_toml(self.files.read_anyway(RECIPE, _EDITED, MAX_RECIPE), str(self.folder / RECIPE))
        require_known_format(document)
        return build_recipe(document)

    def with_recipe(self, changes: Mapping[str, object]) -> Run:
        """This run with other values of some keys, only in memory. Raises UsageError for values that are invalid."""
        content = self.files.read_anyway(RECIPE, _EDITED, MAX_RECIPE)
        changed = Run(self.folder, self.device)
        changed.recipe = build_recipe(parse_toml(content, str(self.folder / RECIPE)), changes)
        return changed

    def change_recipe(self, changes: Mapping[str, object]) -> None:
        """Write other values of some keys into recipe.toml, and keep its comments: those that `with_recipe` accepted.

        Raises StorageError.
        """
        import tomlkit

        content = self.files.read_anyway(RECIPE, _EDITED, MAX_RECIPE)
        document: Any = tomlkit.parse(content.decode("utf-8-sig"))
        for key, value in changes.items():
            table, _, name = key.rpartition(".")
            document[table][name] = value
        with storage_errors("write the recipe", path=self.folder / RECIPE), self.files.write(RECIPE, "w") as file:
            file.write(tomlkit.dumps(document))

    @property
    def sides(self) -> tuple[str, ...]:
        """The sides of the data that have a tokenizer."""
        return self.task_type.sides

    @cached_property
    def tokenizers(self) -> dict[str, Tokenizer]:
        """The tokenizer of each side."""
        return load_tokenizers(self.folder, self.sides)

    @property
    def vocabularies(self) -> Vocabularies:
        """The vocabulary sizes of the model."""
        return self.task_type.read_vocabularies(self.files, self.tokenizers)

    def new_model(self) -> GenerativeModel:
        """The recipe's model with random weights, which depend only on the recipe's seed."""
        with torch.random.fork_rng(devices=[]):  # preserves the caller's random state
            torch.manual_seed(self.recipe.seed)
            return cast(GenerativeModel, self.task_type.new_model(self.recipe, self.vocabularies))

    @cached_property
    def blank_model(self) -> GenerativeModel:
        """The recipe's model on the meta device. Raises DataError if it is too large for any machine."""
        try:
            with torch.device("meta"):
                return cast(GenerativeModel, self.task_type.new_model(self.recipe, self.vocabularies))
        except (RuntimeError, TypeError, OverflowError) as error:  # PyTorch counts bytes in 64 bits
            raise DataError(f"{self.folder / RECIPE}: [model] describes a model that no machine can hold.") from error

    @property
    def shapes(self) -> Shapes:
        """Names and shapes of the trained weights; empty for a count-based model."""
        return shapes_of(dict(self.blank_model.named_parameters()))

    def weights(self) -> dict[str, Tensor]:
        """The tensors of model.safetensors, whose shapes are checked before memory is allocated."""
        self.require_weights()
        return read_weights(self.folder / WEIGHTS, self.shapes or None)

    def require_weights(self) -> None:
        """Raise MissingInputError or DataError unless the header of model.safetensors fits this run."""
        path = self.folder / WEIGHTS
        if not self.files.has(WEIGHTS):
            ended = f"{self.folder} has no {WEIGHTS}: its training ended before"
            raise MissingInputError(
                f"{ended} everything was counted. Train it again with --overwrite."
                if self.blank_model.count_based
                else f"{ended} the first validation. Continue it with: {resume_command(self.folder)}"
            )
        header = read_header(path)
        for key, digest in vocabulary_digests(self.tokenizers).items():
            if header.metadata.get(key, digest) != digest:
                side = "" if self.files.has("tokenizer.json") else f".{key.removeprefix('vocabulary_')}"
                raise DataError(
                    f"{self.folder}/tokenizer{side}.json is not the tokenizer that {WEIGHTS} was trained with: the "
                    "vocabularies differ. Put the run's own tokenizer back."
                )
        if self.shapes:
            require_shapes(header.shapes, self.shapes, path)

    @property
    def num_parameters(self) -> int:
        """Number of parameters, or of counts."""
        return read_header(self.folder / WEIGHTS).num_parameters

    @cached_property
    def model(self) -> GenerativeModel:
        """The model with its trained weights, without gradients."""
        if self._shares_model_of is not None:
            return self._shares_model_of.model
        tensors = self.weights()
        with torch.no_grad():
            model = self.new_model()
            load_weights(model, tensors, self.folder / WEIGHTS)
        for parameter in model.parameters():
            parameter.requires_grad_(False)
        model.to(self.device)
        precision = self.pytorch_precision or self.precision
        if precision != self.precision:
            name_lack_of_rounded_products()
        if precision != "float32":
            model.to(torch.bfloat16)
        if self.packs:
            pack(model, rounded=precision == "int8")
        return model

    @property
    def awaits_scorer(self) -> bool:
        """Whether a second model is to score what this one proposes, and is not yet trained and compared."""
        return bool(self.recipe.training.scorer) and verdict_of(self.folder) is None

    @cached_property
    def scorer(self) -> Run | None:
        """The run whose model scores what this one proposes, opened like this one; None if it uses none.

        Raises DataError where its folder is a link.
        """
        folder = used_scorer(self.folder) if self.recipe.training.scorer else None
        return self._opened_alike(folder) if folder is not None else None

    def with_scorer(self, is_used: bool = True) -> Run:
        """This run with its scorer or without it, whatever the verdict is."""
        other = copy(self)
        vars(other).pop("predictor", None)
        vars(other)["scorer"] = self._opened_alike(self.folder / SCORER) if is_used else None
        return other

    def untuned(self) -> Run:
        """This run with weights of phrases that were not tuned on the validation data."""
        other = copy(self)
        vars(other).pop("predictor", None)
        vars(other)["model"] = cast(Any, self.model).untuned()
        return other

    def _opened_alike(self, folder: Path) -> Run:
        other = Run(folder, self.device)
        other.precision, other.packs, other.engine = self.precision, self.packs, self.engine
        other.num_workers = self.num_workers
        return other

    @property
    def task_type(self) -> type[Task]:
        """The class of the recipe's task."""
        return task_type(self.recipe.task)

    def task(self) -> Task:
        """The recipe's task on the data prepared in this folder."""
        return self.task_type(self.folder, self.recipe, self.tokenizers, self.device)

    @cached_property
    def predictor(self) -> Any:  # of the task's own type
        """The predictor of this run alone."""
        return self.task_type.predictor(self)

    def with_tag(self, tag: str) -> Run:
        """This run with another tag before its sources; both share the model."""
        other = copy(self)
        other.tag, other._shares_model_of = tag, self
        vars(other).pop("predictor", None)
        return other

    def unpacked(self, device: torch.device) -> Run:
        """This run with a model of its own on a device, in float32 and not packed."""
        other = copy(self)
        other.device, other.precision, other.packs, other._shares_model_of = device, "float32", False, None
        for name in ("model", "predictor"):
            vars(other).pop(name, None)
        return other

    @cached_property
    def corpus(self) -> dict[str, Any]:
        """Facts about the training data (`heed.tasks.prepare.Corpus`); empty if they were removed."""
        advice = "Delete it; it is required only for resuming."
        try:
            facts = parse_json(self.files.read(CORPUS, otherwise=advice)) if self.files.has(CORPUS) else {}
        except ValueError as error:
            raise DataError(f"{self.folder / CORPUS} is damaged: {error}. {advice}") from error
        return facts if isinstance(facts, dict) else {}

    @property
    def num_rows(self) -> int:
        """Number of training rows, repetitions not counted; 0 if it is no longer known."""
        return int(self.corpus.get("num_rows", 0) - self.corpus.get("num_repeated", 0))

    @property
    def is_fine_tuned(self) -> bool:
        """Whether it was trained with --init, whose learning rate suits no other beginning.

        Students and runs that began by restoring sentences began with weights, too, at the rate of a new training.
        """
        return self.corpus.get("init", "") not in ("", RESTORING) and not self.corpus.get("is_student")

    def require_prepared(self) -> None:
        """Raise DataError if the prepared data is missing, or if the folder contains links or special files.

        Training writes into the folder, and a link could lead anywhere.
        """
        if path := first_foreign(self.folder):
            raise DataError(
                f"{path} is a link or a special file; training uses nothing outside its folder. Replace it with a copy."
            )
        if not self.files.has(CORPUS):
            raise DataError(
                f"{self.folder} has no prepared data: it was removed, or preparing it was interrupted. "
                "Start again with --overwrite."
            )

    def require_resumable(self) -> None:
        """Raise DataError unless the prepared data was encoded with the tokenizers of the folder."""
        made_with = open_tokens(self.folder, verify=True).manifest.fingerprint
        for key, digest in vocabulary_digests(self.tokenizers).items():
            if made_with.get(key) != digest:
                raise DataError(
                    f"{self.folder}: data/train was not made with this tokenizer ({key.removeprefix('vocabulary_')} "
                    "side). Put the run's own tokenizer back, or start again with --overwrite."
                )
        self.task_type.require_whole(self.folder)


def _copy_scorer(run: Run, files: RunFiles) -> None:
    """Copy the scorer of a run that uses one, and the verdict; a copy of a run that awaits one does not."""
    if run.awaits_scorer:
        Run(files.folder).change_recipe({"training.scorer": ""})
    elif run.recipe.training.scorer:
        run.files.copy(VERDICT, files)
    if run.scorer is None:
        return
    if path := first_foreign(run.scorer.folder):
        raise DataError(f"{path} is a link or a special file, and not copied. Replace it with a copy.")
    shutil.copytree(run.scorer.folder, files.folder / SCORER, ignore=shutil.ignore_patterns("checkpoints"))


@contextmanager
def with_other_weights(
    run: Run, out: Path, weights: Mapping[str, Tensor], metadata: Mapping[str, str]
) -> Iterator[Run]:
    """A new run in `out` with weights made from a run's, and with its recipe, tokenizers, labels and record of data.

    The folder appears when the block ends. Raises StorageError.
    """
    with storage_errors("write the new run", path=out), atomic_folder(out, parents=True) as folder:
        files = RunFiles(folder)
        with files.write(RECIPE) as file:
            file.write(run.files.read_anyway(RECIPE, "The new run has the same."))
        for source in sorted(run.folder.glob("tokenizer*.json")):
            run.files.copy(source.name, files)
        for name in run.task_type.model_files:
            if run.files.has(name):
                run.files.copy(name, files)
        copy_seen(run.folder, folder)
        _copy_scorer(run, files)
        save_weights(folder / WEIGHTS, weights, {**metadata, **vocabulary_digests(run.tokenizers)})
        yield Run(folder)
