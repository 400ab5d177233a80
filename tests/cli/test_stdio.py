"""Tests of reading stdin: lines as they arrive, in whatever blocks."""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heed.cli import stdio
from heed.cli.stdio import groups_as_they_come
from heed.core.errors import DataError


class Stdin:
    """As much of a text stream as is needed."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor

    def fileno(self) -> int:
        return self.descriptor


def groups(content: bytes, max_lines: int = 1024, errors: str = "strict") -> list[list[str]]:
    """The groups that are read from a file with this content."""
    with tempfile.TemporaryFile() as file, pytest.MonkeyPatch.context() as patch:
        file.write(content)
        file.seek(0)
        patch.setattr(sys, "stdin", Stdin(file.fileno()))
        return list(groups_as_they_come(errors, max_lines))


@given(st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"])), max_size=20))
def test_only_line_feeds_end_lines(lines: list[str]) -> None:
    content = "".join(line + "\n" for line in lines).encode()
    expected = [line.removesuffix("\r") for line in lines]
    if expected:
        expected[0] = expected[0].removeprefix("\ufeff")
    assert [line for group in groups(content, max_lines=3) for line in group] == expected


def test_groups_are_limited_and_never_empty() -> None:
    assert [len(group) for group in groups(b"x\n" * 7, max_lines=3)] == [3, 3, 1]
    assert groups(b"") == []


def test_a_line_longer_than_a_block_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stdio, "_BLOCK_BYTES", 5)
    assert groups("äöü ".encode() * 50 + b"\nz")[-2:] == [["äöü " * 50], ["z"]]


def test_lines_before_invalid_utf8_are_yielded_first(pipe: int) -> None:
    os.write(pipe, b"a\nb\n\xff\nc\n")
    os.close(pipe)
    reading = groups_as_they_come()
    assert next(reading) == ["a", "b"]
    with pytest.raises(DataError, match=r"standard input:3: byte 1 is not valid UTF-8 \(0xFF\)"):
        next(reading)
    assert groups(b"a\nb\n\xff\nc\n", errors="replace") == [["a", "b", "\ufffd", "c"]]


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The writing end of what stdin is."""
    reader, writer = os.pipe()
    monkeypatch.setattr(sys, "stdin", Stdin(reader))
    yield writer
    os.close(reader)


def test_a_line_is_yielded_before_the_next_one_is_written(pipe: int) -> None:
    reading = groups_as_they_come()
    for line in (b"one\n", b"two\n"):
        os.write(pipe, line)
        assert next(reading) == [line.decode().strip()]
    os.write(pipe, b"no end")
    os.close(pipe)
    assert list(reading) == [["no end"]]


def test_a_line_written_in_pieces_is_one_line(pipe: int) -> None:
    def write() -> None:
        for piece in (b"on", b"e\ntw", "ö".encode()[:1], "ö".encode()[1:] + b"\n"):
            os.write(pipe, piece)
            time.sleep(0.03)
        os.close(pipe)

    thread = threading.Thread(target=write)
    thread.start()
    assert [line for group in groups_as_they_come() for line in group] == ["one", "twö"]
    thread.join()


def test_lines_in_quick_succession_form_one_group(pipe: int) -> None:
    for number in range(50):
        os.write(pipe, f"{number}\n".encode())
    assert len(next(groups_as_they_come())) == 50
    os.close(pipe)
