"""How does a language model read a text that is scored: what does it know before each token?

A reader takes a text from its beginning, all at once or a part at a time, and says how likely each token is after those
that it was shown. `signature` says what that is, and belongs to every score.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heed.core.errors import DataError
from heed.data.batch import Batch
from heed.data.streams import StreamLoader
from heed.data.text_stream import Positions, TextStream
from heed.decoding.memory import in_parts_that_fit
from heed.decoding.request import groups
from heed.nn.contract import Autoregressive, State

LogProbs = NDArray[np.float64]
TextAs = Literal["lines", "stream", "windows"]
"""A line knows nothing of the one before; a stream knows all that was read; a window knows so many tokens."""

SEGMENT = 256
"""Tokens of a stream that are read at once."""
BATCH_POSITIONS = 16_000
MAX_ROWS = 64
MAX_LINE = 10_000
"""Tokens of the longest line that is read alone: attention takes the square of it. A model that counts takes any."""


class Reader(Protocol):
    """Reads one text."""

    @property
    def signature(self) -> str:
        """What the model knows before each token: `context:line`, `context:stream`, `context:512|stride:256`."""
        ...

    def read(self, text: TextStream) -> LogProbs:
        """log P (nats) of each token `[N]` of the text, or of the next part of it, which consists of whole lines."""
        ...


def make_reader(
    text_as: TextAs, model: Autoregressive, device: torch.device, context: int, stride: int = 0, num_streams: int = 1
) -> Reader:
    """The reader of a model that was trained on text as `text_as`.

    `stride`: tokens that are new in each window (0: half of them). With `num_streams` more than one, a text as a stream
    is read in so many places at once: faster, but each of them begins with a fresh state.
    """
    if text_as == "lines":
        return LineReader(model, device)
    if text_as == "stream":
        return StreamReader(model, device, num_streams)
    return WindowReader(model, device, context, stride or max(1, context // 2))


class LineReader:
    """Every line alone, from bos to its end."""

    signature = "context:line"

    def __init__(self, model: Autoregressive, device: torch.device) -> None:
        self.model, self.device = model, device

    def read(self, text: TextStream) -> LogProbs:
        """Lines of like length together; the order is put back. Raises DataError for a line that is too long."""
        begins, ends = (bounds.astype(np.int64) for bounds in (text.offsets[:-1], text.offsets[1:]))
        lengths = ends - begins
        longest = int(lengths.max(initial=0))
        if longest > MAX_LINE and not self.model.count_based:
            raise DataError(f"a line has {longest:,} tokens, and at most {MAX_LINE:,} are read at once: cut it.")
        order = np.argsort(-lengths, kind="stable")
        order = order[lengths[order] > 0]
        found = np.empty(len(text), dtype=np.float64)

        def scored(wanted: Sequence[int]) -> list[LogProbs]:
            rows = np.array(wanted)
            batch = text.batch(begins[rows], ends[rows], from_bos=True)
            log_probs, _ = forced(self.model, batch.to(self.device), None)
            return np.split(log_probs, np.cumsum(lengths[rows])[:-1])

        for place in groups(lengths[order].tolist(), MAX_ROWS, BATCH_POSITIONS):
            rows = order[place].tolist()
            for row, log_probs in zip(rows, in_parts_that_fit(rows, scored), strict=True):
                found[begins[row] : ends[row]] = log_probs
        return found


class StreamReader:
    """All lines in one go, the state carried from each to the next."""

    def __init__(self, model: Autoregressive, device: torch.device, num_streams: int = 1) -> None:
        self.model, self.device, self.num_streams = model, device, num_streams
        self._state: State | None = None
        self._before = TextStream.before

    @property
    def signature(self) -> str:
        """Whether the text was cut."""
        return "context:stream" + (f"|streams:{self.num_streams}" if self.num_streams > 1 else "")

    def read(self, text: TextStream) -> LogProbs:
        """The next part of the text; of one that is read in several places at once, all of it."""
        found = np.empty(len(text), dtype=np.float64)
        for batch in self._segments(text):
            log_probs, self._state = forced(self.model, batch.to(self.device), self._state)
            found[places(batch)] = log_probs
        return found

    def _segments(self, text: TextStream) -> Iterator[Batch]:
        if self.num_streams > 1:
            self._state = None
            loader = StreamLoader(text, num_streams=min(self.num_streams, len(text)), context=SEGMENT, seed=0)
            batches = loader.batches_from()
            return (next(batches)[1] for _ in range(loader.num_batches(0)))
        text = TextStream(text.ids, text.offsets, self._before)
        self._before = int(text.ids[-1]) if len(text) else self._before
        begins = np.arange(0, len(text), SEGMENT, dtype=np.int64)
        return (
            text.batch(begins[i : i + 1], np.minimum(begins[i : i + 1] + SEGMENT, len(text)))
            for i in range(len(begins))
        )


class WindowReader:
    """Each token after at least `context - stride` others, where there are as many: windows that overlap.

    The windows end at the multiples of `stride`, and only the last `stride` tokens of each count.
    """

    def __init__(self, model: Autoregressive, device: torch.device, context: int, stride: int) -> None:
        self.model, self.device = model, device
        self.context, self.stride = context, min(stride, context)
        self._past = np.zeros(0, dtype=np.int64)
        self._position = 0

    @property
    def signature(self) -> str:
        """The size of a window, and how many of its tokens count."""
        return f"context:{self.context}|stride:{self.stride}"

    def read(self, text: TextStream) -> LogProbs:
        """The next part of the text."""
        origin = self._position - len(self._past)  # what is position 0 of `known` in the whole text
        known = np.concatenate((self._past, text.ids.astype(np.int64)))
        end = self._position + len(text)
        grid = np.arange(self._position // self.stride, -(-end // self.stride), dtype=np.int64) * self.stride
        counted = np.maximum(grid, self._position) - origin
        ends = np.minimum(grid + self.stride, end) - origin
        begins = np.maximum(grid + self.stride - self.context - origin, 0)
        stream = TextStream(known, np.array([0, len(known)]))
        found = np.empty(len(known), dtype=np.float64)
        num_rows = max(1, BATCH_POSITIONS // self.context)
        for start in range(0, len(grid), num_rows):
            rows = slice(start, start + num_rows)
            batch = stream.batch(begins[rows], ends[rows])
            wanted = torch.from_numpy(places_in(batch) >= counted[rows, None]) & batch.tgt_mask
            log_probs, _ = forced(self.model, batch.to(self.device), None, wanted.to(self.device))
            found[places_in(batch)[wanted.numpy()]] = log_probs
        self._position, self._past = end, known[-self.context - 1 :]
        return found[len(known) - len(text) :]


@torch.inference_mode()
def forced(
    model: Autoregressive, batch: Batch, state: State | None, wanted: Tensor | None = None
) -> tuple[LogProbs, State]:
    """log P (nats) of the real tokens of a batch, row by row, and the state behind them; or of the `wanted` ones."""
    features, after = model.advance(batch.tgt_in, state if state is not None else model.start(None, len(batch.rows)))
    mask = batch.tgt_mask if wanted is None else wanted
    log_probs = model.head.log_prob(features[mask], batch.tgt_out[mask])
    return log_probs.double().cpu().numpy(), after


def places_in(batch: Batch) -> Positions:
    """The position in the text of every element `[B, T]` of a batch, padding included."""
    rows: Positions = batch.rows.cpu().numpy()
    return rows[:, None] + np.arange(batch.tgt_mask.shape[1])


def places(batch: Batch) -> Positions:
    """The positions in the text of the real tokens of a batch, row by row."""
    found: Positions = places_in(batch)[batch.tgt_mask.cpu().numpy()]
    return found
