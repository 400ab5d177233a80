"""Checkpoints, from which an interrupted training continues bit for bit.

A checkpoint is a folder that appears completely or not at all, and holds nothing that can run code:
`weights.safetensors` (float32), `optimizer.safetensors`, `average.safetensors` (averaged weights),
`carried.safetensors` (the state of streams, which is carried from batch to batch), `state.json` (number of updates,
position in the data, scores so far), and `manifest.json` with the SHA-256 of each file. Random masks and data order are
keyed by seed, epoch and index, so there is no generator state to save.
"""

from __future__ import annotations

import json
import math
import os
import re
import shutil
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, dataclass, field
from functools import reduce
from pathlib import Path
from typing import Any

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
from heed.core.weight_file import Header, Shapes, read_header
from heed.data.text_stream import streams_of
from heed.nn.contract import State
from heed.nn.device import arithmetic
from heed.nn.state_io import state_tensors, with_tensors
from heed.training.manifest import MAX_BYTES, checked_manifest, write_manifest
from heed.training.progress import Progress
from heed.training.ranks import Ranks
from heed.training.sharding import shared_like

PARTS = ("weights", "optimizer", "average")
CARRIED = "carried.safetensors"
STATE = "state.json"
FILES = (*(f"{part}.safetensors" for part in PARTS), STATE)
ROOM = 1.2
"""Free space that writing a checkpoint requires, relative to its size."""
NUM_STREAMS = "/num_streams"
"""Key of the number of streams in `carried.safetensors`; no field of a state has this name."""
_NAME = re.compile(r"step-(\d{7,})")


@dataclass(frozen=True)
class Checkpoint:
    """Everything needed to continue exactly.

    `made_with` describes the machine that computed it, because another one may round differently.
    """

    progress: Progress
    weights: Mapping[str, Tensor]
    optimizer: Mapping[str, Tensor]
    average: Mapping[str, Tensor]
    made_with: Mapping[str, str] = field(default_factory=dict)
    carried: Mapping[str, Tensor] = field(default_factory=dict)
    """The state of streams."""

    @property
    def parts(self) -> dict[str, Mapping[str, Tensor]]:
        """The tensors of each file. Only trainings on streams have `carried.safetensors`."""
        parts: dict[str, Mapping[str, Tensor]] = {f"{part}.safetensors": getattr(self, part) for part in PARTS}
        return {**parts, CARRIED: self.carried} if self.carried else parts

    @property
    def num_bytes(self) -> int:
        """Size of the tensors."""
        return sum(tensor.nbytes for part in self.parts.values() for tensor in part.values())


def save_checkpoint(folder: Path, checkpoint: Checkpoint, keep: int) -> Path:
    """Write `folder/step-NNNNNNN`, then delete all but the newest `keep` checkpoints.

    An intact, equal checkpoint of the same update is left alone. One from before the update's validation is replaced;
    until the new one is complete it is kept under a name with one more zero.

    Raises:
        StorageError: The disk is full.
    """
    target = folder / f"step-{checkpoint.progress.step:07d}"
    replaced = folder / f"step-0{checkpoint.progress.step:07d}"
    is_intact = target.exists() and _is_intact(target)
    if is_intact and read_own(target, STATE, MAX_BYTES) == _state(checkpoint):
        return target
    with _storage_errors(folder, checkpoint):
        require_room(folder, _required_room(checkpoint))
        if is_intact and not replaced.exists():
            target.rename(replaced)
        elif target.exists():
            remove_folder(target)
        with atomic_folder(target) as temporary:
            _write(temporary, checkpoint)
        if replaced.exists():
            remove_folder(replaced)
        # A checkpoint of a later update is damaged, or the training would have continued from it: it does not count.
        for old in [path for path in list_checkpoints(folder) if step_of(path) <= checkpoint.progress.step][:-keep]:
            remove_folder(old)
    return target


def require_room_for(folder: Path, checkpoint: Checkpoint) -> None:
    """Raise StorageError if there is no room for another checkpoint of this size."""
    with _storage_errors(folder, checkpoint):
        require_room(folder, _required_room(checkpoint))


def _storage_errors(folder: Path, checkpoint: Checkpoint) -> AbstractContextManager[None]:
    move = "move the run to another disk; --resume continues from the previous checkpoint"
    otherwise = move if list_checkpoints(folder) else "choose another --out"
    return storage_errors("write a checkpoint", _required_room(checkpoint), folder, otherwise)


def _required_room(checkpoint: Checkpoint) -> int:
    size = checkpoint.num_bytes
    if not checkpoint.optimizer and not checkpoint.progress.step:  # Adam will keep two numbers per weight
        size += 2 * sum(tensor.nbytes for tensor in checkpoint.weights.values())
    return math.ceil(ROOM * size)


def _write(folder: Path, checkpoint: Checkpoint) -> None:
    (folder / STATE).write_bytes(_state(checkpoint))
    for name, tensors in checkpoint.parts.items():
        path = folder / name
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, path)
        shutil.copymode(folder / STATE, path)  # safetensors writes files that only their owner can read
    write_manifest(folder, files_of(folder), checkpoint.made_with)


def _state(checkpoint: Checkpoint) -> bytes:
    """The content of `state.json`."""
    return json.dumps(asdict(checkpoint.progress), indent=1).encode()


def files_of(folder: Path) -> tuple[str, ...]:
    """The files of a checkpoint that its manifest lists."""
    return (*FILES, CARRIED) if os.path.lexists(folder / CARRIED) else FILES


def list_checkpoints(folder: Path) -> list[Path]:
    """The checkpoints, intact or damaged, oldest first; of the same update, the one that is being replaced first."""
    paths = [path for path in folder.glob("step-*") if _NAME.fullmatch(path.name) and path.is_dir()]
    return sorted(paths, key=lambda path: (step_of(path), -len(path.name)))


def step_of(path: Path) -> int:
    """Number of updates before a checkpoint, from its name."""
    return int(path.name.removeprefix("step-"))


_Progress = TypeAdapter(Progress)


def load_checkpoint(path: Path, shapes: Shapes | None = None) -> Checkpoint:
    """Read a checkpoint and verify every file against its hash.

    With `shapes` (of the recipe's weights), other tensors are refused before memory is allocated for them.

    Raises:
        DataError: The checkpoint is damaged; the message names the damage.
        UsageError: It belongs to another model.
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
        problem = f"{STATE}: {'.'.join(map(str, first['loc']))}: {first['msg']}"
        raise DataError(f"checkpoint {path.name} is damaged: {problem}.") from error
    except (DataError, OSError, SafetensorError) as error:
        raise DataError(f"checkpoint {path.name} is damaged: {str(error).removesuffix('.')}.") from error


def require_whole(path: Path) -> None:
    """Raise DataError or OSError unless every file of a checkpoint is as it was written."""
    checked_manifest(path, files_of(path))


def _is_intact(path: Path) -> bool:
    try:
        require_whole(path)
    except (DataError, OSError):
        return False
    return True


def _require_fit(headers: Mapping[str, Header], shapes: Shapes) -> None:
    """Raise unless the weights are the model's, and every other tensor has the shape of its weight or is a scalar."""
    if headers["weights"].shapes != shapes:
        raise other_model()
    for part in ("optimizer", "average"):
        for name, shape in headers[part].shapes.items():
            weight = next((word for word in name.split("/") if word in shapes), None)
            if weight is None or shape not in ((), shapes[weight]):
                raise DataError(f"{part}.safetensors: {name!r:.100} of the shape {list(shape)} belongs to no weight")


def other_model() -> UsageError:
    """The error for a checkpoint whose weights are not those of the recipe's model."""
    return UsageError("the checkpoint does not fit the model in recipe.toml. Undo any change of its [model] table.")


def newest_checkpoint(folder: Path, strict: bool = False, shapes: Shapes | None = None) -> Checkpoint:
    """Load the newest intact checkpoint, with a warning for each damaged one; if `strict`, raise DataError instead.

    A damaged checkpoint is replaced when the training reaches its update again. Raises DataError if none is intact.
    """
    for path in reversed(list_checkpoints(folder)):
        try:
            return load_checkpoint(path, shapes)
        except NewerFormatError:
            raise
        except DataError as error:
            if strict:
                raise DataError(f"{error} Without --strict, the previous one is used.") from error
            warn(f"{error} The previous one is used.")
    raise DataError(f"{folder} has no complete checkpoint to continue from. Start again with --overwrite.")


def validations_since_best(folder: Path) -> int:
    """Validations without a better score in the newest checkpoint whose state can be read; 0 if there is none."""
    for path in reversed(list_checkpoints(folder)):
        with suppress(DataError, OSError, ValidationError):
            return _Progress.validate_json(read_own(path, STATE, MAX_BYTES), strict=True).validations_since_best
    return 0


def how_computed(device: torch.device, precision: str) -> dict[str, str]:
    """What the numbers of a training depend on besides its recipe's other keys, as a checkpoint stores it."""
    return {**arithmetic(device), "precision": precision}


def warn_about_arithmetic(checkpoint: Checkpoint, device: torch.device, precision: str, quiet: bool) -> None:
    """Warn if this machine, or a recipe that was edited, rounds differently from what wrote the checkpoint."""
    then, now = dict(checkpoint.made_with), how_computed(device, precision)
    if (before := then.pop("precision", precision)) != precision:
        warn(f"the training computed in {before} and continues in {precision} (training.precision).", quiet)
    processes = then.pop("processes", now["processes"])
    if processes != now["processes"]:
        warn(
            f"the training was run by {processes} processes and continues with {now['processes']}, which changes the "
            f"number of sentences per update. --nproc {processes} keeps it.", quiet,
        )  # fmt: skip
    changed = [f"{name} was {then[name]}, is {now.get(name, 'none')}" for name in then if then[name] != now.get(name)]
    if changed:
        warn(f"numbers may differ in their last bits from an uninterrupted run: {', '.join(changed)}.", quiet)


def optimizer_tensors(optimizer: torch.optim.Optimizer, names: list[str]) -> dict[str, Tensor]:
    """The optimiser's state as tensors named `weight/quantity`; `names` are those of its parameters, in order."""
    state = optimizer.state_dict()["state"]
    return {
        f"{names[index]}/{key}": torch.as_tensor(value).detach().clone()
        for index, values in state.items()
        for key, value in values.items()
    }


def load_optimizer_tensors(
    optimizer: torch.optim.Optimizer, weights: Mapping[str, Tensor], tensors: Mapping[str, Tensor]
) -> None:
    """Restore the state of an optimiser of these weights from the result of `optimizer_tensors`."""
    index = {name: i for i, name in enumerate(weights)}
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        name, quantity = key.rsplit("/", 1)
        state.setdefault(index[name], {})[quantity] = shared_like(tensor, weights[name])
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def stream_tensors(model: Any, state: State | None, num_streams: int, ranks: Ranks) -> dict[str, Tensor]:
    """The state of all streams, gathered from the ranks, so that it does not depend on their number.

    Every rank must call this.
    """
    if state is None:
        return {}
    if ranks.world_size > 1:
        state = _of_all_ranks(model, state, num_streams, ranks)
    return {**state_tensors(state), NUM_STREAMS: torch.tensor(num_streams)}


def _of_all_ranks(model: Any, state: State, num_streams: int, ranks: Ranks) -> State:
    """The states of all ranks' streams in one. A rank with fewer streams than another sends its last one again."""
    devices = (tensor.device for tensor in state_tensors(state).values() if tensor.device.type != "cpu")
    device = next(devices, torch.device("cpu"))  # whole numbers are on the CPU in any case
    numbers = [len(streams_of(rank, ranks.world_size, num_streams)) for rank in range(ranks.world_size)]
    rows = torch.arange(max(numbers), device=device)
    equal = state.select(rows.clamp(max=numbers[ranks.rank] - 1))
    fresh = model.start(None, max(numbers))
    gathered = [with_tensors(fresh, tensors, device) for tensors in ranks.gathered(state_tensors(equal))]
    own: list[State] = [each.select(rows[:number]) for each, number in zip(gathered, numbers, strict=True)]
    return reduce(lambda left, right: left.join(right), own)


def stream_state(
    model: Any, tensors: Mapping[str, Tensor], num_streams: int, ranks: Ranks, device: torch.device
) -> State | None:
    """This rank's part of the result of `stream_tensors`. Raises UsageError if it belongs to another model."""
    if not tensors:
        return None
    if (saved := int(tensors.get(NUM_STREAMS, torch.tensor(0)))) != num_streams:
        raise UsageError(
            f"the checkpoint has {saved} streams, the recipe training.num_streams = {num_streams}. Undo the change of "
            "recipe.toml."
        )
    try:
        state: State = with_tensors(model.start(None, num_streams), tensors, device)
    except KeyError as error:
        raise UsageError(
            f"the checkpoint's streams belong to another model: their state has no {error}. Undo any change of the "
            "[model] table of recipe.toml."
        ) from error
    if ranks.world_size == 1:
        return state
    own = streams_of(ranks.rank, ranks.world_size, num_streams)
    return state.select(torch.arange(own.start, own.stop, device=device))
