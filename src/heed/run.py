"""A run folder: the recipe, tokenizers, weights and history of one model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from heed.core.errors import DataError, MissingInputError
from heed.core.files import first_foreign
from heed.core.run_files import RunFiles
from heed.core.toml import MAX_BYTES as MAX_RECIPE
from heed.core.toml import parse_toml
from heed.data.store import TokenStore
from heed.models import GenerativeModel, build_model
from heed.nn.contract import Vocabularies
from heed.nn.weight_file import Shapes, read_header, read_weights, require_shapes, shapes_of
from heed.recipe import Recipe, build_recipe, require_known_format
from heed.tasks import task_type
from heed.tasks.prepare import CORPUS, vocabulary_digests
from heed.tasks.task import Task
from heed.text.tokenizers import Tokenizer, load_from_run

RECIPE, WEIGHTS = "recipe.toml", "model.safetensors"
_EDITED = "It is used as it is; if nobody edited it, put the run's own back."


def load_tokenizers(folder: Path, sides: tuple[str, ...]) -> dict[str, Tokenizer]:
    """The tokenizer of each side: `tokenizer.json` for all, or `tokenizer.SIDE.json`."""
    files = RunFiles(folder)
    if files.has("tokenizer.json"):
        return dict.fromkeys(sides, load_from_run(files, "tokenizer.json"))
    return {side: load_from_run(files, f"tokenizer.{side}.json") for side in sides}


def load_weights(model: nn.Module, tensors: Mapping[str, Tensor], where: Path) -> None:
    """Put weights into a model; names and shapes must be its own."""
    parameters = dict(model.named_parameters())
    if not parameters:  # a count-based model: any counts fit
        model.load_state_dict(tensors)
        return
    require_shapes(shapes_of(tensors), shapes_of(parameters), where)
    for name, parameter in parameters.items():
        parameter.data.copy_(tensors[name])


class Run:
    """One run folder. Opening it reads nothing; each part is read when it is first needed.

    `tag`: for runs that were trained with tags, the one in front of each source (None: the recipe's default).
    """

    def __init__(self, folder: str | Path, device: torch.device | None = None, tag: str | None = None) -> None:
        self.folder = Path(folder)
        self.files = RunFiles(self.folder)
        self.device = device or torch.device("cpu")
        self.tag = tag
        self.precision = "float32"
        """Number format of the weights in memory."""
        if not self.folder.is_dir():
            raise MissingInputError(f"{folder}: no such run folder. `heed train --out` creates one.")
        if not self.files.has(RECIPE):
            raise MissingInputError(f"{folder} is not a run folder: it has no {RECIPE}.")

    @cached_property
    def recipe(self) -> Recipe:
        """The resolved recipe."""
        document = parse_toml(self.files.read_anyway(RECIPE, _EDITED, MAX_RECIPE), str(self.folder / RECIPE))
        require_known_format(document)
        return build_recipe(document)

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
        """What the model must know of them."""
        return self.task_type.vocabularies({side: len(each.vocabulary) for side, each in self.tokenizers.items()})

    def new_model(self) -> GenerativeModel:
        """The recipe's model with fresh weights, which follow from the recipe's seed."""
        with torch.random.fork_rng(devices=[]):  # leaves the caller's random numbers alone
            torch.manual_seed(self.recipe.seed)
            return build_model(self.recipe.model, self.vocabularies)

    @cached_property
    def blank_model(self) -> GenerativeModel:
        """The recipe's model without memory for its weights. Raises DataError for one that no machine can hold."""
        try:
            with torch.device("meta"):
                return build_model(self.recipe.model, self.vocabularies)
        except (RuntimeError, TypeError, OverflowError) as error:  # PyTorch counts bytes in 64 bits
            raise DataError(f"{self.folder / RECIPE}: [model] describes a model that no machine can hold.") from error

    @property
    def shapes(self) -> Shapes:
        """Names and shapes of the trained weights; a count-based model has none."""
        return shapes_of(dict(self.blank_model.named_parameters()))

    def weights(self) -> dict[str, Tensor]:
        """The tensors of model.safetensors, refused before memory is taken unless they are the recipe's model's."""
        self.require_weights()
        return read_weights(self.folder / WEIGHTS, self.shapes or None)

    def require_weights(self) -> None:
        """Raise MissingInputError or DataError unless the header of model.safetensors says that it is this run's."""
        path = self.folder / WEIGHTS
        if not self.files.has(WEIGHTS):
            raise MissingInputError(f"{self.folder} has no {WEIGHTS}: its training ended before the first validation.")
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
        """Number of learned (or counted) parameters."""
        return read_header(self.folder / WEIGHTS).num_parameters

    @cached_property
    def model(self) -> GenerativeModel:
        """The model with its trained weights, without gradients."""
        tensors = self.weights()
        with torch.no_grad():
            model = self.new_model()
            load_weights(model, tensors, self.folder / WEIGHTS)
        for parameter in model.parameters():
            parameter.requires_grad_(False)
        return model.to(self.device)

    @property
    def task_type(self) -> type[Task]:
        """The class of the recipe's task."""
        return task_type(self.recipe.task)

    def task(self) -> Task:
        """The recipe's task on the data prepared in this folder."""
        return self.task_type(self.folder, self.recipe, self.tokenizers, self.device)

    @cached_property
    def predictor(self) -> Any:  # a task's own Predictor
        """What users do with this run, on its own."""
        return self.task_type.predictor(self)

    def with_tag(self, tag: str) -> Run:
        """This run with another tag in front of its sources; the model is in memory once."""
        other = Run(self.folder, self.device, tag)
        other.model, other.precision = self.model, self.precision
        return other

    @cached_property
    def corpus(self) -> dict[str, Any]:
        """What the run was trained on; empty where the folder no longer has it."""
        advice = "Delete it; only resuming needs it."
        try:
            facts = json.loads(self.files.read(CORPUS, otherwise=advice)) if self.files.has(CORPUS) else {}
        except ValueError as error:
            raise DataError(f"{self.folder / CORPUS} is damaged: {error}. {advice}") from error
        return facts if isinstance(facts, dict) else {}

    def require_prepared(self) -> None:
        """Raise DataError unless the folder has all the prepared data of a training, as files of its own.

        Training writes into its folder, and a link in it could lead anywhere.
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
        """Raise DataError unless the prepared data was made for the tokenizers of the folder."""
        made_with = TokenStore.open(self.folder / "data" / "train", verify=True).manifest.fingerprint
        for key, digest in vocabulary_digests(self.tokenizers).items():
            if made_with.get(key) != digest:
                raise DataError(
                    f"{self.folder}: data/train was not made with this tokenizer ({key.removeprefix('vocabulary_')} "
                    "side). Put the run's own tokenizer back, or start again with --overwrite."
                )
