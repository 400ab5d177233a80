"""Translated files for download: their names, and how long they are kept."""

from __future__ import annotations

import pytest

from heed.serve import downloads as module
from heed.serve.downloads import Downloads


def test_a_file_expires() -> None:
    now = [0.0]
    downloads = Downloads(clock=lambda: now[0])
    first = downloads.put("a.txt", "de", b"1")
    now[0] = module.MAX_HELD_SECONDS / 2
    second = downloads.put("b.txt", "de", b"2")
    assert downloads.get(first) is not None
    now[0] = module.MAX_HELD_SECONDS + 1
    assert downloads.get(first) is None
    assert downloads.get(second) is not None


def test_the_oldest_files_are_dropped_to_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_HELD_BYTES", 10)
    downloads = Downloads()
    names = [downloads.put("a.txt", "de", b"1234") for _ in range(3)]
    assert [downloads.get(name) is not None for name in names] == [False, True, True]


@pytest.mark.parametrize("name", ["../../etc/passwd", "C:\\x\\y.txt", 'a"\r\nX: y.html', ".htaccess", "é.txt", ""])
def test_names_are_sanitised(name: str) -> None:
    key = Downloads().put(name, "de", b"")
    assert key.isascii()
    assert not set('/\\"\r\n') & set(key)


@pytest.mark.parametrize(("name", "expected"), [("a.txt", "a.de.txt"), ("x/y.tar.csv", "y.tar.de.csv"), ("a", "a.de")])
def test_a_file_is_named_with_the_target_language(name: str, expected: str) -> None:
    downloads = Downloads()
    file = downloads.get(downloads.put(name, "de", b""))
    assert file is not None
    assert (file.name, file.title) == (expected, expected)


def test_a_name_in_another_script_is_kept_beside_one_in_ascii() -> None:
    downloads = Downloads()
    key = downloads.put("моё письмо\u202e\r\n.docx", "de", b"")
    file = downloads.get(key)
    assert file is not None
    assert (file.name, file.title) == ("_.de.docx", "моё письмо.de.docx")
    assert key.endswith("._.de.docx")
