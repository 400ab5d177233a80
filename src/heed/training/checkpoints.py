"""Checkpoints, from which an interrupted training continues bit for bit.

A checkpoint is a folder that appears whole or not at all, with nothing in it that can run code:
`weights.safetensors` (float32), `optimizer.safetensors`, `average.safetensors` where weights are averaged,
`carried.safetensors` where streams carry a state from batch to batch, `state.json` (the update's number, the position
in the data, scores so far), and `manifest.json` with the SHA-256 of each of them. Random masks and data order are keyed
by seed, epoch and index, so there is no generator state to save.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from pydantic import TypeAdapter, ValidationError
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from heed.core.errors import DataError, UsageError
from heed.core.files import atomic_folder, remove_folder, require_room, storage_errors
from heed.core.formats import NewerFormatError
from heed.core.own_files import own_path, read_own
from heed.core.progress import warn
from heed.data.schedule import Position
from heed.nn.device import arithmetic
from heed.nn.weight_file import Header, Shapes, read_header
from heed.training.journal import Window
from heed.training.manifest import MAX_BYTES, checked_manifest, write_manifest
from heed.training.sharding import shared_like
from heed.training.stopping import Divergence
from heed.training.weights import Trigger

PARTS = ("weights", "optimizer", "average")
CARRIED = "carried.safetensors"
STATE = "state.json"
FILES = (*(f"{part}.safetensors" for part in PARTS), STATE)
ROOM = 1.2
"""Times the size of a checkpoint that must be free before it is begun."""
_NAME = re.compile(r"step-(\d{7,})")


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
    best_perplexity: float | None = None
    """Of the validation with the best score: between equal scores it decides."""
    best_on_schedule: float | None = None
    """The best score without validations at a limit, which a longer training would not have had."""
    best_perplexity_on_schedule: float | None = None
    validations_since_best: int = 0
    """Of those on schedule."""
    average_updates: int = 0
    trigger: Trigger = field(default_factory=Trigger)
    rate_scale: float = 1.0
    """What validation has made of the learning rate."""
    skipped_in_a_row: int = 0
    max_positions: int = 0
    divergence: Divergence = field(default_factory=Divergence)
    window: Window = field(default_factory=Window)


@dataclass(frozen=True)
class Checkpoint:
    """Everything needed to continue exactly; `made_with` is what computed it: another machine may round otherwise."""

    progress: Progress
    weights: Mapping[str, Tensor]
    optimizer: Mapping[str, Tensor]
    average: Mapping[str, Tensor]
    made_with: Mapping[str, str] = field(default_factory=dict)
    carried: Mapping[str, Tensor] = field(default_factory=dict)
    """The state in which streams stand."""

    @property
    def parts(self) -> dict[str, Mapping[str, Tensor]]:
        """The tensors of each file; of an older heed's checkpoint there is none for the state of streams."""
        found: dict[str, Mapping[str, Tensor]] = {f"{part}.safetensors": getattr(self, part) for part in PARTS}
        return {**found, CARRIED: self.carried} if self.carried else found

    @property
    def num_bytes(self) -> int:
        """What its numbers take."""
        return sum(tensor.nbytes for part in self.parts.values() for tensor in part.values())


def save_checkpoint(folder: Path, checkpoint: Checkpoint, keep: int) -> Path:
    """Write `folder/step-NNNNNNN`, then delete all but the newest `keep`. Raises StorageError when the disk is full.

    A whole checkpoint of that update that is there already is left alone; but one from before the update was validated
    is replaced, and until the new one is there it is found under a name with one more zero.
    """
    target = folder / f"step-{checkpoint.progress.step:07d}"
    replaced = folder / f"step-0{checkpoint.progress.step:07d}"
    is_whole = target.exists() and _is_whole(target)
    if is_whole and read_own(target, STATE, MAX_BYTES) == _state(checkpoint):
        return target
    with _explained(folder, checkpoint):
        require_room(folder, _room(checkpoint))
        if is_whole and not replaced.exists():
            target.rename(replaced)
        elif target.exists():
            remove_folder(target)
        with atomic_folder(target) as temporary:
            _write(temporary, checkpoint)
        if replaced.exists():
            remove_folder(replaced)
        # One of a later update is damaged: else it would have been gone on from. It is not one of those to keep.
        for old in [path for path in list_checkpoints(folder) if step_of(path) <= checkpoint.progress.step][:-keep]:
            remove_folder(old)
    return target


def require_room_for(folder: Path, checkpoint: Checkpoint) -> None:
    """Raise StorageError when another checkpoint of that size could not be written."""
    with _explained(folder, checkpoint):
        require_room(folder, _room(checkpoint))


def _explained(folder: Path, checkpoint: Checkpoint) -> AbstractContextManager[None]:
    moved = "move the run to another disk; --resume goes on from the checkpoint before"
    otherwise = moved if list_checkpoints(folder) else "choose another --out"
    return storage_errors("write a checkpoint", _room(checkpoint), folder, otherwise)


def _room(checkpoint: Checkpoint) -> int:
    size = checkpoint.num_bytes
    if not checkpoint.optimizer and not checkpoint.progress.step:  # Adam will keep two numbers for each weight
        size += 2 * sum(tensor.nbytes for tensor in checkpoint.weights.values())
    return math.ceil(ROOM * size)


def _write(folder: Path, checkpoint: Checkpoint) -> None:
    (folder / STATE).write_bytes(_state(checkpoint))
    for name, tensors in checkpoint.parts.items():
        path = folder / name
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, path)
        shutil.copymode(folder / STATE, path)  # the library lets nobody else read what it writes
    write_manifest(folder, files_of(folder), checkpoint.made_with)


def _state(checkpoint: Checkpoint) -> bytes:
    """What `state.json` holds."""
    return json.dumps(asdict(checkpoint.progress), indent=1).encode()


def files_of(folder: Path) -> tuple[str, ...]:
    """The files of a checkpoint but for its manifest, which tells when one is missing."""
    return (*FILES, CARRIED) if os.path.lexists(folder / CARRIED) else FILES


def list_checkpoints(folder: Path) -> list[Path]:
    """The checkpoints, whole or damaged, oldest first; of one update, the one that is being replaced first."""
    found = [path for path in folder.glob("step-*") if _NAME.fullmatch(path.name) and path.is_dir()]
    return sorted(found, key=lambda path: (step_of(path), -len(path.name)))


def step_of(path: Path) -> int:
    """The number of updates before a checkpoint."""
    return int(path.name.removeprefix("step-"))


_Progress = TypeAdapter(Progress)


def load_checkpoint(path: Path, shapes: Shapes | None = None) -> Checkpoint:
    """Read one checkpoint and check every file against its hash.

    With `shapes`, those of the recipe's weights, what holds other tensors is refused before memory is taken for them.
    Raises DataError that names the damage, UsageError when it is a checkpoint of another model.
    """
    try:
        if path.is_symlink():
            raise DataError("it is a link")
        manifest = checked_manifest(path, files_of(path))
        headers = {part: read_header(path / f"{part}.safetensors") for part in PARTS}
        if shapes is not None:
            _require_fit(headers, shapes)
        progress = _Progress.validate_json(read_own(path, STATE, MAX_BYTES), strict=True)
        weights, optimizer, average = (load_file(own_path(path, f"{part}.safetensors")) for part in PARTS)
        carried = load_file(own_path(path, CARRIED)) if CARRIED in manifest.sha256 else {}
        return Checkpoint(progress, weights, optimizer, average, manifest.made_with, carried)
    except NewerFormatError:
        raise
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        what = f"{STATE}: {'.'.join(map(str, first['loc']))}: {first['msg']}"
        raise DataError(f"checkpoint {path.name} is damaged: {what}.") from error
    except (DataError, OSError, SafetensorError) as error:
        raise DataError(f"checkpoint {path.name} is damaged: {str(error).removesuffix('.')}.") from error


def require_whole(path: Path) -> None:
    """Raise DataError or OSError unless every file of a checkpoint is as it was written."""
    checked_manifest(path, files_of(path))


def _is_whole(path: Path) -> bool:
    try:
        require_whole(path)
    except (DataError, OSError):
        return False
    return True


def _require_fit(headers: Mapping[str, Header], shapes: Shapes) -> None:
    """The weights are the model's; every other tensor belongs to one of them, and has its shape or is one number."""
    if headers["weights"].shapes != shapes:
        raise UsageError("the checkpoint is of another model than recipe.toml: was [model] edited?")
    for part in ("optimizer", "average"):
        for name, shape in headers[part].shapes.items():
            weight = next((word for word in name.split("/") if word in shapes), None)
            if weight is None or shape not in ((), shapes[weight]):
                raise DataError(f"{part}.safetensors: {name!r:.100} of the shape {list(shape)} belongs to no weight")


def newest_checkpoint(folder: Path, strict: bool = False, shapes: Shapes | None = None) -> Checkpoint:
    """The newest checkpoint that is whole. A damaged one is named and passed over; or refused, if `strict`.

    What is passed over is replaced when the training gets there again. Raises DataError when there is none.
    """
    for path in reversed(list_checkpoints(folder)):
        try:
            return load_checkpoint(path, shapes)
        except NewerFormatError:
            raise
        except DataError as error:
            if strict:
                raise DataError(f"{error} Without --strict the one before it is used.") from error
            warn(f"{error} The one before it is used.")
    raise DataError(f"{folder} holds no complete checkpoint to continue from. Start again with --overwrite.")


def tell_other_arithmetic(checkpoint: Checkpoint, device: torch.device, quiet: bool) -> None:
    """Warn where numbers may be rounded otherwise than when the checkpoint was made."""
    then, now = dict(checkpoint.made_with), arithmetic(device)
    processes = then.pop("processes", now["processes"])
    if processes != now["processes"]:
        warn(
            f"it was trained by {processes} processes together and goes on with {now['processes']}: an update has "
            f"another number of sentences. --nproc {processes} goes on as it was.", quiet,
        )  # fmt: skip
    changed = [f"{name} was {then[name]}, is {now.get(name, 'none')}" for name in then if then[name] != now.get(name)]
    if changed:
        warn(f"the last bits of a number may differ from a training that never stopped: {', '.join(changed)}.", quiet)


def optimizer_tensors(optimizer: torch.optim.Optimizer, names: list[str]) -> dict[str, Tensor]:
    """The optimiser's state as tensors named `weight name / quantity`, in the order of its parameters."""
    state = optimizer.state_dict()["state"]
    return {
        f"{names[index]}/{key}": torch.as_tensor(value).detach().clone()
        for index, values in state.items()
        for key, value in values.items()
    }


def load_optimizer_tensors(
    optimizer: torch.optim.Optimizer, weights: Mapping[str, Tensor], tensors: Mapping[str, Tensor]
) -> None:
    """Give an optimiser of these weights back what `optimizer_tensors` took."""
    index = {name: i for i, name in enumerate(weights)}
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        name, quantity = key.rsplit("/", 1)
        state.setdefault(index[name], {})[quantity] = shared_like(tensor, weights[name])
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})
