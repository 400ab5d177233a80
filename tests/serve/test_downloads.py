"""Are translated files held for as long, and for as many bytes, as they may be?"""

from __future__ import annotations

import pytest

from heed.serve import downloads as held
from heed.serve.downloads import Downloads


def test_a_file_is_held_for_its_time() -> None:
    now = [0.0]
    downloads = Downloads(clock=lambda: now[0])
    first = downloads.put("a.txt", b"1")
    now[0] = held.MAX_HELD_SECONDS / 2
    second = downloads.put("b.txt", b"2")
    assert downloads.get(first) is not None
    now[0] = held.MAX_HELD_SECONDS + 1
    assert downloads.get(first) is None
    assert downloads.get(second) is not None


def test_the_oldest_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held, "MAX_HELD_BYTES", 10)
    downloads = Downloads()
    names = [downloads.put("a.txt", b"1234") for _ in range(3)]
    assert [downloads.get(name) is not None for name in names] == [False, True, True]


@pytest.mark.parametrize("name", ["../../etc/passwd", "C:\\x\\y.txt", 'a"\r\nX: y.html', ".htaccess", "é.txt", ""])
def test_names_are_made_harmless(name: str) -> None:
    key = Downloads().put(name, b"")
    assert key.isascii()
    assert not set('/\\"\r\n') & set(key)
