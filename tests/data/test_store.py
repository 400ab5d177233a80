"""Token store: round trips, refusal of damaged files, little memory."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heed.core.errors import DataError, MissingInputError
from heed.data.store import TokenStore, write_store

Rows = list[tuple[list[int], list[int]]]
ROWS: Rows = [([1, 2, 3], [4]), ([], [5, 6]), ([7], [])]


def write(folder: Path, rows: Rows, vocab_size: int = 10) -> TokenStore:
    return write_store(folder, ("src", "tgt"), rows, (vocab_size, vocab_size), {"tokenizer": "abc"})


@pytest.fixture
def store(tmp_path: Path) -> TokenStore:
    return write(tmp_path / "store", ROWS)


sentence = st.lists(st.integers(0, 70_000), max_size=5)


@settings(max_examples=30)
@given(st.lists(st.tuples(sentence, sentence), max_size=8))
def test_a_store_returns_the_rows_that_were_written(tmp_path_factory: pytest.TempPathFactory, rows: Rows) -> None:
    store = write(tmp_path_factory.mktemp("stores") / "store", rows, vocab_size=70_001)
    assert len(store) == len(rows)
    assert store.sides == ("src", "tgt")
    for k, side in enumerate(store.sides):
        assert [store.row(side, i).tolist() for i in range(len(rows))] == [row[k] for row in rows]
        assert store.lengths(side).tolist() == [len(row[k]) for row in rows]
        assert store.lengths(side).dtype == np.int32


def test_a_store_can_have_one_side(tmp_path: Path) -> None:
    store = write_store(tmp_path / "store", ["tgt"], [([1, 2],), ([3],)], [9], {})
    assert [store.row("tgt", i).tolist() for i in range(2)] == [[1, 2], [3]]


def test_rows_longer_than_the_writers_buffer_are_whole(tmp_path: Path) -> None:
    rows = [([i % 10] * 30_000, [i % 10]) for i in range(7)]
    store = write(tmp_path / "store", rows)
    assert [store.row("src", i).tolist() for i in range(7)] == [row[0] for row in rows]


@pytest.mark.parametrize(("vocab_size", "dtype"), [(65_536, "uint16"), (65_537, "uint32")])
def test_ids_take_two_bytes_if_the_vocabulary_allows(tmp_path: Path, vocab_size: int, dtype: str) -> None:
    store = write(tmp_path / "store", [([vocab_size - 1], [0])], vocab_size)
    assert store.row("src", 0).dtype == dtype
    assert store.row("src", 0).tolist() == [vocab_size - 1]


def test_the_manifest_keeps_the_callers_fingerprint(store: TokenStore) -> None:
    assert TokenStore.open(store.folder).manifest.fingerprint == {"tokenizer": "abc"}


def test_a_row_outside_the_store_is_an_error(store: TokenStore) -> None:
    with pytest.raises(IndexError):
        store.row("src", 3)


def test_rows_cannot_be_changed(store: TokenStore) -> None:
    with pytest.raises(ValueError, match="read-only"):
        store.row("src", 0)[0] = 1


def test_rows_remain_readable_after_their_pages_are_released(
    store: TokenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("heed.data.store._LEFT_MAPPED", 0)
    row = store.row("src", 0)
    store.release_pages()
    assert row.tolist() == [1, 2, 3]


@pytest.mark.parametrize("wrong", [-1, 10])
def test_an_id_outside_the_vocabulary_is_refused_and_leaves_nothing(tmp_path: Path, wrong: int) -> None:
    with pytest.raises(DataError, match=rf"tgt side has the token id {wrong}, but its vocabulary has 10 tokens"):
        write(tmp_path / "store", [([1], [wrong])])
    assert list(tmp_path.iterdir()) == []


def test_an_error_while_rows_are_read_leaves_nothing(tmp_path: Path) -> None:
    def rows() -> Iterator[tuple[list[int], ...]]:
        yield [1], [2]
        raise DataError("line 2 is wrong")

    with pytest.raises(DataError, match="line 2"):
        write_store(tmp_path / "store", ("src", "tgt"), rows(), (10, 10), {})
    assert list(tmp_path.iterdir()) == []


def test_a_missing_store_is_reported(tmp_path: Path) -> None:
    with pytest.raises(MissingInputError, match="not a token store"):
        TokenStore.open(tmp_path / "store")


@pytest.mark.parametrize("name", ["src.tok", "src.off", "tgt.tok", "tgt.off"])
def test_verify_detects_a_flipped_bit_in_any_file(store: TokenStore, name: str) -> None:
    path = store.folder / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match=name):
        TokenStore.open(store.folder, verify=True)


@pytest.mark.parametrize("name", ["src.tok", "src.off", "tgt.tok", "tgt.off"])
@pytest.mark.parametrize("extra", [-1, 1])
def test_a_file_of_the_wrong_size_is_detected_without_verify(store: TokenStore, name: str, extra: int) -> None:
    path = store.folder / name
    content = path.read_bytes()
    path.write_bytes(content[:extra] if extra < 0 else content + b"x")
    with pytest.raises(DataError, match=rf"{name} has {len(content) + extra} bytes, but {len(content)} were written"):
        TokenStore.open(store.folder)


@pytest.mark.parametrize("name", ["src.tok", "tgt.off"])
def test_a_missing_file_is_detected(store: TokenStore, name: str) -> None:
    (store.folder / name).unlink()
    with pytest.raises(DataError, match=f"{name} is missing"):
        TokenStore.open(store.folder)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("format", "heed-tokens-2", "format"),
        ("num_rows", 2, "does not fit 2 rows"),
        ("num_rows", "3", "num_rows"),
        ("num_rows", -1, "num_rows"),
        ("sides", {"../src": {}}, "sides"),
        ("sides", {"src": {}}, r"sides\.src"),
        ("surprise", 1, "surprise"),
    ],
)
def test_a_wrong_manifest_is_refused(store: TokenStore, key: str, value: object, message: str) -> None:
    path = store.folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | {key: value}), encoding="utf-8")
    with pytest.raises(DataError, match=message):
        TokenStore.open(store.folder)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff\xfe"])
def test_a_manifest_that_is_not_a_json_object_is_refused(store: TokenStore, content: bytes) -> None:
    (store.folder / "manifest.json").write_bytes(content)
    with pytest.raises(DataError, match=r"manifest\.json"):
        TokenStore.open(store.folder)


def test_descending_offsets_are_refused(store: TokenStore) -> None:
    np.array([0, 4, 3, 4], dtype="<u8").tofile(store.folder / "src.off")
    with pytest.raises(DataError, match="not ascending"):
        TokenStore.open(store.folder).lengths("src")


def test_writing_and_reading_many_rows_takes_little_memory(tmp_path: Path) -> None:
    num_rows, row = 50_000, (list(range(300, 380)), list(range(400, 500)))
    tracemalloc.start()
    try:
        rows = (row for _ in range(num_rows))
        store = write_store(tmp_path / "store", ("src", "tgt"), rows, (1000, 1000), {})
        written = tracemalloc.get_traced_memory()[1]
        tracemalloc.reset_peak()
        total = sum(int(store.row("tgt", i)[-1]) for i in range(0, num_rows, 100))
        read = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert total == 499 * num_rows // 100
    assert sum(path.stat().st_size for path in store.folder.iterdir()) > 18_000_000
    assert written < 8_000_000
    assert read < 2_000_000
