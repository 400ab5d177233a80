"""Manifests: every change of a folder is detected, and newer formats are distinguished from damage."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from heed.core.errors import DataError
from heed.core.formats import NewerFormatError
from heed.core.own_files import read_own
from heed.core.sealed import seal_of
from heed.training.manifest import MANIFEST, checked_manifest, write_manifest

NAMES = ("a", "b")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in NAMES:
        (tmp_path / name).write_bytes(name.encode() * 100)
    write_manifest(tmp_path, NAMES, {"torch": "2"})
    return tmp_path


def sealed(folder: Path, **changes: Any) -> None:
    """Write another manifest whose seal fits."""
    entries = {**json.loads((folder / MANIFEST).read_bytes()), **changes}
    del entries["seal"]
    (folder / MANIFEST).write_text(json.dumps({**entries, "seal": seal_of(entries)}))


def test_an_unchanged_folder_is_accepted(folder: Path) -> None:
    assert checked_manifest(folder, NAMES).made_with == {"torch": "2"}


def test_every_flipped_bit_is_detected(folder: Path) -> None:
    """Including the format's number: a changed number is damage, not a newer format."""
    for name in (*NAMES, MANIFEST):
        whole = (folder / name).read_bytes()
        for position in range(0, len(whole), 1 if name == MANIFEST else 17):
            for bit in range(8):
                content = bytearray(whole)
                content[position] ^= 1 << bit
                (folder / name).write_bytes(content)
                try:
                    checked_manifest(folder, NAMES)
                except DataError as error:
                    assert not isinstance(error, NewerFormatError)
                else:
                    assert name == MANIFEST
                    assert json.loads(content) == json.loads(whole), "only white space may change"
        (folder / name).write_bytes(whole)


def test_a_sealed_manifest_of_a_newer_format_asks_for_a_newer_version(folder: Path) -> None:
    sealed(folder, format=2, compression="zstd")
    with pytest.raises(NewerFormatError, match="Update heed"):
        checked_manifest(folder, NAMES)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"sha256": {"a": "0" * 64, "b": "0" * 64}}, "a does not match its SHA-256"),
        ({"sha256": {"a": "0" * 64, "../b": "0" * 64}}, "differ on the file '../b'"),
        ({"sha256": {"a": "0" * 64, "/etc/passwd": "0" * 64}}, "differ on the file '/etc/passwd'"),
        ({"sha256": {"a": "0" * 64}}, "differ on the file 'b'"),
        ({"sha256": {"a": "x", "b": "y"}}, "'sha256.a': String should match"),
        ({"sha256": ["a", "b"]}, "'sha256': Input should be a valid dictionary"),
        ({"made_with": {"torch": 2}}, "'made_with.torch': Input should be a valid string"),
        ({"more": 1}, "'more': Extra inputs are not permitted"),
        ({"format": "1"}, "got '1'"),
    ],
)  # fmt: skip
def test_a_false_manifest_is_refused_although_its_seal_is_valid(folder: Path, changes: Any, message: str) -> None:
    sealed(folder, **changes)
    with pytest.raises(DataError) as refused:
        checked_manifest(folder, NAMES)
    assert message in str(refused.value)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"1", b"null", b"\xff\xfe", b"[" * 100_000, b'{"seal": 1}'])
def test_other_content_instead_of_a_manifest_is_refused(folder: Path, content: bytes) -> None:
    (folder / MANIFEST).write_bytes(content)
    with pytest.raises(DataError, match=rf"{MANIFEST} (is not JSON|does not match its seal)"):
        checked_manifest(folder, NAMES)


@pytest.mark.parametrize("name", [*NAMES, MANIFEST])
def test_links_pipes_and_missing_files_are_refused(folder: Path, name: str, tmp_path_factory: Any) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere") / name
    elsewhere.write_bytes((folder / name).read_bytes())
    (folder / name).unlink()
    with pytest.raises(DataError, match=f"{name} is missing"):
        checked_manifest(folder, NAMES)
    (folder / name).symlink_to(elsewhere)
    with pytest.raises(DataError, match=f"{name} is a link"):
        checked_manifest(folder, NAMES)
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(DataError, match=f"{name} is not a regular file"):
        checked_manifest(folder, NAMES)


def test_a_json_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_bytes(b" " * 1_000_001)
    with pytest.raises(DataError, match=r"state\.json is larger than 1\.0 MB"):
        read_own(tmp_path, "state.json", 1_000_000)
