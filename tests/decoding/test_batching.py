"""Batches are halved where memory runs out, and only there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
import torch

from heed.core.errors import HeedError
from heed.decoding.scoring import halve_on_oom, warn_of_halving


@pytest.fixture(autouse=True)
def no_warning_yet() -> Iterator[None]:
    warn_of_halving.cache_clear()
    yield
    warn_of_halving.cache_clear()


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        torch.cuda.OutOfMemoryError("CUDA out of memory."),
        RuntimeError("[enforce fail at alloc_cpu.cpp:121] DefaultCPUAllocator: can't allocate memory: you tried to"),
    ],
)
def test_a_batch_that_does_not_fit_is_halved_in_order_with_one_warning(
    error: BaseException, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes: list[int] = []

    def work(items: Sequence[int]) -> list[int]:
        sizes.append(len(items))
        if len(items) > 3:
            raise error
        return [10 * item for item in items]

    assert halve_on_oom(range(9), work) == [10 * item for item in range(9)]
    assert halve_on_oom(range(4), work) == [0, 10, 20, 30]
    assert sizes == [9, 4, 2, 2, 5, 2, 3, 4, 2, 2]
    assert capsys.readouterr().err.count("out of memory for a whole batch") == 1


def test_a_single_line_that_does_not_fit_is_an_error_with_advice() -> None:
    def work(items: Sequence[int]) -> list[int]:
        raise MemoryError

    with pytest.raises(HeedError, match="split it into sentences"):
        halve_on_oom([1, 2], work)


def test_the_error_of_pytorch_itself_is_recognised() -> None:
    with pytest.raises(HeedError, match="out of memory for a single line"):
        halve_on_oom([1], lambda items: [torch.empty(1 << 60, dtype=torch.uint8)])


def test_other_errors_pass_through() -> None:
    def work(items: Sequence[int]) -> list[int]:
        raise RuntimeError("The size of tensor a (3) must match the size of tensor b (4)")

    with pytest.raises(RuntimeError, match="size of tensor"):
        halve_on_oom([1, 2], work)
