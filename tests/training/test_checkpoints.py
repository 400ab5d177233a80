"""Is a checkpoint whole or not there at all, and is damage told from health?"""

from __future__ import annotations

import errno
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from heed.core.errors import DataError, StorageError
from heed.data.loader import Position
from heed.training.checkpoints import (
    Checkpoint,
    Progress,
    list_checkpoints,
    load_checkpoint,
    load_optimizer_tensors,
    newest_checkpoint,
    optimizer_tensors,
    save_checkpoint,
)
from heed.training.journal import Window

FILES = ["weights.safetensors", "optimizer.safetensors", "average.safetensors", "state.json", "manifest.json"]


def checkpoint(step: int = 7) -> Checkpoint:
    progress = Progress(
        step=step, position=Position(2, 5), num_tokens=1234, seconds=0.1 + 0.2, best_score=33.3, best_step=4,
        validated_at=4, skipped_in_a_row=1, window=Window(1 / 3, 2 / 3, 10, 20, 15, 0.5),
    )  # fmt: skip
    torch.manual_seed(step)
    tensors = {"w": torch.randn(3, 4), "b": torch.randn(4)}
    return Checkpoint(progress, tensors, {"w/exp_avg": torch.randn(3, 4), "w/step": torch.tensor(7.0)}, tensors)


def flip(path: Path) -> None:
    """Change one bit in the middle of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_a_checkpoint_comes_back_bit_for_bit(tmp_path: Path) -> None:
    saved = checkpoint()
    loaded = load_checkpoint(save_checkpoint(tmp_path / "checkpoints", saved, keep=3))
    assert loaded.progress == saved.progress
    for part in ("weights", "optimizer", "average"):
        before, after = getattr(saved, part), getattr(loaded, part)
        assert before.keys() == after.keys()
        assert all(torch.equal(before[name], after[name]) for name in before)


def test_a_checkpoint_without_an_average_comes_back_too(tmp_path: Path) -> None:
    plain = Checkpoint(Progress(), {"w": torch.ones(2)}, {}, {})
    loaded = load_checkpoint(save_checkpoint(tmp_path, plain, keep=1))
    assert not loaded.optimizer
    assert not loaded.average


def test_only_the_newest_are_kept(tmp_path: Path) -> None:
    for step in (5, 10, 100, 20):
        save_checkpoint(tmp_path, checkpoint(step), keep=2)
    assert [path.name for path in list_checkpoints(tmp_path)] == ["step-0000020", "step-0000100"]


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(
    "harm",
    [flip, lambda path: path.write_bytes(path.read_bytes()[:-1]), Path.unlink],
    ids=["flipped bit", "cut off", "deleted"],
)
def test_damage_to_any_file_is_noticed(tmp_path: Path, name: str, harm: Callable[[Path], object]) -> None:
    path = save_checkpoint(tmp_path, checkpoint(), keep=1)
    harm(path / name)
    with pytest.raises(DataError, match=r"checkpoint step-0000007 is damaged"):
        load_checkpoint(path)


def test_the_damaged_file_is_named(tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path, checkpoint(), keep=1)
    flip(path / "optimizer.safetensors")
    with pytest.raises(DataError, match=r"optimizer\.safetensors does not match its SHA-256"):
        load_checkpoint(path)
    (path / "optimizer.safetensors").unlink()
    with pytest.raises(DataError, match=r"optimizer\.safetensors is missing"):
        load_checkpoint(path)


def test_a_format_of_the_future_is_told(tmp_path: Path) -> None:
    path = save_checkpoint(tmp_path, checkpoint(), keep=1)
    manifest = json.loads((path / "manifest.json").read_text())
    (path / "manifest.json").write_text(json.dumps({**manifest, "format": 99}))
    with pytest.raises(DataError, match="format 99; this heed reads 1"):
        load_checkpoint(path)


def test_the_one_before_a_damaged_checkpoint_is_used_with_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for step in (5, 10):
        path = save_checkpoint(tmp_path, checkpoint(step), keep=2)
    flip(path / "weights.safetensors")
    assert newest_checkpoint(tmp_path).progress.step == 5
    warning = capsys.readouterr().err
    assert warning.startswith("warning: checkpoint step-0000010 is damaged: weights.safetensors")
    # It is out of the way: the training will write its own when it gets there again.
    assert [path.name for path in list_checkpoints(tmp_path)] == ["step-0000005"]
    assert (tmp_path / "damaged-step-0000010").is_dir()


def test_strict_refuses_a_damaged_checkpoint_and_touches_nothing(tmp_path: Path) -> None:
    for step in (5, 10):
        path = save_checkpoint(tmp_path, checkpoint(step), keep=2)
    flip(path / "state.json")
    with pytest.raises(DataError, match=r"state\.json does not match.*Without --strict"):
        newest_checkpoint(tmp_path, strict=True)
    assert len(list_checkpoints(tmp_path)) == 2


def test_no_whole_checkpoint_at_all_is_told(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no whole checkpoint"):
        newest_checkpoint(tmp_path)


def test_a_full_disk_is_one_sentence_and_leaves_the_old_checkpoint_and_no_debris(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_checkpoint(tmp_path, checkpoint(5), keep=1)

    def full(self: Path, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(StorageError, match=r"cannot write a checkpoint: no space left .*needs .* free at .*"):
        save_checkpoint(tmp_path, checkpoint(10), keep=1)
    assert [path.name for path in tmp_path.iterdir()] == ["step-0000005"]
    assert load_checkpoint(tmp_path / "step-0000005").progress.step == 5


@pytest.mark.parametrize("kind", [torch.optim.Adam, torch.optim.AdamW])
def test_an_optimiser_that_takes_its_state_back_goes_on_bit_for_bit(kind: type[torch.optim.Optimizer]) -> None:
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
    load_optimizer_tensors(other_optimizer, names, taken)
    for pair in ((parameters, optimizer), (others, other_optimizer)):
        step(*pair, number=4)
    assert all(torch.equal(one, other) for one, other in zip(parameters, others, strict=True))
