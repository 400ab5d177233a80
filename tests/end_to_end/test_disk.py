"""Full and read-only disks: one message, an intact old checkpoint, and no incomplete files."""

from __future__ import annotations

import math
import os
import resource
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from command import call
from toy import TINY, flags, prepared, write_pairs

from heed.core.files import is_debris
from heed.training.checkpoints import list_checkpoints, newest_checkpoint

NOBODY = 65534
KEYS = {**TINY, "training.average": "none", "training.max_steps": 8, "training.save_every": 4, "data.max_valid": 3}


@contextmanager
def file_size_limit(size: int) -> Iterator[None]:
    """No file of this process may become larger than so many bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_checkpoint_that_does_not_fit_is_reported_and_training_resumes_from_the_one_before(tmp_path: Path) -> None:
    """The optimiser has no state before the first update, so the first checkpoint fits and the next one does not."""
    src, tgt = write_pairs(tmp_path)
    shapes = prepared(tmp_path, "like").shapes.values()
    size_of_weights = 4 * sum(math.prod(shape) for shape in shapes)
    folder = tmp_path / "run"
    words = ["train", "--task", "translation", "--src", src, "--tgt", tgt, *flags(KEYS), "--out", folder]
    with file_size_limit(3 * size_of_weights // 2):
        result = call(*words, "--quiet")
    assert result.code == 74
    assert result.err.startswith(
        "error: cannot write a checkpoint: the file would exceed the maximum file size (needs "
    )
    assert "kB, " in result.err
    advice = " allowed by ulimit -f). Free some space or move the run to another disk; --resume continues from "
    assert advice in result.err
    assert result.err.count("\n") == 1
    assert [path.name for path in list_checkpoints(folder / "checkpoints")] == ["step-0000000"]
    assert newest_checkpoint(folder / "checkpoints", strict=True).progress.step == 0
    assert not any(map(is_debris, folder.rglob("*")))
    assert call("train", "--resume", folder, "--quiet").code == 0
    assert newest_checkpoint(folder / "checkpoints", strict=True).progress.step == 8


@contextmanager
def without_rights() -> Iterator[Path]:
    """A folder, and a user other than root, whom no permissions restrict."""
    with tempfile.TemporaryDirectory(prefix="heed-") as name:
        if os.geteuid() != 0:
            yield Path(name)
            return
        os.chown(name, NOBODY, NOBODY)
        try:
            os.seteuid(NOBODY)
            yield Path(name)
        finally:
            os.seteuid(0)


def permit(folder: Path, mode: int) -> None:
    for path in [folder, *folder.rglob("*")]:
        path.chmod(mode | (0o111 if path.is_dir() else 0))


@pytest.mark.skipif(sys.platform == "win32", reason="no POSIX permissions")
def test_a_read_only_run_is_refused_before_anything_is_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    with without_rights() as place:
        monkeypatch.chdir(place)
        src, tgt = write_pairs(place)
        words = ["train", "--task", "translation", "--src", src, "--tgt", tgt, *flags(KEYS), "--quiet", "--out"]
        (place / "locked").mkdir(mode=0o555)
        new = call(*words, place / "locked" / "run")
        assert new.code == 74
        assert new.err.startswith("error: cannot write the run: no permission to write there at ")
        folder = place / "run"
        assert call(*words, folder).code == 0
        recipe = folder / "recipe.toml"
        recipe.write_text(recipe.read_text().replace("max_steps = 8", "max_steps = 12"))
        before = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
        permit(folder, 0o444)
        try:
            resumed = call("train", "--resume", folder, "--quiet")
        finally:
            with suppress(FileNotFoundError):
                permit(folder, 0o644)
        assert resumed.code == 74
        warning, error = resumed.err.splitlines()
        assert "recipe.toml was changed after heed wrote it" in warning
        assert error.startswith("error: cannot write a checkpoint: no permission to write there at ")
        assert {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()} == before
