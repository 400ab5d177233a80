"""How is a training stopped anywhere and continued bit for bit?

A checkpoint is a folder that appears whole or not at all, with nothing in it that can run code:
`weights.safetensors` (float32), `optimizer.safetensors`, `average.safetensors` where weights are averaged,
`state.json` (the update's number, the position in the data, scores so far), and `manifest.json` with the SHA-256 of
each of them. Random masks and data order are keyed by seed, epoch and index, so there is no generator state to save.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save
from torch import Tensor

from heed.core.errors import DataError
from heed.core.files import atomic_folder, atomic_write, sha256_file, storage_errors
from heed.core.progress import warn
from heed.data.loader import Position
from heed.training.journal import Window

FORMAT = 1
_PREFIX = "step-"
_PARTS = ("weights", "optimizer", "average")


@dataclass
class Progress:
    """Where a training stands: plain numbers, kept in `state.json`."""

    step: int = 0
    position: Position = field(default_factory=Position)
    num_tokens: int = 0
    seconds: float = 0.0
    num_validations: int = 0
    validated_at: int = -1
    best_score: float | None = None
    best_step: int = 0
    validations_since_best: int = 0
    average_updates: int = 0
    skipped_in_a_row: int = 0
    window: Window = field(default_factory=Window)


@dataclass(frozen=True)
class Checkpoint:
    """Everything needed to continue exactly."""

    progress: Progress
    weights: Mapping[str, Tensor]
    optimizer: Mapping[str, Tensor]
    average: Mapping[str, Tensor]


def save_checkpoint(folder: Path, checkpoint: Checkpoint, keep: int) -> Path:
    """Write `folder/step-NNNNNNN`, then delete all but the newest `keep`. Raises StorageError when the disk is full.

    A checkpoint of that update that is there already is left alone.
    """
    target = folder / f"{_PREFIX}{checkpoint.progress.step:07d}"
    if target.exists():
        return target
    tensors = {"weights": checkpoint.weights, "optimizer": checkpoint.optimizer, "average": checkpoint.average}
    files = {f"{part}.safetensors": save({k: t.contiguous() for k, t in tensors[part].items()}) for part in _PARTS}
    files["state.json"] = json.dumps(asdict(checkpoint.progress), indent=1).encode()
    needed = sum(map(len, files.values()))
    with storage_errors("write a checkpoint", needed, folder):
        folder.mkdir(parents=True, exist_ok=True)
        with atomic_folder(target) as temporary:
            for name, content in files.items():
                (temporary / name).write_bytes(content)
            hashes = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
            manifest = {"format": FORMAT, "sha256": hashes}
            (temporary / "manifest.json").write_text(json.dumps(manifest, indent=1), encoding="utf-8")
        for old in list_checkpoints(folder)[:-keep]:
            shutil.rmtree(old)
    return target


def list_checkpoints(folder: Path) -> list[Path]:
    """The checkpoints, whole or damaged, oldest first."""
    return sorted(path for path in folder.glob(f"{_PREFIX}*") if path.is_dir())


def load_checkpoint(path: Path) -> Checkpoint:
    """Read one checkpoint and check every file against its hash. Raises DataError that names the damage."""
    try:
        manifest: dict[str, Any] = json.loads((path / "manifest.json").read_bytes())
        if manifest["format"] != FORMAT:
            raise DataError(f"checkpoint {path.name} has format {manifest['format']!r}; this heed reads {FORMAT}.")
        for name in (*(f"{part}.safetensors" for part in _PARTS), "state.json"):
            if sha256_file(path / name) != manifest["sha256"][name]:
                raise DataError(f"checkpoint {path.name} is damaged: {name} does not match its SHA-256.")
        state = json.loads((path / "state.json").read_bytes())
        state |= {"position": Position(**state["position"]), "window": Window(**state["window"])}
        return Checkpoint(Progress(**state), *(load_file(path / f"{part}.safetensors") for part in _PARTS))
    except FileNotFoundError as error:
        raise DataError(f"checkpoint {path.name} is damaged: {Path(error.filename).name} is missing.") from error
    except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
        raise DataError(f"checkpoint {path.name} is damaged: {error or type(error).__name__}.") from error


def newest_checkpoint(folder: Path, strict: bool = False) -> Checkpoint:
    """The newest checkpoint that is whole. A damaged one is named, put aside and passed over; or refused, if `strict`.

    Raises DataError when there is none.
    """
    for path in reversed(list_checkpoints(folder)):
        try:
            return load_checkpoint(path)
        except DataError as error:
            if strict:
                raise DataError(f"{error} Without --strict the one before it is used.") from error
            aside = path.with_name(f"damaged-{path.name}")
            shutil.rmtree(aside, ignore_errors=True)
            path.rename(aside)  # so that the training writes its own when it gets there again
            warn(f"{error} It is put aside as {aside.name}, and the one before it is used.")
    raise DataError(f"{folder} holds no whole checkpoint to go on from. Start anew with --overwrite.")


def save_weights(path: Path, weights: Mapping[str, Tensor], metadata: Mapping[str, str]) -> None:
    """Write weights as one safetensors file, whole or not at all."""
    blob = save({name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}, dict(metadata))
    with storage_errors("write the weights", len(blob), path.parent), atomic_write(path) as file:
        file.write(blob)


def optimizer_tensors(optimizer: torch.optim.Optimizer, names: list[str]) -> dict[str, Tensor]:
    """The optimiser's state as tensors named `weight name / quantity`, in the order of its parameters."""
    state = optimizer.state_dict()["state"]
    return {
        f"{names[index]}/{key}": torch.as_tensor(value).detach().clone()
        for index, values in state.items()
        for key, value in values.items()
    }


def load_optimizer_tensors(optimizer: torch.optim.Optimizer, names: list[str], tensors: Mapping[str, Tensor]) -> None:
    """Give an optimiser back what `optimizer_tensors` took."""
    index = {name: i for i, name in enumerate(names)}
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        name, quantity = key.rsplit("/", 1)
        state.setdefault(index[name], {})[quantity] = tensor
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
