"""CUDA graphs of losses: a GPU replays the kernels of a loss and its gradients, which were recorded once.

Starting a kernel from Python takes tens of microseconds, longer than most kernels of a small model run. A graph
starts all of them at once. It is recorded for one shape of batch, reads its input at fixed addresses, and adds to
gradients at fixed addresses. So batches are padded to one of few shapes, which costs about a tenth of the arithmetic.

The first batch of a shape is computed as usual, because many shapes never come again; at the second one the graph is
recorded. A model whose kernels cannot be recorded is computed as usual, too.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heed.data.batch import Batch, Shape
from heed.nn.device import is_out_of_memory
from heed.nn.dropout_keys import DropoutKeys

MOST_GRAPHS = 256
"""Graphs that are kept. Each has memory for its kernels and its input; all share that of what kernels compute."""
STEPS = 4
"""Padded sizes of positions for each power of two; rows have twice as many."""

Compute = Callable[[Batch, DropoutKeys, Tensor], Float[Tensor, " 2"]]
"""Adds the gradients of a batch's summed loss, divided by a number, to those of the model; (loss, -log p)."""


class Recorder:
    """Records kernels into graphs, which share memory: each overwrites what another has computed."""

    def __init__(self, device: torch.device) -> None:
        self._pool = torch.cuda.graph_pool_handle()
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]

    def record(self, work: Callable[[], None]) -> Callable[[], None]:
        """Do the work, which loads its kernels, and record it; returns a function that does it again.

        Raises RuntimeError if it cannot be recorded.
        """
        graph, before = torch.cuda.CUDAGraph(), torch.cuda.current_stream()
        self._stream.wait_stream(before)
        try:
            with torch.cuda.stream(self._stream):
                work()
                torch.cuda.empty_cache()  # which is impossible during a recording
                graph.capture_begin(pool=self._pool, capture_error_mode="thread_local")
                try:
                    work()
                except BaseException:
                    with suppress(RuntimeError):
                        graph.capture_end()
                    raise
                graph.capture_end()
        finally:
            before.wait_stream(self._stream)
        return graph.replay


class Replayer:
    """Computes the gradients of batches by replaying graphs."""

    def __init__(self, compute: Compute, recorder: Recorder, model: Any) -> None:
        """`model` is the one that `compute` uses."""
        self._compute = compute
        self._recorder = recorder
        self._model = model
        self.problem = ""
        """Why kernels could not be recorded, if so."""
        self._met: set[Shape] = set()
        self._too_large: set[Shape] = set()
        self._recorded: dict[Shape, _Recorded] = {}

    def add_gradients(self, batch: Batch, keys: DropoutKeys, divisor: float) -> Float[Tensor, " 2"] | None:
        """The result of `compute`; None if nothing was done and the batch has to be computed as usual."""
        shape = padded_shape(batch.shape, self._model.config.max_positions)
        recorded = self._recorded.get(shape)
        if recorded is not None:
            recorded.read(batch, keys, divisor)
            recorded.replay()
            return recorded.sums.clone()
        is_new = shape not in self._met
        if is_new or shape in self._too_large or len(self._recorded) == MOST_GRAPHS:
            self._met.add(shape)
            return None
        return self._record(shape, batch, keys, divisor)

    def _record(self, shape: Shape, batch: Batch, keys: DropoutKeys, divisor: float) -> Float[Tensor, " 2"]:
        recorded = _Recorded(batch.empty(shape))
        recorded.read(batch, keys, divisor)
        try:
            recorded.record(self._compute, self._recorder)
            recorded.buffers = list(self._model.buffers())
            self._recorded[shape] = recorded
        except RuntimeError as error:
            if not recorded.num_computed:
                raise
            if is_out_of_memory(error):  # only the recording has failed
                self._too_large.add(shape)
            else:
                self.problem = str(error).split("\n")[0]
        return recorded.sums.clone()


class _Recorded:
    """The graph of one shape, with its input and output."""

    replay: Callable[[], None]
    buffers: list[Tensor]
    """Tensors that the graph reads and that the model may replace, such as a table of positions that has to grow."""

    def __init__(self, batch: Batch) -> None:
        device = batch.rows.device
        self.batch = batch
        self.keys: Int[Tensor, " B"] = torch.zeros_like(batch.rows)
        self.divisor = torch.ones((), dtype=torch.float32, device=device)
        self.sums = torch.zeros(2, dtype=torch.float64, device=device)
        self.num_computed = 0

    def read(self, batch: Batch, keys: DropoutKeys, divisor: float) -> None:
        """Copy a batch to the addresses that the graph reads."""
        batch.write(self.batch)
        self.keys[: len(keys.keys)] = keys.keys
        self.divisor.fill_(divisor)

    def record(self, compute: Compute, recorder: Recorder) -> None:
        """Compute the gradients of the batch, and record how."""
        keys = DropoutKeys(self.keys, step=None)  # numbers that change with each update must not be recorded

        def work() -> None:
            self.sums.copy_(compute(self.batch, keys, self.divisor))
            self.num_computed += 1

        self.replay = recorder.record(work)


def padded_shape(shape: Shape, max_positions: int | None = None) -> Shape:
    """The smallest of few shapes that contains this one.

    Targets that would become longer than `max_positions`, the longest that a model can read, are not padded.
    """
    tgt = _rounded(shape.tgt, STEPS)
    tgt = shape.tgt if max_positions and tgt > max_positions else tgt
    return Shape(_rounded(shape.rows, 2 * STEPS), _rounded(shape.src, STEPS), tgt)


def _rounded(size: int, steps: int) -> int:
    """`size`, rounded up to a multiple of 2^⌊log₂ size⌋ / `steps`."""
    multiple = max(1, (1 << size.bit_length() - 1) // steps) if size else 1
    return -(-size // multiple) * multiple
