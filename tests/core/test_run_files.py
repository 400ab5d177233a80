"""Does a run folder notice every change that heed did not make, and stay whole wherever heed is killed?"""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from heed.core import run_files
from heed.core.errors import DataError, StorageError
from heed.core.formats import NewerFormatError
from heed.core.run_files import ChangedError, RunFiles, resume_command
from heed.core.run_manifest import MANIFEST, read_digests
from heed.core.sealed import sealed


@pytest.fixture
def files(tmp_path: Path) -> RunFiles:
    files = RunFiles(tmp_path / "run")
    files.folder.mkdir()
    put(files, "data/a", "first")
    return files


def put(files: RunFiles, name: str, text: str) -> None:
    with files.write(name, "w") as file:
        file.write(text)


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_what_is_written_is_listed_and_read_again(files: RunFiles) -> None:
    put(files, "b", "second")
    assert read_digests(files.folder) == {"b": [sha256("second")], "data/a": [sha256("first")]}
    assert files.read("data/a") == b"first"
    with files.open("b") as file:
        assert file.read() == b"second"
    assert files.changed() == {"b": "", "data/a": ""}


def test_every_flipped_bit_of_a_listed_file_and_of_the_manifest_is_noticed(files: RunFiles) -> None:
    for name, refusal in (("data/a", "was changed after heed wrote it"), (MANIFEST, "it is damaged")):
        whole = (files.folder / name).read_bytes()
        for place in range(len(whole)):
            content = bytearray(whole)
            content[place] ^= 1 << place % 8
            (files.folder / name).write_bytes(content)
            try:
                files.read("data/a")
            except DataError as error:
                assert refusal in str(error)
            else:
                assert name == MANIFEST
                assert json.loads(content) == json.loads(whole)
        (files.folder / name).write_bytes(whole)
    assert files.read("data/a") == b"first"


def test_a_change_is_refused_with_what_to_do_or_used_with_a_warning(
    files: RunFiles, capsys: pytest.CaptureFixture[str]
) -> None:
    (files.folder / "data/a").write_text("other")
    with pytest.raises(ChangedError, match=r"data/a was changed after heed wrote it: .* Copy it again\.$"):
        files.read("data/a", otherwise="Copy it again.")
    with pytest.raises(ChangedError, match=r"Restore the run's original file\.$"):
        files.open("data/a")
    assert files.read_anyway("data/a", "It is used.") == b"other"
    assert capsys.readouterr().err.endswith("lists another SHA-256. It is used.\n")
    files.accept("data/a")
    assert files.read("data/a") == b"other"


def test_what_is_not_listed_is_read_and_not_hashed(files: RunFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    (files.folder / "old").write_text("of an older heed")
    with files.write_page("page", "w") as file:
        file.write("for people")
    files.accept("old")
    monkeypatch.setattr(run_files, "hashlib", None)
    assert files.read("old") == b"of an older heed"
    assert files.read("page") == b"for people"


@pytest.mark.parametrize("killed_before", ["manifest.json", "the file"])
def test_a_folder_stays_whole_when_heed_is_killed_while_it_writes(
    files: RunFiles, killed_before: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old file or the new one is there, and the manifest knows both."""
    replace = Path.replace

    def replace_or_die(new: Path, target: Path) -> Path:
        if (target.name == MANIFEST) == (killed_before == MANIFEST):
            raise KeyboardInterrupt
        return replace(new, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", replace_or_die)
        for name in ("data/a", "b"):
            with pytest.raises(KeyboardInterrupt):
                put(files, name, "second")
    assert files.read("data/a") == b"first"
    assert not files.has("b")
    put(files, "data/a", "second")
    put(files, "data/a", "third")
    assert files.read("data/a") == b"third"
    (files.folder / "data/a").write_text("first")
    with pytest.raises(ChangedError):
        files.read("data/a")


def test_many_writers_at_once_lose_nothing(files: RunFiles) -> None:
    def write(number: int) -> None:
        for turn in range(3):
            put(files, f"data/{number}", f"{number} {turn}")
            files.append("log", f"{number} {turn}\n".encode(), "")

    threads = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(files.changed().values()) == {""}
    assert len(files.changed()) == 8
    assert sorted(files.read("log").decode().split("\n")[:-1]) == [f"{n} {t}" for n in range(6) for t in range(3)]


def test_a_log_that_others_changed_is_continued_with_a_warning(
    files: RunFiles, capsys: pytest.CaptureFixture[str]
) -> None:
    files.append("log", b"a\n", "")
    (files.folder / "log").write_bytes(b"b")
    files.append("log", b"c\n", "It may be wrong.")
    assert "It may be wrong." in capsys.readouterr().err
    assert files.read("log") == b"b\nc\n"


def test_files_are_removed_and_copied_with_their_digests(files: RunFiles, tmp_path: Path) -> None:
    put(files, "data/b", "x")
    put(files, "datum", "x")
    (tmp_path / "other").mkdir()
    other = RunFiles(tmp_path / "other")
    files.copy("data/a", other)
    assert other.changed() == {"data/a": ""}
    files.remove("data")
    assert files.changed() == {"datum": ""}
    assert not files.has("data")
    files.remove("never there")
    (other.folder / "data/a").write_text("other")
    with pytest.raises(ChangedError):
        other.copy("data/a", files)
    assert not files.has("data/a")


def test_a_folder_of_an_older_heed_gets_no_manifest_by_accepting_or_removing(tmp_path: Path) -> None:
    files = RunFiles(tmp_path)
    (tmp_path / "old").write_text("of an older heed")
    files.accept("old")
    files.remove("old")
    files.remove("never there")
    assert not list(tmp_path.iterdir())
    put(files, "new", "x")
    assert files.changed() == {"new": ""}


def test_what_is_wrong_with_each_file_is_told(files: RunFiles) -> None:
    for name in ("b", "c", "d"):
        put(files, name, "x")
    (files.folder / "b").unlink()
    (files.folder / "c").write_text("y")
    (files.folder / "d").unlink()
    os.mkfifo(files.folder / "d")
    assert files.changed() == {"b": "missing", "c": "changed", "d": "not a file of the folder's own", "data/a": ""}


@pytest.mark.parametrize("make", [lambda path: path.symlink_to("nowhere"), os.mkfifo], ids=["link", "pipe"])
@pytest.mark.parametrize("name", ["data/a", MANIFEST, "log"])
def test_nothing_is_written_through_links_or_into_pipes(
    files: RunFiles, make: Callable[[Path], None], name: str
) -> None:
    path = files.folder / name
    path.unlink(missing_ok=True)
    make(path)
    with pytest.raises((StorageError, DataError), match=r"is a link|is not a regular file"):
        put(files, name if name != MANIFEST else "data/a", "x")
    with pytest.raises((StorageError, DataError), match=r"is a link|is not a regular file"):
        files.append(name if name != MANIFEST else "log", b"x\n", "")


def test_nothing_is_written_into_a_folder_that_is_a_link(files: RunFiles, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (files.folder / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError, match=r"link is a link\. Remove it"):
        put(files, "link/a", "x")
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"format": 1, "sha256": {"../../etc/passwd": ["0" * 64]}}, "is not the name of a file inside a folder"),
        ({"format": 1, "sha256": {"data/a": ["x"]}}, r"sha256\.data/a\.0"),
        ({"format": 1, "sha256": {"data/a": []}}, r"sha256\.data/a"),
        ({"format": 1, "sha256": {}, "more": 1}, "more"),
        ({"format": "1"}, "format"),
    ],
)
def test_a_manifest_that_lies_is_refused_though_its_seal_fits(
    files: RunFiles, entries: dict[str, object], message: str
) -> None:
    (files.folder / MANIFEST).write_text(sealed(entries))
    with pytest.raises(DataError, match=message):
        files.changed()


def test_a_manifest_of_a_newer_format_asks_for_a_newer_heed(files: RunFiles) -> None:
    (files.folder / MANIFEST).write_text(sealed({"format": 2, "blake3": {}}))
    with pytest.raises(NewerFormatError, match="Update heed"):
        files.read("data/a")


def test_the_command_that_resumes_a_run_can_be_pasted_into_a_shell() -> None:
    words = shlex.split(resume_command(Path("runs/my model's")))
    assert words == ["heed", "train", "--resume", "runs/my model's"]
    assert resume_command(Path("runs/ende")) == "heed train --resume runs/ende"
