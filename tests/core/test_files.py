"""Atomic files and folders, and errors about storage."""

from __future__ import annotations

import errno
import hashlib
import os
import resource
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from heed.core import files
from heed.core.errors import DataError, StorageError, UsageError
from heed.core.files import (
    atomic_folder,
    atomic_write,
    empty_folder,
    first_foreign,
    format_bytes,
    free_bytes,
    is_claimed,
    is_debris,
    is_plain_file,
    remove_debris,
    remove_folder,
    require_room,
    sha256_file,
    sole_writer,
    storage_errors,
)


class Interrupted(BaseException):
    """Like KeyboardInterrupt, which is not an Exception either."""


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_appears_only_when_it_is_whole(tmp_path: Path) -> None:
    target = tmp_path / "model"
    with atomic_write(target) as file:
        file.write(b"\x00\xff")
        assert not target.exists()
    assert target.read_bytes() == b"\x00\xff"
    assert names(tmp_path) == ["model"]


def test_text_is_utf8_with_line_feeds(tmp_path: Path) -> None:
    with atomic_write(tmp_path / "text", "w") as file:
        file.write("ä\nb\n")
    assert (tmp_path / "text").read_bytes() == "ä\nb\n".encode()


@pytest.mark.parametrize("error", [ValueError, Interrupted, OSError])
def test_an_error_inside_leaves_the_old_file_and_no_debris(tmp_path: Path, error: type[BaseException]) -> None:
    target = tmp_path / "model"
    target.write_bytes(b"old")
    with pytest.raises(error), atomic_write(target) as file:
        file.write(b"new")
        raise error
    assert target.read_bytes() == b"old"
    assert names(tmp_path) == ["model"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_an_error_at_the_end_leaves_the_old_file_and_no_debris(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    target = tmp_path / "model"
    target.write_bytes(b"old")
    monkeypatch.setattr(*((os, "fsync") if step == "fsync" else (Path, "replace")), fail)
    with pytest.raises(OSError, match="Input/output error"), atomic_write(target) as file:
        file.write(b"new")
    assert target.read_bytes() == b"old"
    assert names(tmp_path) == ["model"]


def test_data_is_flushed_to_the_device_before_the_rename_and_the_folder_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []
    fsync, replace = os.fsync, Path.replace

    def seen_fsync(descriptor: int) -> None:
        fsync(descriptor)
        events.append("folder" if os.path.isdir(f"/dev/fd/{descriptor}") else "file")  # noqa: PTH112

    def seen_replace(self: Path, target: Path) -> Path:
        events.append("rename")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", seen_fsync)
    monkeypatch.setattr(Path, "replace", seen_replace)
    with atomic_write(tmp_path / "model") as file:
        file.write(b"new")
    assert events == ["file", "rename", "folder"]


def test_permissions_and_links_are_kept(tmp_path: Path) -> None:
    target, link = tmp_path / "model", tmp_path / "link"
    target.write_bytes(b"old")
    target.chmod(0o640)
    link.symlink_to(target)
    with atomic_write(link) as file:
        file.write(b"new")
    assert link.is_symlink() and target.read_bytes() == b"new"
    assert target.stat().st_mode & 0o777 == 0o640


def test_a_new_file_has_the_permissions_of_any_new_file(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    with atomic_write(tmp_path / "atomic"):
        pass
    assert (tmp_path / "atomic").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_the_longest_name_can_be_written(tmp_path: Path) -> None:
    with atomic_write(tmp_path / ("n" * 255)) as file:
        file.write(b"x")
    assert names(tmp_path) == ["n" * 255]


def test_folders_and_devices_are_never_replaced(tmp_path: Path) -> None:
    for place in (tmp_path, Path(os.devnull)):
        with pytest.raises(StorageError, match="not a regular file"), atomic_write(place):
            pass
    assert not Path(os.devnull).is_file()


def test_a_folder_appears_only_when_it_is_whole(tmp_path: Path) -> None:
    target = tmp_path / "checkpoint"
    with atomic_folder(target) as folder:
        (folder / "deep").mkdir()
        (folder / "deep" / "file").write_text("x")
        assert not target.exists()
    assert names(tmp_path) == ["checkpoint"]
    assert (target / "deep" / "file").read_text() == "x"


@pytest.mark.parametrize("error", [ValueError, Interrupted])
def test_an_error_inside_leaves_no_folder(tmp_path: Path, error: type[BaseException]) -> None:
    with pytest.raises(error), atomic_folder(tmp_path / "checkpoint") as folder:
        (folder / "file").write_text("x")
        raise error
    assert names(tmp_path) == []


def test_a_folder_replaces_nothing_not_even_what_appeared_meanwhile(tmp_path: Path) -> None:
    target = tmp_path / "checkpoint"
    with pytest.raises(StorageError, match="already exists"), atomic_folder(target) as folder:
        (folder / "file").write_text("mine")
        target.mkdir()
    assert names(tmp_path) == ["checkpoint"] and names(target) == []
    with pytest.raises(StorageError, match="already exists"), atomic_folder(target):
        raise AssertionError("the block must not run")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    with pytest.raises(StorageError, match="already exists"), atomic_folder(tmp_path / "dangling"):
        pass


def test_checksums_are_those_of_the_bytes(tmp_path: Path) -> None:
    data = bytes(range(256)) * 5_000
    (tmp_path / "file").write_bytes(data)
    assert sha256_file(tmp_path / "file") == hashlib.sha256(data).hexdigest()


def test_free_space_is_that_of_the_nearest_existing_folder(tmp_path: Path) -> None:
    free = free_bytes(tmp_path / "not" / "yet" / "there")
    status = os.statvfs(tmp_path)
    assert abs(free - status.f_bavail * status.f_frsize) < 1_000_000_000


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1000, "1.0 kB"),
        (2_345_000, "2.3 MB"),
        (31_000_000, "31 MB"),
        (999_600_000, "1.0 GB"),
        (5.3e12, "5.3 TB"),
        (5e15, "5000.0 TB"),
    ],
)
def test_formats_of_sizes(number: float, text: str) -> None:
    assert format_bytes(number) == text


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_write_that_the_system_refuses_is_a_storage_error_without_debris(tmp_path: Path) -> None:
    target = tmp_path / "model"
    with pytest.raises(StorageError) as refused, largest_file(1_000_000):  # noqa: SIM117
        with storage_errors("write the checkpoint", needed=31_000_000), atomic_write(target) as file:
            file.write(bytes(2_000_000))
    assert str(refused.value) == (
        "cannot write the checkpoint: the file would exceed the maximum file size "
        "(needs 31 MB, 1.0 MB allowed by ulimit -f). Free some space or choose another --out."
    )
    assert refused.value.exit_code == 74
    assert names(tmp_path) == []


def test_a_full_disk_is_reported_with_needed_and_free_space_and_advice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "free_bytes", lambda path: 2_000_000)
    with pytest.raises(StorageError) as refused, storage_errors("save", 31_000_000, "run", "resume elsewhere"):
        raise OSError(errno.ENOSPC, "No space left on device")
    assert str(refused.value) == (
        "cannot save: no space left on the device (needs 31 MB, 2.0 MB free at run). "
        "Free some space or resume elsewhere."
    )


def test_a_folder_that_does_not_exist_is_a_storage_error(tmp_path: Path) -> None:
    target = tmp_path / "none" / "model"
    with (
        pytest.raises(
            StorageError, match=r"cannot write it: the folder does not exist at .*none/model\. Choose another --out"
        ),
        storage_errors("write it"),
        atomic_write(target),
    ):
        pass


def test_the_folders_around_a_new_folder_are_created_only_on_request(tmp_path: Path) -> None:
    target = tmp_path / "none" / "runs" / "model"
    with pytest.raises(FileNotFoundError), atomic_folder(target):
        pass
    with atomic_folder(target, parents=True) as folder:
        (folder / "file").write_bytes(b"1")
    assert (target / "file").read_bytes() == b"1"


SPACE = "cannot save: no space left on the device. Free some space or choose another --out."
INCOMPLETE = "cannot save: the file could not be written completely. Free some space or choose another --out."


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), SPACE),
        (OSError(errno.EROFS, "x"), "cannot save: the file system is read-only. Choose another --out."),
        (
            PermissionError(errno.EACCES, "x", "/a/b"),
            "cannot save: no permission to write there at /a/b. Choose another --out.",
        ),
        (
            OSError(errno.EDQUOT, "x"),
            "cannot save: the disk quota is exceeded. Free some space or choose another --out.",
        ),
        (Exception("Error while serializing: I/O error: No space left on device (os error 28)"), SPACE),
        (Exception("No space left on device"), SPACE),
        (RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 768 vs 662"), INCOMPLETE),
        (RuntimeError("PytorchStreamWriter failed writing file data/3: file write failed"), INCOMPLETE),
    ],
)
def test_every_library_s_failure_to_write_is_recognised(error: Exception, message: str) -> None:
    with pytest.raises(StorageError) as refused, storage_errors("save"):
        raise error
    assert str(refused.value) == message
    assert refused.value.__cause__ is error


def test_the_cause_of_torch_s_message_is_reported() -> None:
    with pytest.raises(StorageError, match="no space left"), storage_errors("save"):
        try:
            raise OSError(errno.ENOSPC, "No space left on device")
        finally:
            raise RuntimeError("[enforce fail at inline_container.cc:672] . unexpected pos 768 vs 662")


@pytest.mark.parametrize(
    "error",
    [
        ValueError("x"),
        RuntimeError("PytorchStreamReader failed reading zip archive: inline_container.cc:3"),
        BrokenPipeError(errno.EPIPE, "Broken pipe"),
        DataError("bad line"),
    ],
)
def test_other_errors_pass_through(error: Exception) -> None:
    with pytest.raises(type(error)) as seen, storage_errors("save"):
        raise error
    assert seen.value is error


# --- room, debris, one writer ---------------------------------------------------------------------------


def disk(monkeypatch: pytest.MonkeyPatch, total: int, free: int) -> None:
    monkeypatch.setattr(files.shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(total, total - free, free))  # type: ignore[attr-defined]


def test_free_space_is_checked_before_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk(monkeypatch, total=1000, free=100)
    require_room(tmp_path / "new", 100)
    assert names(tmp_path / "new") == []
    with pytest.raises(OSError, match="No space left") as full:
        require_room(tmp_path / "new", 101)
    assert full.value.errno == errno.ENOSPC


def test_a_file_system_without_a_size_is_not_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk(monkeypatch, total=0, free=0)
    require_room(tmp_path, 1_000_000)


def test_a_folder_that_cannot_be_written_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_only(self: Path, exist_ok: bool = True) -> None:
        raise OSError(errno.EROFS, "Read-only file system", str(self))

    monkeypatch.setattr(Path, "touch", read_only)
    with pytest.raises(OSError, match="Read-only file system"):
        require_room(tmp_path, 1)


DEBRIS = ".heed-0123456789ab.tmp"


def test_only_the_debris_of_killed_processes_is_removed(tmp_path: Path) -> None:
    (tmp_path / "checkpoints" / DEBRIS).mkdir(parents=True)
    (tmp_path / "checkpoints" / DEBRIS / "weights").touch()
    (tmp_path / DEBRIS).touch()
    (tmp_path / ".heed-notes.tmp").touch()
    assert is_debris(tmp_path / DEBRIS)
    remove_debris(tmp_path)
    assert names(tmp_path) == [".heed-notes.tmp", "checkpoints"]
    assert names(tmp_path / "checkpoints") == []


def test_a_new_folder_removes_those_that_killed_processes_left_unfinished_but_not_those_of_living_ones(
    tmp_path: Path,
) -> None:
    (tmp_path / DEBRIS / "deep").mkdir(parents=True)
    (tmp_path / DEBRIS / "deep" / "weights").touch()
    (tmp_path / ".heed-notes.tmp").mkdir()
    (tmp_path / ".heed-ba9876543210.tmp").symlink_to(tmp_path / ".heed-notes.tmp")
    with atomic_folder(tmp_path / "living") as living:
        (living / "file").touch()
        with atomic_folder(tmp_path / "other"):
            pass
        assert names(living) == ["file"]
    assert names(tmp_path) == [".heed-ba9876543210.tmp", ".heed-notes.tmp", "living", "other"]


def test_a_folder_that_is_taken_for_abandoned_before_it_is_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[Path] = []

    def take(path: Path, exist_ok: bool = False, make: Callable[[Path], None] = Path.mkdir) -> None:
        make(path)
        taken.append(path)
        if len(taken) == 1:
            path.rmdir()

    monkeypatch.setattr(Path, "mkdir", take)
    with atomic_folder(tmp_path / "folder") as folder:
        assert taken == [folder, folder]
    assert names(tmp_path) == ["folder"]


def test_without_locks_no_folder_is_taken_for_abandoned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr("fcntl.flock", refuse)
    (tmp_path / DEBRIS).mkdir()
    with atomic_folder(tmp_path / "folder"):
        pass
    assert names(tmp_path) == [DEBRIS, "folder"]


def test_a_temporary_name_is_debris(tmp_path: Path) -> None:
    with atomic_write(tmp_path / "file"):
        assert all(map(is_debris, tmp_path.iterdir()))
    with atomic_folder(tmp_path / "folder") as folder:
        assert is_debris(folder)


def test_a_folder_is_removed_whole_or_a_link_to_it(tmp_path: Path) -> None:
    (tmp_path / "folder" / "deep").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "folder")
    remove_folder(tmp_path / "link")
    assert names(tmp_path) == ["folder"]
    remove_folder(tmp_path / "folder")
    assert names(tmp_path) == []


def test_a_folder_that_is_being_removed_has_lost_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "step-7").mkdir()

    def killed(path: Path) -> None:
        raise Interrupted

    monkeypatch.setattr(files.shutil, "rmtree", killed)
    with pytest.raises(Interrupted):
        remove_folder(tmp_path / "step-7")
    assert all(map(is_debris, tmp_path.iterdir()))


def test_the_identifying_file_of_a_folder_is_deleted_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "recipe.toml", "z"):
        (tmp_path / name).touch()
    (tmp_path / "data").mkdir()
    gone: list[str] = []
    delete = files._delete
    monkeypatch.setattr(files, "_delete", lambda path: (gone.append(path.name), delete(path)))
    empty_folder(tmp_path, last="recipe.toml")
    assert names(tmp_path) == []
    assert gone[-1] == "recipe.toml"


def test_one_process_at_a_time_writes_into_a_folder(tmp_path: Path) -> None:
    (tmp_path / DEBRIS).touch()
    with sole_writer(tmp_path):
        assert names(tmp_path) == []
        assert is_claimed(tmp_path)
        (tmp_path / DEBRIS).touch()
        with (
            pytest.raises(UsageError, match=r"another process is training in .* Wait until it ends, or stop it"),
            sole_writer(tmp_path),
        ):
            pytest.fail("two writers")
        assert names(tmp_path) == [DEBRIS], "what the other one is writing is left alone"
    assert not is_claimed(tmp_path)
    with sole_writer(tmp_path):
        pass


def test_without_locks_no_process_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unsupported(descriptor: int, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(files.fcntl, "flock", unsupported)
    with sole_writer(tmp_path), sole_writer(tmp_path):
        assert not is_claimed(tmp_path)


def test_links_and_pipes_are_not_plain_files(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "file").touch()
    assert first_foreign(tmp_path) is None
    for make in (lambda path: path.symlink_to("nowhere"), lambda path: path.symlink_to(tmp_path), os.mkfifo):
        path = tmp_path / "deep" / "strange"
        make(path)
        assert first_foreign(tmp_path) == path
        assert not is_plain_file(path)
        path.unlink()
    assert is_plain_file(tmp_path / "deep" / "file")
    assert not is_plain_file(tmp_path / "deep")
    assert not is_plain_file(tmp_path / "nothing")
