"""A folder is a model: its recipe, tokenizers, weights and history. How is one opened, and used?"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, cast

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from heed.core.config import build, read_toml
from heed.core.errors import DataError, MissingInputError, UsageError
from heed.decoding.translator import ModelTranslator
from heed.models import Model, build_model
from heed.nn.contract import Autoregressive, Vocabularies
from heed.recipe import Recipe
from heed.tasks.language_modelling import LanguageModellingTask
from heed.tasks.translation import TranslationTask
from heed.text.tokenizers import Tokenizer, load_tokenizer

RECIPE, WEIGHTS = "recipe.toml", "model.safetensors"


def load_tokenizers(folder: Path, sides: tuple[str, ...]) -> dict[str, Tokenizer]:
    """The tokenizer of each side: `tokenizer.json` for all, or `tokenizer.SIDE.json`."""
    if (folder / "tokenizer.json").exists():
        return dict.fromkeys(sides, load_tokenizer(folder / "tokenizer.json"))
    return {side: load_tokenizer(folder / f"tokenizer.{side}.json") for side in sides}


def read_weights(path: Path) -> dict[str, Tensor]:
    """The tensors of a safetensors file; nothing in it can run code."""
    try:
        return load_file(path)
    except FileNotFoundError as error:
        raise MissingInputError(
            f"{path.parent} has no {WEIGHTS}: its training has not got as far as a first validation."
        ) from error
    except (SafetensorError, OSError) as error:
        raise DataError(f"{path} is damaged or no safetensors file: {error}") from error


def load_weights(model: nn.Module, tensors: Mapping[str, Tensor], where: Path) -> None:
    """Put weights into a model; names and shapes must be its own."""
    parameters = dict(model.named_parameters())
    if not parameters:  # a counting model: its counts are whatever was counted
        model.load_state_dict(tensors)
        return
    if parameters.keys() != tensors.keys():
        odd = sorted(parameters.keys() ^ tensors.keys())[0]
        raise DataError(f"{where}: the weights are not those of the recipe's model ({odd!r} is on one side only).")
    for name, parameter in parameters.items():
        if parameter.shape != tensors[name].shape:
            shapes = f"{list(tensors[name].shape)}, the recipe's model has {list(parameter.shape)}"
            raise DataError(f"{where}: {name!r} has the shape {shapes}.")
        parameter.data.copy_(tensors[name])


class Run:
    """One run folder."""

    def __init__(self, folder: str | Path, device: torch.device | None = None) -> None:
        self.folder = Path(folder)
        self.device = device or torch.device("cpu")
        if not self.folder.is_dir():
            raise MissingInputError(f"{folder}: there is no such run folder. A run is what `heed train --out` makes.")
        if not (self.folder / RECIPE).exists():
            raise MissingInputError(f"{folder} is no run folder: it has no {RECIPE}.")

    @cached_property
    def recipe(self) -> Recipe:
        """The resolved recipe."""
        return build(Recipe, read_toml(self.folder / RECIPE))

    @property
    def sides(self) -> tuple[str, ...]:
        """The sides of the data that have a tokenizer."""
        return ("src", "tgt") if self.recipe.task == "translation" else ("tgt",)

    @cached_property
    def tokenizers(self) -> dict[str, Tokenizer]:
        """The tokenizer of each side."""
        return load_tokenizers(self.folder, self.sides)

    @property
    def vocabularies(self) -> Vocabularies:
        """What the model must know of them."""
        sizes = {side: len(tokenizer.vocabulary) for side, tokenizer in self.tokenizers.items()}
        return Vocabularies(sizes.get("src", 0), sizes["tgt"])

    def new_model(self) -> Model:
        """The recipe's model with fresh weights, which follow from the recipe's seed."""
        with torch.random.fork_rng(devices=[]):  # the caller's own random numbers go on as they were
            torch.manual_seed(self.recipe.seed)
            return build_model(self.recipe.model, self.vocabularies)

    @cached_property
    def model(self) -> Model:
        """The model with its trained weights, without gradients."""
        tensors = read_weights(self.folder / WEIGHTS)
        with torch.no_grad():
            model = self.new_model()
            load_weights(model, tensors, self.folder / WEIGHTS)
        for parameter in model.parameters():
            parameter.requires_grad_(False)
        return model.to(self.device)

    def task(self) -> TranslationTask | LanguageModellingTask:
        """The recipe's task on the data prepared in this folder."""
        data = self.recipe.data
        if self.recipe.task == "translation":
            return TranslationTask(
                self.folder, data, self.tokenizers["src"], self.tokenizers["tgt"], self.recipe.tokenizer.dropout,
                self.recipe.seed, self.device,
            )  # fmt: skip
        return LanguageModellingTask(self.folder, data, self.tokenizers["tgt"], self.device)

    @cached_property
    def translator(self) -> ModelTranslator:
        """The model with its tokenizers: translates, generates and scores."""
        normaliser = self.recipe.data.normaliser
        return ModelTranslator(
            cast(Autoregressive, self.model),
            self.tokenizers.get("src"),
            self.tokenizers["tgt"],
            normaliser,
            self.device,
        )

    @cached_property
    def corpus(self) -> dict[str, Any]:
        """What the run was trained on, where the folder still tells."""
        path = self.folder / "data" / "corpus.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}

    def require(self, task: Literal["translation", "language-model"], verb: str) -> None:
        """Refuse a language model where a translator is needed, and the other way round."""
        if self.recipe.task != task:
            raise UsageError(f"{verb} needs a {task} run; {self.folder} is a {self.recipe.task} run.")
