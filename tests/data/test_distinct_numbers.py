"""External sort: byte for byte what NumPy makes."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from heed.data import line_hashes
from heed.data.line_hashes import DTYPE, DistinctNumbers

NUMBERS = st.integers(0, 2**64 - 1) | st.integers(0, 40) | st.integers(2**64 - 40, 2**64 - 1)


def written(numbers: list[int], folder: Path) -> bytes:
    """The file that holds the numbers."""
    collected = DistinctNumbers(folder)
    for number in numbers:
        collected.add(number)
    with (folder / "numbers.npy").open("wb") as file:
        collected.write(file)
    return (folder / "numbers.npy").read_bytes()


def saved_by_numpy(numbers: list[int]) -> bytes:
    file = io.BytesIO()
    np.save(file, np.unique(np.array(numbers, dtype=DTYPE)))
    return file.getvalue()


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("run", [1, 7, 1 << 20])
@given(numbers=st.lists(NUMBERS, max_size=60))
def test_the_file_equals_that_of_numpy_for_the_sorted_distinct_numbers(
    tmp_path: Path, run: int, numbers: list[int]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_hashes, "_RUN", run)
        assert written(numbers, tmp_path) == saved_by_numpy(numbers)


def test_many_runs_of_many_numbers_are_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line_hashes, "_RUN", 1000)
    numbers = np.random.default_rng(0).integers(0, 2**64, 25_500, dtype=np.uint64).tolist()
    numbers += numbers[:5000]
    assert written(numbers, tmp_path) == saved_by_numpy(numbers)
    assert [path.name for path in tmp_path.iterdir()] == ["numbers.npy"]


def test_unwritten_numbers_leave_no_file(tmp_path: Path) -> None:
    collected = DistinctNumbers(tmp_path)
    collected.add(1)
    del collected
    assert list(tmp_path.iterdir()) == []
