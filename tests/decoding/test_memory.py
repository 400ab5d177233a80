"""Is a batch done in parts where memory does not suffice, and is nothing else taken for that?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
import torch

from heed.core.errors import HeedError
from heed.decoding.memory import in_parts_that_fit, tell


@pytest.fixture(autouse=True)
def untold() -> Iterator[None]:
    tell.cache_clear()
    yield
    tell.cache_clear()


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.cuda.OutOfMemoryError("CUDA out of memory."),
        RuntimeError("[enforce fail at alloc_cpu.cpp:121] DefaultCPUAllocator: can't allocate memory: you tried to"),
    ],
)
def test_what_does_not_fit_is_done_in_parts_in_order_and_told_once(
    error: BaseException, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes: list[int] = []

    def work(items: Sequence[int]) -> list[int]:
        sizes.append(len(items))
        if len(items) > 3:
            raise error
        return [10 * item for item in items]

    assert in_parts_that_fit(range(9), work) == [10 * item for item in range(9)]
    assert in_parts_that_fit(range(4), work) == [0, 10, 20, 30]
    assert sizes == [9, 4, 2, 2, 5, 2, 3, 4, 2, 2]
    assert capsys.readouterr().err.count("memory does not suffice") == 1


def test_one_line_that_does_not_fit_is_an_error_with_advice() -> None:
    def work(items: Sequence[int]) -> list[int]:
        raise MemoryError

    with pytest.raises(HeedError, match="cut it into sentences"):
        in_parts_that_fit([1, 2], work)


def test_pytorch_itself_says_so_in_these_words() -> None:
    with pytest.raises(HeedError, match="memory does not suffice"):
        in_parts_that_fit([1], lambda items: [torch.empty(1 << 60, dtype=torch.uint8)])


def test_other_errors_pass_through() -> None:
    def work(items: Sequence[int]) -> list[int]:
        raise RuntimeError("The size of tensor a (3) must match the size of tensor b (4)")

    with pytest.raises(RuntimeError, match="size of tensor"):
        in_parts_that_fit([1, 2], work)
