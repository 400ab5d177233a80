"""Readers: how a language model reads a text that is scored, and the text scorer built on them.

A reader takes a text from its beginning, all at once or in parts, and gives the log-probability of each token in the
context that it reads. Its `signature` names that context and belongs to every score. Log-probabilities are summed by
lines, so that any two models can be compared on the same text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from heed.data.batch import Batch
from heed.data.text_stream import Positions, StreamLoader, TextStream
from heed.decoding.scoring import (
    MAX_SCORED_POSITIONS,
    MAX_SCORED_ROWS,
    LogProbs,
    TokenScores,
    in_length_order,
    real_log_probs,
    require_short,
)
from heed.metrics.likelihood import TextLikelihood
from heed.nn.contract import Autoregressive, State
from heed.text.normalise import Normaliser
from heed.text.tokenizers import LineEnd, Tokenizer, encode_ended
from heed.text.vocabulary import UNK_ID

TextAs = Literal["lines", "stream", "windows"]
"""The context of a token: its line; everything before it; or a window of a fixed number of tokens."""

SEGMENT = 256
"""Tokens of a stream that are read at once."""


class Reader(Protocol):
    """Reads one text."""

    @property
    def signature(self) -> str:
        """The context of each token: `context:line`, `context:stream`, `context:512|stride:256`."""
        ...

    def read(self, text: TextStream) -> LogProbs:
        """log P (nats) of each token `[N]` of the text, or of its next part, which consists of whole lines."""
        ...


def make_reader(
    text_as: TextAs, model: Autoregressive, device: torch.device, context: int, stride: int = 0, num_streams: int = 1
) -> Reader:
    """The reader of a model that was trained on text as `text_as`.

    `stride`: new tokens in each window (0: half of the window). `num_streams`: a text read as a stream is split into as
    many parts that are read side by side; faster, but each part starts with a fresh state.
    """
    if text_as == "lines":
        return LineReader(model, device)
    if text_as == "stream":
        return StreamReader(model, device, num_streams)
    return WindowReader(model, device, context, stride or max(1, context // 2))


class LineReader:
    """Each line by itself, from begin of sentence to its end."""

    signature = "context:line"

    def __init__(self, model: Autoregressive, device: torch.device) -> None:
        self.model, self.device = model, device

    def read(self, text: TextStream) -> LogProbs:
        """Lines of similar length are batched. Raises DataError for a line that is too long."""
        begins, ends = (bounds.astype(np.int64) for bounds in (text.offsets[:-1], text.offsets[1:]))
        lengths = ends - begins
        require_short(int(lengths.max(initial=0)), self.model)
        lines = np.flatnonzero(lengths > 0)

        def score(indices: Sequence[int]) -> list[LogProbs]:
            rows = lines[np.array(indices)]
            batch = text.batch(begins[rows], ends[rows], from_bos=True)
            log_probs, _ = real_log_probs(self.model, batch.to(self.device), None)
            return np.split(log_probs, np.cumsum(lengths[rows])[:-1])

        scores = in_length_order(
            lengths[lines].tolist(), range(len(lines)), MAX_SCORED_ROWS, MAX_SCORED_POSITIONS, score
        )
        return np.concatenate([np.zeros(0), *scores])


class StreamReader:
    """All lines in sequence, with the state carried from each to the next."""

    def __init__(self, model: Autoregressive, device: torch.device, num_streams: int = 1) -> None:
        self.model, self.device, self.num_streams = model, device, num_streams
        self._state: State | None = None
        self._before = TextStream.before

    @property
    def signature(self) -> str:
        """Includes the number of streams if the text is split."""
        return "context:stream" + (f"|streams:{self.num_streams}" if self.num_streams > 1 else "")

    def read(self, text: TextStream) -> LogProbs:
        """The next part of the text; with several streams the whole text."""
        log_probs = np.empty(len(text), dtype=np.float64)
        for batch in self._segments(text):
            log_probs_here, self._state = real_log_probs(self.model, batch.to(self.device), self._state)
            log_probs[real_positions(batch)] = log_probs_here
        return log_probs

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
    """Overlapping windows: each token after at least `context - stride` others, where the text has as many.

    The windows end at the multiples of `stride`, and only the last `stride` tokens of each are scored.
    """

    def __init__(self, model: Autoregressive, device: torch.device, context: int, stride: int) -> None:
        self.model, self.device = model, device
        self.context, self.stride = context, min(stride, context)
        self._past = np.zeros(0, dtype=np.int64)
        self._position = 0

    @property
    def signature(self) -> str:
        """The size of a window, and how many of its tokens are scored."""
        return f"context:{self.context}|stride:{self.stride}"

    def read(self, text: TextStream) -> LogProbs:
        """The next part of the text."""
        origin = self._position - len(self._past)  # position of `known[0]` in the whole text
        known = np.concatenate((self._past, text.ids.astype(np.int64)))
        end = self._position + len(text)
        grid = np.arange(self._position // self.stride, -(-end // self.stride), dtype=np.int64) * self.stride
        scored_from = np.maximum(grid, self._position) - origin
        ends = np.minimum(grid + self.stride, end) - origin
        begins = np.maximum(grid + self.stride - self.context - origin, 0)
        stream = TextStream(known, np.array([0, len(known)]))
        log_probs = np.empty(len(known), dtype=np.float64)
        num_rows = max(1, MAX_SCORED_POSITIONS // self.context)
        for start in range(0, len(grid), num_rows):
            rows = slice(start, start + num_rows)
            batch = stream.batch(begins[rows], ends[rows])
            mask = torch.from_numpy(positions(batch) >= scored_from[rows, None]) & batch.tgt_mask
            log_probs_here, _ = real_log_probs(self.model, batch.to(self.device), None, mask.to(self.device))
            log_probs[positions(batch)[mask.numpy()]] = log_probs_here
        self._position, self._past = end, known[-self.context - 1 :]
        return log_probs[len(known) - len(text) :]


def positions(batch: Batch) -> Positions:
    """The position in the text of each element `[B, T]` of a batch, padding included."""
    rows: Positions = batch.rows.cpu().numpy()
    return rows[:, None] + np.arange(batch.tgt_mask.shape[1])


def real_positions(batch: Batch) -> Positions:
    """The positions in the text of the real tokens of a batch, row by row."""
    real: Positions = positions(batch)[batch.tgt_mask.cpu().numpy()]
    return real


@dataclass(frozen=True)
class ScoredText:
    """The lines of a text as the model reads them, and the log-probability of each token."""

    lines: Sequence[str]
    text: TextStream
    log_probs: LogProbs
    line_end: LineEnd

    def token_scores(self) -> list[TokenScores]:
        """Ids and log-probabilities of each line, with its end."""
        cuts = self.text.offsets[1:-1]
        rows = zip(np.split(self.text.ids, cuts), np.split(self.log_probs, cuts), strict=True)
        scores = [TokenScores(tuple(ids.tolist()), tuple(log_probs.tolist())) for ids, log_probs in rows]
        return scores[: len(self.lines)]

    def likelihoods(self) -> list[TextLikelihood]:
        """The likelihood of each line, with the counts of words, characters and bytes that convert perplexities."""
        sums = self._by_line(self.log_probs)
        unknown = self._by_line((self.text.ids == UNK_ID).astype(np.float64)).astype(int)
        lengths = np.diff(self.text.offsets)
        columns = zip(self.lines, sums.tolist(), lengths.tolist(), unknown.tolist(), strict=True)
        return [TextLikelihood.of_sentence(*row, ends=self.line_end != "none") for row in columns]

    def _by_line(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sums over the tokens of each line; a line may have none."""
        line_of_token = np.repeat(np.arange(len(self.lines)), np.diff(self.text.offsets))
        return np.bincount(line_of_token, weights=values, minlength=len(self.lines)).astype(np.float64)


class TextScorer:
    """A language model with its tokenizer, reading one text: used by `heed score`, `heed evaluate` and validation."""

    def __init__(self, reader: Reader, tokenizer: Tokenizer, normaliser: Normaliser, line_end: LineEnd) -> None:
        self.reader, self.tokenizer, self.normaliser, self.line_end = reader, tokenizer, normaliser, line_end

    @property
    def signature(self) -> str:
        """How the text is read."""
        return self.reader.signature

    def score(self, lines: Sequence[str]) -> ScoredText:
        """The lines of a text, or the next lines of the text that is being read."""
        lines = [self.normaliser.apply(line) for line in lines]
        text = TextStream.of_lines(encode_ended(self.tokenizer, lines, self.line_end))
        return ScoredText(lines, text, self.reader.read(text), self.line_end)
