"""Line hashes: exactly the added lines are recognised."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heed.core.errors import DataError
from heed.core.run_files import RunFiles
from heed.core.run_manifest import MANIFEST
from heed.data.line_hashes import LineHasher, LineHashes

ROWS = [("Ein Hund.", "A dog."), ("Eine Katze.", "A cat."), ("Ein Hund.", "One dog.")]


def found(known: LineHashes, row: tuple[str, ...]) -> dict[str, bool]:
    """The kinds of hashes of a row that are among the lines."""
    return {kind: bool(which[0]) for kind, which in known.found([row]).items()}


def test_pairs_are_known_by_each_side_and_as_a_whole() -> None:
    known = LineHashes.of(ROWS)
    assert found(known, ("Ein Hund.", "A dog.")) == {"src": True, "tgt": True, "pair": True}
    assert found(known, ("Ein Hund.", "A cat.")) == {"src": True, "tgt": True, "pair": False}
    assert found(known, ("Ein Hund.", "Dogs.")) == {"src": True, "tgt": False, "pair": False}
    assert found(known, (" Ein Hund. ", "A dog.\n")) == {"src": True, "tgt": True, "pair": True}
    assert found(known, ("Ein hund.", "a dog.")) == {"src": False, "tgt": False, "pair": False}


def test_a_text_has_one_kind() -> None:
    assert found(LineHashes.of([("one",), ("two",)]), ("two",)) == {"tgt": True}


def test_hashes_are_restored_from_a_folder_with_8_bytes_for_each_distinct_line(tmp_path: Path) -> None:
    known = LineHashes.of(ROWS)
    known.write(RunFiles(tmp_path), "hashes")
    again = LineHashes.open(RunFiles(tmp_path), "hashes")
    assert again is not None
    assert sorted(path.name for path in (tmp_path / "hashes").iterdir()) == ["pair.npy", "src.npy", "tgt.npy"]
    assert {kind: len(keys) for kind, keys in again.hashes.items()} == {"src": 2, "tgt": 3, "pair": 3}
    for kind, keys in again.hashes.items():
        np.testing.assert_array_equal(keys, known.hashes[kind])
        assert (np.diff(keys) > 0).all()
        assert (tmp_path / "hashes" / f"{kind}.npy").stat().st_size == 128 + 8 * len(keys)
        assert isinstance(keys.base, np.memmap)


def test_rows_added_one_by_one_give_the_files_of_a_list(tmp_path: Path) -> None:
    hasher = LineHasher(tmp_path)
    for row in [*ROWS, *ROWS]:
        hasher.add(row)
    hasher.write(RunFiles(tmp_path), "passed")
    LineHashes.of(ROWS).write(RunFiles(tmp_path), "listed")
    for kind in ("src", "tgt", "pair"):
        files = [tmp_path / name / f"{kind}.npy" for name in ("passed", "listed")]
        assert files[0].read_bytes() == files[1].read_bytes()


def test_a_missing_folder_gives_none(tmp_path: Path) -> None:
    assert LineHashes.open(RunFiles(tmp_path), "hashes") is None


def test_no_line_is_among_empty_hashes() -> None:
    assert found(LineHashes({"src": np.empty(0, "<u8")}), ("a", "b")) == {"src": False}
    assert LineHashes.of([]).found(ROWS) == {}


def test_a_union_has_the_lines_of_both() -> None:
    both = LineHashes.of(ROWS[:1]).united(LineHashes.of(ROWS[1:]))
    for kind, keys in LineHashes.of(ROWS).hashes.items():
        np.testing.assert_array_equal(both.hashes[kind], keys)


@pytest.mark.parametrize("array", [np.zeros(3), np.zeros((2, 2), "<u8"), np.array([None])])
def test_a_file_of_another_kind_is_refused_and_no_pickle_is_loaded(tmp_path: Path, array: np.ndarray) -> None:
    (tmp_path / "hashes").mkdir()
    np.save(tmp_path / "hashes" / "src.npy", array)
    with pytest.raises(DataError, match=r"is damaged .* without the check for leakage"):
        LineHashes.open(RunFiles(tmp_path), "hashes")


def test_a_truncated_file_is_refused(tmp_path: Path) -> None:
    files = RunFiles(tmp_path)
    LineHashes.of(ROWS).write(files, "hashes")
    path = tmp_path / "hashes" / "src.npy"
    whole = path.read_bytes()
    for message in (r"manifest\.json lists another SHA-256\. Remove .*hashes to evaluate without", "is damaged"):
        for length in (0, 4, 100, len(whole) - 1):
            path.write_bytes(whole[:length])
            with pytest.raises(DataError, match=message):
                LineHashes.open(files, "hashes")
        (tmp_path / MANIFEST).unlink(missing_ok=True)  # as in a folder of an older heed


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@settings(max_examples=50)
@given(st.lists(st.tuples(texts, texts), max_size=20), st.lists(st.tuples(texts, texts), max_size=20))
def test_exactly_the_added_lines_are_known(rows: list[tuple[str, str]], others: list[tuple[str, str]]) -> None:
    known = LineHashes.of([("x", "x"), *rows])
    stripped = {(src.strip(), tgt.strip()) for src, tgt in [("x", "x"), *rows]}
    answers = known.found(others)
    for i, (src, tgt) in enumerate(others):
        assert answers["pair"][i] == ((src.strip(), tgt.strip()) in stripped)
        assert answers["src"][i] == (src.strip() in {pair[0] for pair in stripped})
        assert answers["tgt"][i] == (tgt.strip() in {pair[1] for pair in stripped})
