"""Checkpoints: complete or absent, with damage detected."""

from __future__ import annotations

import errno
import json
import shutil
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from heed.core import files
from heed.core.errors import DataError, StorageError, UsageError
from heed.core.formats import NewerFormatError
from heed.data.schedule import Position
from heed.training import checkpoints
from heed.training.checkpoints import (
    FILES,
    Checkpoint,
    list_checkpoints,
    load_checkpoint,
    load_optimizer_tensors,
    newest_checkpoint,
    optimizer_tensors,
    require_room_for,
    save_checkpoint,
)
from heed.training.manifest import write_manifest
from heed.training.metrics_log import Window
from heed.training.progress import Progress

SHAPES = {"w": (3, 4), "b": (4,)}


def checkpoint(step: int = 7) -> Checkpoint:
    progress = Progress(
        step=step, position=Position(2, 5), num_tokens=1234, seconds=0.1 + 0.2, best_score=33.3, best_step=4,
        validated_at=4, skipped_in_a_row=1, window=Window(1 / 3, 2 / 3, 10, 20, 15, 0.5),
    )  # fmt: skip
    torch.manual_seed(step)
    tensors = {"w": torch.randn(3, 4), "b": torch.randn(4)}
    optimizer = {"w/exp_avg": torch.randn(3, 4), "w/step": torch.tensor(7.0)}
    return Checkpoint(progress, tensors, optimizer, {"0/w": tensors["w"] + 1, "b": tensors["b"]}, {"torch": "2"})


def flip(path: Path) -> None:
    """Change one bit in the middle of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_a_checkpoint_is_restored_bit_for_bit(tmp_path: Path) -> None:
    saved = checkpoint()
    loaded = load_checkpoint(save_checkpoint(tmp_path / "checkpoints", saved, keep=3))
    assert loaded.progress == saved.progress
    assert loaded.made_with == saved.made_with
    for part in ("weights", "optimizer", "average"):
        before, after = getattr(saved, part), getattr(loaded, part)
        assert before.keys() == after.keys()
        assert all(torch.equal(before[name], after[name]) for name in before)


def test_a_checkpoint_has_the_permissions_of_other_files(tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path / "checkpoints", checkpoint(), keep=1)
    (tmp_path / "file").touch()
    assert {file.stat().st_mode for file in path.iterdir()} == {(tmp_path / "file").stat().st_mode}


def test_a_checkpoint_without_an_average_is_restored(tmp_path: Path) -> None:
    plain = Checkpoint(Progress(), {"w": torch.ones(2)}, {}, {})
    loaded = load_checkpoint(save_checkpoint(tmp_path, plain, keep=1))
    assert not loaded.optimizer
    assert not loaded.average


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 5e-324, 1 / 3, 1e300, -0.0])
def test_every_number_of_the_state_is_restored_bit_for_bit(tmp_path: Path, number: float) -> None:
    saved = Checkpoint(Progress(window=Window(loss_sum=number), seconds=number), {}, {}, {})
    loaded = load_checkpoint(save_checkpoint(tmp_path, saved, keep=1))
    assert repr(loaded.progress) == repr(saved.progress)


def test_only_the_newest_checkpoints_are_kept(tmp_path: Path) -> None:
    for step in (5, 10, 20, 12_345_678):
        save_checkpoint(tmp_path, checkpoint(step), keep=2)
    assert [path.name for path in list_checkpoints(tmp_path)] == ["step-0000020", "step-12345678"]


def test_checkpoints_are_sorted_by_number(tmp_path: Path) -> None:
    for step in (9_999_999, 10_000_000):
        save_checkpoint(tmp_path, checkpoint(step), keep=2)
    assert newest_checkpoint(tmp_path).progress.step == 10_000_000


def test_other_names_are_not_checkpoints(tmp_path: Path) -> None:
    for name in ("step-1", "step-000000x", "step-0000001.bak", ".heed-0123456789ab.tmp"):
        (tmp_path / name).mkdir()
    (tmp_path / "step-0000002").touch()
    assert list_checkpoints(tmp_path) == []


def cut_off(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def emptied(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.parametrize("name", [*FILES, "manifest.json"])
@pytest.mark.parametrize(
    "harm", [flip, cut_off, emptied, Path.unlink], ids=["flipped", "cut off", "emptied", "deleted"]
)
def test_damage_to_any_file_is_named_and_the_previous_checkpoint_is_used_unless_strict(
    tmp_path: Path, name: str, harm: Callable[[Path], object], capsys: pytest.CaptureFixture[str]
) -> None:
    for step in (5, 10):
        path = save_checkpoint(tmp_path, checkpoint(step), keep=2)
    harm(path / name)
    with pytest.raises(DataError, match=rf"^checkpoint step-0000010 is damaged: {name} .*\. Without --strict"):
        newest_checkpoint(tmp_path, strict=True)
    assert capsys.readouterr().err == ""
    assert newest_checkpoint(tmp_path).progress.step == 5
    warning = capsys.readouterr().err
    assert warning.startswith(f"warning: checkpoint step-0000010 is damaged: {name} ")
    assert warning.endswith(". The previous one is used.\n")
    assert len(list_checkpoints(tmp_path)) == 2, "looking changes nothing"


def test_the_damage_is_named(tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path, checkpoint(), keep=1)
    flip(path / "optimizer.safetensors")
    with pytest.raises(DataError, match=r"optimizer\.safetensors does not match its SHA-256\.$"):
        load_checkpoint(path)
    (path / "optimizer.safetensors").unlink()
    with pytest.raises(DataError, match=r"optimizer\.safetensors is missing\.$"):
        load_checkpoint(path)


def test_a_damaged_checkpoint_is_replaced_when_training_reaches_it_again(tmp_path: Path) -> None:
    for step in (5, 10):
        path = save_checkpoint(tmp_path, checkpoint(step), keep=3)
    flip(path / "weights.safetensors")
    save_checkpoint(tmp_path, checkpoint(7), keep=3)
    save_checkpoint(tmp_path, checkpoint(10), keep=3)
    assert newest_checkpoint(tmp_path, strict=True).progress.step == 10
    assert [int(path.name[-2:]) for path in tmp_path.iterdir() if path in list_checkpoints(tmp_path)] != []
    assert len(list(tmp_path.iterdir())) == 3


def test_a_damaged_later_checkpoint_does_not_count_among_those_to_keep(tmp_path: Path) -> None:
    for step in (5, 10):
        path = save_checkpoint(tmp_path, checkpoint(step), keep=2)
    flip(path / "weights.safetensors")
    for step in (6, 7, 8):
        save_checkpoint(tmp_path, checkpoint(step), keep=1)
    assert newest_checkpoint(tmp_path).progress.step == 8


def test_an_existing_intact_checkpoint_is_left_alone(tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path, checkpoint(5), keep=1)
    before = (path / "weights.safetensors").stat().st_ino
    assert save_checkpoint(tmp_path, checkpoint(5), keep=1) == path
    assert (path / "weights.safetensors").stat().st_ino == before


def before_and_after_its_validation() -> tuple[Checkpoint, Checkpoint]:
    """Two checkpoints of the same update."""
    before, after = checkpoint(5), checkpoint(5)
    after.progress.validated_at = 5
    return before, after


def test_a_checkpoint_from_before_its_validation_is_replaced(tmp_path: Path) -> None:
    before, after = before_and_after_its_validation()
    save_checkpoint(tmp_path, before, keep=1)
    path = save_checkpoint(tmp_path, after, keep=1)
    assert load_checkpoint(path).progress == after.progress
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.parametrize("moment", range(7))
def test_a_checkpoint_exists_at_every_moment_of_its_replacement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: int
) -> None:
    before, after = before_and_after_its_validation()
    save_checkpoint(tmp_path, before, keep=1)
    calls = count()

    def watched(module: Any, name: str) -> None:
        work = getattr(module, name)

        def broken_off(*arguments: Any, **more: Any) -> Any:
            if next(calls) == moment:
                raise SystemExit(130)
            return work(*arguments, **more)

        monkeypatch.setattr(module, name, broken_off)

    for module, name in ((Path, "rename"), (checkpoints, "save_file"), (checkpoints, "write_manifest")):
        watched(module, name)
    with pytest.raises(SystemExit):
        save_checkpoint(tmp_path, after, keep=1)
    monkeypatch.undo()
    found = newest_checkpoint(tmp_path, strict=True).progress
    assert found == (after if moment == 6 else before).progress
    path = save_checkpoint(tmp_path, after, keep=1)
    assert newest_checkpoint(tmp_path, strict=True).progress == after.progress
    assert list_checkpoints(tmp_path)[-1] == path
    later = save_checkpoint(tmp_path, checkpoint(6), keep=1)
    assert list_checkpoints(tmp_path) == [later]


def test_a_folder_without_an_intact_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no complete checkpoint"):
        newest_checkpoint(tmp_path)
    with pytest.raises(DataError, match="no complete checkpoint"):
        newest_checkpoint(tmp_path / "nowhere")


# --- what is not damaged, but not to be trusted ---------------------------------------------------------


def forge(path: Path, name: str, content: Any) -> None:
    """Other content for a file of a checkpoint, with a manifest that says it is right."""
    if isinstance(content, bytes):
        (path / name).write_bytes(content)
    else:
        save_file(content, path / name)
    write_manifest(path, FILES, {})


def test_a_checkpoint_of_a_newer_version_is_neither_damaged_nor_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_checkpoint(tmp_path, checkpoint(5), keep=2)
    monkeypatch.setattr("heed.training.manifest.FORMAT", 2)
    save_checkpoint(tmp_path, checkpoint(10), keep=2)
    with pytest.raises(NewerFormatError, match=r"checkpoint step-0000010 has format 2.*Update heed"):
        newest_checkpoint(tmp_path)


@pytest.mark.parametrize("part", ["weights", "optimizer", "average"])
def test_a_pickle_instead_of_tensors_is_refused(tmp_path: Path, part: str) -> None:
    path = save_checkpoint(tmp_path, checkpoint(), keep=1)
    torch.save({"w": torch.ones(3)}, path / f"{part}.safetensors")
    forge(path, f"{part}.safetensors", (path / f"{part}.safetensors").read_bytes())
    with pytest.raises(DataError, match=rf"{part}\.safetensors is damaged or not a safetensors file"):
        load_checkpoint(path)


@pytest.mark.parametrize(
    ("part", "tensors", "error", "message"),
    [
        ("weights", {"w": torch.ones(3, 5), "b": torch.ones(4)}, UsageError, "does not fit the model in recipe.toml"),
        ("weights", {"w": torch.ones(3, 4)}, UsageError, "does not fit the model in recipe.toml"),
        ("optimizer", {"w/exp_avg": torch.ones(300, 400)}, DataError, r"'w/exp_avg' of the shape \[300, 400\]"),
        ("optimizer", {"x/exp_avg": torch.ones(3, 4)}, DataError, "'x/exp_avg' .* belongs to no weight"),
        ("average", {"0/w": torch.ones(5)}, DataError, "'0/w' .* belongs to no weight"),
    ],
)
def test_tensors_of_another_model_are_refused_before_they_are_read(
    tmp_path: Path, part: str, tensors: Any, error: type[Exception], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save_checkpoint(tmp_path, checkpoint(), keep=1)
    assert load_checkpoint(path, SHAPES).progress.step == 7
    forge(path, f"{part}.safetensors", tensors)
    monkeypatch.setattr(checkpoints, "load_file", lambda path: pytest.fail("it was read"))
    with pytest.raises(error, match=message):
        load_checkpoint(path, SHAPES)


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (b"", r"state\.json: : Invalid JSON"),
        (b"[1]", "Input should be an object"),
        (b'{"step": "7"}', "step: Input should be a valid integer"),
        (b'{"step": 7.5}', "step: Input should be a valid integer"),
        (b'{"position": {"epoch": null}}', r"position\.epoch: Input should be a valid integer"),
        (b'{"position": 3}', "position: Input should be an object"),
        (b'{"best_score": [1]}', "best_score: Input should be a valid number"),
        (b'{"window": {"loss_sum": true}}', r"window\.loss_sum: Input should be a valid number"),
        (b"[" * 200_000, "Invalid JSON"),
        (b" " * 2_000_000, "larger than 1.0 MB"),
    ],
)
def test_a_state_with_wrong_types_is_refused(tmp_path: Path, state: bytes, message: str) -> None:
    path = save_checkpoint(tmp_path, checkpoint(), keep=1)
    forge(path, "state.json", state)
    with pytest.raises(DataError, match=rf"^checkpoint step-0000007 is damaged: .*{message}"):
        load_checkpoint(path)


def test_a_state_without_newer_fields_is_read(tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path, checkpoint(), keep=1)
    forge(path, "state.json", json.dumps({"step": 7, "position": {"epoch": 1}}).encode())
    assert load_checkpoint(path).progress == Progress(step=7, position=Position(1, 0))


def test_a_link_instead_of_a_checkpoint_is_refused(tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path / "elsewhere", checkpoint(5), keep=1)
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / path.name).symlink_to(path)
    with pytest.raises(DataError, match="step-0000005 is damaged: it is a link"):
        newest_checkpoint(tmp_path / "here", strict=True)


# --- storage --------------------------------------------------------------------------------------------


def test_a_full_disk_is_reported_and_leaves_the_old_checkpoint_and_no_debris(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_checkpoint(tmp_path, checkpoint(5), keep=1)

    def full(self: Path, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(StorageError) as refused:
        save_checkpoint(tmp_path, checkpoint(10), keep=1)
    message = str(refused.value)
    assert message.startswith("cannot write a checkpoint: no space left on the device (needs 216 bytes, ")
    assert message.endswith(
        f" free at {tmp_path}/step-0000010). Free some space or move the run to another disk; --resume continues "
        "from the previous checkpoint."
    )
    assert [path.name for path in tmp_path.iterdir()] == ["step-0000005"]
    assert load_checkpoint(tmp_path / "step-0000005").progress.step == 5


def disk_with(monkeypatch: pytest.MonkeyPatch, free: int) -> None:
    monkeypatch.setattr(files.shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10**9, 0, free))  # type: ignore[attr-defined]


def test_a_checkpoint_requires_a_fifth_more_room_than_its_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    saved = checkpoint()
    needed = -(-saved.num_bytes * 12 // 10)

    disk_with(monkeypatch, free=needed - 1)
    for refuse in (lambda: save_checkpoint(tmp_path, saved, keep=1), lambda: require_room_for(tmp_path, saved)):
        with pytest.raises(StorageError, match=rf"no space left .*needs {needed} bytes, {needed - 1} bytes free at"):
            refuse()
    assert list(tmp_path.iterdir()) == []
    disk_with(monkeypatch, free=needed)
    require_room_for(tmp_path, saved)
    save_checkpoint(tmp_path, saved, keep=1)


def test_the_first_checkpoint_requires_room_for_the_state_of_the_optimiser(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk_with(monkeypatch, free=300)
    with pytest.raises(StorageError, match="needs 480 bytes, 300 bytes free"):  # 1.2 × (100 + 2 × 100 + 100)
        save_checkpoint(tmp_path, Checkpoint(Progress(), {"w": torch.ones(25)}, {}, {"w": torch.ones(25)}), keep=1)


def test_an_optimiser_without_state_requires_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk_with(monkeypatch, free=300)
    save_checkpoint(tmp_path, Checkpoint(Progress(step=5), {"w": torch.ones(25)}, {}, {"w": torch.ones(25)}), keep=1)


def test_a_first_checkpoint_that_cannot_be_written_suggests_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_only(self: Path, exist_ok: bool = True) -> None:
        raise OSError(errno.EROFS, "Read-only file system", str(self))

    monkeypatch.setattr(Path, "touch", read_only)
    with pytest.raises(
        StorageError, match=r"a checkpoint: the file system is read-only at .*\. Choose another --out\."
    ):
        save_checkpoint(tmp_path, checkpoint(), keep=1)


@pytest.mark.parametrize("doing", ["save_file", "write_manifest", "rename"])
def test_an_interrupted_save_leaves_the_old_checkpoint_and_no_debris(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, doing: str
) -> None:
    """A second signal leaves at once, wherever the save is."""
    save_checkpoint(tmp_path, checkpoint(5), keep=1)

    def leave(*_: object) -> None:
        raise SystemExit(130)

    monkeypatch.setattr(Path if doing == "rename" else checkpoints, doing, leave)
    with pytest.raises(SystemExit):
        save_checkpoint(tmp_path, checkpoint(10), keep=1)
    monkeypatch.undo()
    assert [path.name for path in tmp_path.iterdir()] == ["step-0000005"]
    assert newest_checkpoint(tmp_path, strict=True).progress.step == 5


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.AdamW])
def test_an_optimiser_continues_bit_for_bit_from_its_saved_state(kind: type[torch.optim.Optimizer]) -> None:
    def fresh() -> tuple[list[torch.Tensor], torch.optim.Optimizer]:
        torch.manual_seed(0)
        parameters = [torch.randn(4, 3, requires_grad=True), torch.randn(3, requires_grad=True)]
        return parameters, kind(parameters, lr=0.1, fused=True)  # type: ignore[call-arg]

    def step(parameters: list[torch.Tensor], optimizer: torch.optim.Optimizer, number: int) -> None:
        for parameter in parameters:
            parameter.grad = parameter.detach() * number
        optimizer.step()

    names = ["a.weight", "b.bias"]
    parameters, optimizer = fresh()
    for number in (1, 2, 3):
        step(parameters, optimizer, number)
    taken = optimizer_tensors(optimizer, names)
    assert set(taken) == {f"{name}/{part}" for name in names for part in ("step", "exp_avg", "exp_avg_sq")}

    others, other_optimizer = fresh()
    with torch.no_grad():
        for other, parameter in zip(others, parameters, strict=True):
            other.copy_(parameter)
    load_optimizer_tensors(other_optimizer, dict(zip(names, others, strict=True)), taken)
    for pair in ((parameters, optimizer), (others, other_optimizer)):
        step(*pair, number=4)
    assert all(torch.equal(one, other) for one, other in zip(parameters, others, strict=True))
