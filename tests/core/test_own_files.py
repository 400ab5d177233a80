"""Is only what lies in a folder itself ever opened, and never more of it than expected?"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from heed.core.errors import DataError, MissingInputError, StorageError
from heed.core.own_files import open_own, open_to_append, own_path, read_own


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "run" / "data").mkdir(parents=True)
    (tmp_path / "run" / "data" / "a").write_bytes(b"inside")
    (tmp_path / "outside").write_bytes(b"outside")
    return tmp_path / "run"


def test_a_file_is_read_and_the_folder_itself_may_be_a_link(folder: Path) -> None:
    (folder.parent / "link").symlink_to(folder)
    for place in (folder, folder.parent / "link"):
        assert read_own(place, "data/a") == b"inside"
        assert own_path(place, "data/a") == place / "data" / "a"


def test_a_link_at_any_place_of_a_name_is_refused(folder: Path) -> None:
    (folder / "file").symlink_to(folder.parent / "outside")
    (folder / "inner").symlink_to("data/a")
    (folder / "elsewhere").symlink_to("data")
    (folder / "dangling").symlink_to("nothing")
    for name, link in (("file", "file"), ("inner", "inner"), ("elsewhere/a", "elsewhere"), ("dangling", "dangling")):
        with pytest.raises(DataError, match=rf"run/{link} is a link; heed uses nothing outside the folder"):
            read_own(folder, name)
    for name in ("file", "dangling"):
        with pytest.raises(StorageError, match=f"run/{name}: it is a link"):
            open_to_append(folder, name)
    assert (folder.parent / "outside").read_bytes() == b"outside"


def test_a_pipe_a_device_and_a_folder_are_refused_without_waiting(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    for name in ("pipe", "data"):
        with pytest.raises(DataError, match=rf"run/{name} is not a regular file"):
            read_own(folder, name)
    with pytest.raises(DataError, match="/dev/zero is not a regular file"):
        open_own(Path("/dev"), "zero")
    with pytest.raises(StorageError, match="run/pipe: it is not a regular file"):
        open_to_append(folder, "pipe")


@pytest.mark.parametrize("name", ["../outside", "data/../../outside", "/etc/passwd", "", ".", "a\0b"])
def test_a_name_that_leads_out_of_the_folder_is_refused(folder: Path, name: str) -> None:
    with pytest.raises(DataError, match="is not the name of a file inside a folder"):
        read_own(folder, name)


def test_a_missing_and_a_forbidden_file_are_told_apart(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("b", "data/b", "nothing/a"):
        with pytest.raises(MissingInputError, match=rf"run/{name} does not exist"):
            read_own(folder, name)
    with pytest.raises(MissingInputError, match=r"data/a/b cannot be read: Not a directory"):
        read_own(folder, "data/a/b")

    def denied(*_: object, **__: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", denied)
    with pytest.raises(MissingInputError, match="cannot be read: Permission denied"):
        read_own(folder, "data/a")


def test_a_file_that_is_too_large_is_refused_before_it_is_read(folder: Path) -> None:
    with (folder / "sparse").open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(DataError, match=r"run/sparse is larger than 16 MB, so it is not the file that heed wrote"):
        read_own(folder, "sparse")
    assert read_own(folder, "data/a", 6) == b"inside"
    with pytest.raises(DataError, match="larger than 5 bytes"):
        read_own(folder, "data/a", 5)


def test_a_line_that_a_crash_cut_off_is_ended_before_more_is_appended(folder: Path) -> None:
    for name, content in (("new", None), ("whole", "a\n"), ("cut off", "a")):
        if content is not None:
            (folder / name).write_text(content)
        with open_to_append(folder, name) as log:
            log.write("ä\n")
        assert (folder / name).read_text(encoding="utf-8") == ("a\nä\n" if content else "ä\n")
