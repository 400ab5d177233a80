"""Transfer: the reader of one run, or its token vectors, as the beginning of a training of another task.

The reader comes from a masked language model or any other reader with a head, from a translator's encoder (McCann et
al. 2017, "CoVe"), from a language model (Howard & Ruder 2018), or from two (Peters et al. 2018, "ELMo"). Tokenizer
and normaliser are the other run's, and the head is new.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import torch

from heed.core.errors import UsageError
from heed.core.run_files import WEIGHTS
from heed.core.weight_file import require_shapes
from heed.models import MODELS
from heed.models.transfer import (
    READER,
    are_word_vectors,
    embedding_name,
    embedding_weights,
    reader_config,
    reader_weights,
    require_reader,
)
from heed.nn.weight_file import shapes_of
from heed.run import Run
from heed.tasks.defaults import Choices, CorpusStats, Machine
from heed.tasks.prepare import vocabulary_digests
from heed.tasks.task import Task

RATE = 5e-4
"""Peak rate of a transferred reader: lower than that of one with random weights, which it must not forget."""


class Transfer:
    """Parts of the weights of a run, `encoder` or `embeddings`, for the training of another task.

    Raises UsageError if the run has no reader, or if a second run does not fit it.
    """

    def __init__(self, init: Run, parts: str, backward: Run | None = None) -> None:
        self.init, self.parts, self.backward = init, parts, backward
        if backward is not None:
            backward.require_weights()
            _require_backward(init, backward)
        trained: Any = init.recipe.model
        if parts == "encoder" or not are_word_vectors(trained):
            trained = reader_config(trained, backward.recipe.model if backward else None)
        self.config = trained

    def choices(self, task: type[Task], stats: CorpusStats, machine: Machine, given: Mapping[str, Any]) -> Choices:
        """The settings of the training that the user did not give: those of the reader, and of the task."""
        kind = {"model.kind": self.config.kind} if self.parts == "encoder" else {}
        choices = task.defaults(stats, machine, {**kind, **given})
        inherited = {"data.normaliser": self.init.recipe.data.normaliser.model_dump()}
        if self.parts == "encoder":
            inherited |= {f"model.{name}": value for name, value in self.config.model_dump().items()}
        else:
            inherited |= self._size_of_vectors({**choices.values, **given}.get("model.kind"))
        inherited = {key: value for key, value in inherited.items() if key not in given and value is not None}
        inherited |= self._short_enough(task, choices, given)
        own = {key: value for key, value in choices.values.items() if not (kind and key.startswith("model."))}
        reasons = {key: choices.reasons[key] for key in own} | dict.fromkeys(inherited, "as in --init")
        has_peak = given.get("training.schedule") != "noam"
        if kind and "training.lr" in own and has_peak and given.get("training.freeze") != "reader":
            own["training.lr"], reasons["training.lr"] = RATE, "lower, because the reader is trained already"
        return Choices(own | inherited, reasons)

    def _size_of_vectors(self, kind: object) -> dict[str, Any]:
        """The size of the token vectors, if models of this kind have a setting for it."""
        has_size = kind in MODELS and "d_model" in MODELS[kind].Config.model_fields
        return {"model.d_model": getattr(self.config, "d_model", None)} if has_size else {}

    def _short_enough(self, task: type[Task], choices: Choices, given: Mapping[str, Any]) -> dict[str, Any]:
        """Settings for texts as long as the reader has positions for with their end, if the task's are longer."""
        key, most = "data.max_tokens", self.config.max_positions
        if self.parts != "encoder" or most is None or key in given:
            return {}
        chosen = choices.values.get(key, task.Data.model_fields["max_tokens"].default)
        shorter = task.shorter_texts(most - 1) if chosen >= most else {}
        return {name: value for name, value in shorter.items() if name not in given}

    def require_like(self, recipe: Any) -> None:
        """Raise UsageError unless the recipe's model is the transferred reader, or has token vectors of its size."""
        if self.parts == "encoder":
            require_reader(recipe.model, self.config, f"--init {self.init.folder}")

    def load(self, model: Any, config: Any) -> str:
        """Copy the weights into a new model; returns what was copied, in words.

        Raises UsageError or DataError if they do not fit.
        """
        parameters = dict(model.named_parameters())
        weights = self._weights(config)
        if missing := [name for name in weights if name not in parameters]:
            raise UsageError(f"--init-parts {self.parts}: the model has no weight {missing[0]}.")
        if self.parts == "encoder" and (new := sorted(_of_reader(parameters) - weights.keys())):
            raise UsageError(f"--init-parts encoder: {self.init.folder} has no weight {new[0]} of the reader.")
        where = self.init.folder / WEIGHTS
        require_shapes(shapes_of(weights), shapes_of({name: parameters[name] for name in weights}), where)
        with torch.no_grad():
            for name, tensor in weights.items():
                parameters[name].copy_(tensor)
        number = sum(tensor.numel() for tensor in weights.values())
        source = " and ".join(str(run.folder) for run in (self.init, self.backward) if run)
        return f"{number:,} of {sum(p.numel() for p in parameters.values()):,} parameters are those of {source}"

    def _weights(self, config: Any) -> dict[str, torch.Tensor]:
        trained = self.init.recipe.model
        if self.parts == "embeddings":
            return {READER + embedding_name(config): embedding_weights(trained, self.init.weights())}
        weights = reader_weights(trained, self.init.weights())
        if self.backward is not None:
            weights |= reader_weights(self.backward.recipe.model, self.backward.weights(), "backward")
        return {READER + name: tensor for name, tensor in weights.items()}


def _of_reader(names: Iterable[str]) -> set[str]:
    """The weights of a reader without the mix of its layers, which each task learns."""
    return {name for name in names if name.startswith(READER) and not name.startswith(f"{READER}mix.")}


def _require_backward(init: Run, backward: Run) -> None:
    """Raise UsageError unless the runs are language models of both directions, with one vocabulary."""
    directions = [bool(getattr(run.recipe.data, "backward", False)) for run in (init, backward)]
    if directions != [False, True]:
        raise UsageError(
            "--init is the language model that reads forward, and --init-backward one that was trained with "
            "--data.backward=true."
        )
    if {*vocabulary_digests(init.tokenizers).values()} != {*vocabulary_digests(backward.tokenizers).values()}:
        raise UsageError(
            f"{init.folder} and {backward.folder} have different vocabularies: train one with --tokenizer-of the other."
        )
