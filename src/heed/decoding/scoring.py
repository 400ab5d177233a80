"""Forced scoring: log-probabilities that a model gives to a given text, by the same `advance` that decodes.

Sentences and pairs are scored by `score_rows`. A language model's text is scored by a reader, which takes it from its
beginning, all at once or in parts, and gives the log-probability of each token in the context that it reads. Its
`signature` names that context and belongs to every score. Log-probabilities are summed by lines, so that any two models
can be compared on the same text.

Also the limits of a batch that is scored or searched, and smaller batches where memory runs out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol, TypeVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from heed.core.errors import DataError, HeedError
from heed.core.progress import warn
from heed.data.batch import Batch, collate, source_from_ids
from heed.data.text_stream import Positions, StreamLoader, TextStream
from heed.metrics.likelihood import TextLikelihood
from heed.nn.contract import Autoregressive, Source, State, Trace
from heed.nn.device import is_out_of_memory
from heed.text.normalise import Normaliser
from heed.text.tokenizers import LineEnd, TextAs, Tokenizer, encode_ended
from heed.text.vocabulary import BOS_ID, EOS_ID, PAD_ID, UNK_ID

LogProbs = NDArray[np.float64]

MAX_POSITIONS = 64_000
"""Rows × longest row of one search: long lines come in smaller batches."""
MAX_SCORED_POSITIONS = 16_000
"""The same for a batch that is scored, where each position has a distribution of its own."""
MAX_SCORED_ROWS = 64
MAX_READ_ROWS = 128
"""The same for readers, whose positions have no distribution over a vocabulary."""
MAX_SCORED_TOKENS = 10_000
"""Tokens of the longest text that is scored at once: attention is quadratic. Count-based models take any length."""
SEGMENT = 256
"""Tokens of a stream that are read at once."""
PSEUDO = "pseudo"
"""First part of the signature of a reader whose log-probabilities are not those of a text (pseudo_likelihood.py)."""
_AT_ONCE = 64
"""Positions whose full distributions are in memory at once."""
_MAX_FEATURES = 1 << 22
"""Numbers in the features of a count-based model that are in memory at once: with a cache, each position has many."""

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True)
class TokenScores:
    """Token ids of a text with its end of sentence, and their log-probabilities in nats."""

    ids: tuple[int, ...]
    log_probs: tuple[float, ...]

    @property
    def log_prob(self) -> float:
        """Log-probability of the text, end of sentence included."""
        return sum(self.log_probs)


@torch.inference_mode()
def forced_pass(
    model: Autoregressive, source: Source | None, tgt_in: Int[Tensor, "B T"], trace: Trace | None = None
) -> Tensor:
    """Features `[B, T, D]` of a model that reads given targets (teacher forcing): those at t are of the token after t.

    `source`: None for a language model; else as many as rows. `trace` collects attention weights.
    """
    features, _ = model.advance(tgt_in, model.start(source, 1 if source is not None else tgt_in.shape[0]), trace)
    return features


@torch.inference_mode()
def token_log_probs(
    model: Autoregressive, source: Source | None, tgt_in: Int[Tensor, "B T"], tgt_out: Int[Tensor, "B T"]
) -> Float[Tensor, "B T"]:
    """log P(tgt_out_t | tgt_in_≤t, source) in nats for every position, padding included."""
    return model.head.log_prob(forced_pass(model, source, tgt_in), tgt_out)


@torch.inference_mode()
def real_log_probs(
    model: Autoregressive, batch: Batch, state: State | None, mask: Bool[Tensor, "B T"] | None = None
) -> tuple[LogProbs, State]:
    """log P of the real tokens of a batch, or of those in `mask`, row by row, and the state after the batch.

    `state`: before the batch; None is that of a language model before any text.
    """
    state = state if state is not None else model.start(None, len(batch.rows))
    mask = batch.tgt_mask if mask is None else mask
    if model.count_based:
        return _counted_log_probs(model, batch, state, mask)
    features, after = model.advance(batch.tgt_in, state)
    log_probs = model.head.log_prob(features[mask], batch.tgt_out[mask])
    return log_probs.double().cpu().numpy(), after


def _counted_log_probs(
    model: Autoregressive, batch: Batch, state: State, mask: Bool[Tensor, "B T"]
) -> tuple[LogProbs, State]:
    """As `real_log_probs`, some columns at a time, since lines of any length are read."""
    num_rows, length = mask.shape
    is_real = mask.cpu().numpy()
    log_probs = np.empty(is_real.shape)
    begin, step = 0, max(1, SEGMENT // num_rows)
    while begin < length:
        part = slice(begin, begin + step)
        features, state = model.advance(batch.tgt_in[:, part], state)
        found = model.head.log_prob(features[mask[:, part]], batch.tgt_out[:, part][mask[:, part]])
        log_probs[:, part][is_real[:, part]] = found.double().cpu().numpy()
        begin, step = part.stop, max(1, _MAX_FEATURES // features[:, 0].numel())
    return log_probs[is_real], state


def score_rows(
    model: Autoregressive, tgt_ids: Sequence[Sequence[int]], device: torch.device,
    src_ids: Sequence[Sequence[int]] | None = None,
) -> list[TokenScores]:  # fmt: skip
    """Scores of target sentences given without their ends, each given its source if the model has one.

    Raises DataError for a sentence that is too long to be scored at once.
    """
    lengths = [max(len(ids), len(src_ids[i]) if src_ids else 0) + 1 for i, ids in enumerate(tgt_ids)]
    if not model.count_based:
        require_short(max(lengths, default=0))

    def score(rows: Sequence[int]) -> list[TokenScores]:
        sources = [src_ids[i] for i in rows] if src_ids is not None else None
        batch = collate(sources, [tgt_ids[i] for i in rows], range(len(rows)), BOS_ID, EOS_ID, PAD_ID).to(device)
        log_probs = token_log_probs(model, batch.source, batch.tgt_in, batch.tgt_out).tolist()
        ended = [(*tgt_ids[i], EOS_ID) for i in rows]
        return [TokenScores(ids, tuple(row[: len(ids)])) for ids, row in zip(ended, log_probs, strict=True)]

    return in_length_order(lengths, list(map(len, tgt_ids)), score)


@torch.inference_mode()
def score_targets(
    model: Autoregressive, src_ids: Sequence[int], tgt_ids: Sequence[Sequence[int]], device: torch.device
) -> list[float]:
    """The log-probability in nats of each target of one source, given without ends, in batches that read it once."""
    lengths = [len(ids) + 1 for ids in tgt_ids]
    source = source_from_ids([src_ids], EOS_ID, PAD_ID).to(device)

    def score(rows: Sequence[int]) -> list[float]:
        batch = collate(None, [tgt_ids[i] for i in rows], range(len(rows)), BOS_ID, EOS_ID, PAD_ID).to(device)
        log_probs, _ = real_log_probs(model, batch, model.start(source, len(rows)))
        sums: list[float] = np.add.reduceat(log_probs, np.cumsum([0, *(lengths[i] for i in rows[:-1])])).tolist()
        return sums

    return in_length_order(lengths, range(len(lengths)), score)


def require_short(num_tokens: int, use: str = "scored") -> None:
    """Raises DataError for a line with more tokens than a model that is not count-based can read at once."""
    if num_tokens > MAX_SCORED_TOKENS:
        raise DataError(
            f"a line has {num_tokens:,} tokens, but at most {MAX_SCORED_TOKENS:,} can be {use} at once: "
            "split it into sentences."
        )


@dataclass(frozen=True)
class TokenStats:
    """A token's probability in its context, and the likeliest tokens there."""

    log_prob: float
    """Of the token itself, in nats."""
    rank: int
    """Of the token among the whole vocabulary; 1 is the likeliest."""
    choices: tuple[tuple[int, float], ...]
    """The likeliest tokens and their log-probabilities, best first."""


def token_stats(model: Autoregressive, features: Tensor, ids: Sequence[int], num_choices: int) -> list[TokenStats]:
    """Statistics of the tokens, from the features `[N, D]` that `advance` gave for them."""
    tokens = torch.tensor(ids, device=features.device)
    stats: list[TokenStats] = []
    for begin in range(0, len(ids), _AT_ONCE):
        part = slice(begin, begin + _AT_ONCE)
        stats += stats_of(model.head.log_probs(features[part]).float(), tokens[part], num_choices)
    return stats


def stats_of(log_probs: Float[Tensor, "N V"], ids: Int[Tensor, " N"], num_choices: int) -> list[TokenStats]:
    """Statistics of the tokens, from the log-probabilities of all tokens at their positions."""
    own = log_probs.gather(1, ids[:, None])
    ranks = (log_probs > own).sum(dim=1) + 1
    best, tokens = log_probs.topk(min(num_choices, log_probs.shape[1]), dim=1)
    columns = (own[:, 0].tolist(), ranks.tolist(), tokens.tolist(), best.tolist())
    return [
        TokenStats(value, rank, tuple(zip(choices, values, strict=True)))
        for value, rank, choices, values in zip(*columns, strict=True)
    ]


class Reader(Protocol):
    """Reads one text."""

    @property
    def signature(self) -> str:
        """The context of each token: `context:line`, `context:stream`, `context:512|stride:256`."""
        ...

    def read(self, text: TextStream) -> LogProbs:
        """log P (nats) of each token `[N]` of the text, or of its next part, which consists of whole lines."""
        ...


def prefix_of(signature: str) -> str:
    """What comes before the names of scores of a reader with this signature: `pseudo-`, or nothing."""
    return f"{PSEUDO}-" if signature.startswith(PSEUDO) else ""


def make_reader(
    text_as: TextAs, model: Autoregressive, device: torch.device, context: int, stride: int = 0, num_streams: int = 1
) -> Reader:
    """The reader of a model that was trained on text as `text_as`.

    `stride`: new tokens in each window (0: half of the window). `num_streams`: a text read as a stream is split into as
    many parts that are read in parallel; faster, but each part starts with a fresh state.
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
        if not self.model.count_based:
            require_short(int(lengths.max(initial=0)))
        lines = np.flatnonzero(lengths > 0)

        def score(indices: Sequence[int]) -> list[LogProbs]:
            rows = lines[np.array(indices)]
            batch = text.batch(begins[rows], ends[rows], from_bos=True)
            log_probs, _ = real_log_probs(self.model, batch.to(self.device), None)
            return np.split(log_probs, np.cumsum(lengths[rows])[:-1])

        return np.concatenate([np.zeros(0), *in_length_order(lengths[lines].tolist(), range(len(lines)), score)])


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
            log_probs[positions(batch)[batch.tgt_mask.cpu().numpy()]] = log_probs_here
        return log_probs

    def _segments(self, text: TextStream) -> Iterator[Batch]:
        if self.num_streams > 1 and len(text):
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
    """Overlapping windows: each token after at least `context - stride` others, if the text has them.

    The windows end at the multiples of `stride`, and only the last `stride` tokens of each are scored.
    """

    def __init__(self, model: Autoregressive, device: torch.device, context: int, stride: int) -> None:
        self.model, self.device = model, device
        self.context, self.stride = context, min(stride, context)
        self._past = np.zeros(0, dtype=np.int64)
        self._position = 0

    @property
    def signature(self) -> str:
        return f"context:{self.context}|stride:{self.stride}"

    def read(self, text: TextStream) -> LogProbs:
        """The next part of the text."""
        origin = self._position - len(self._past)  # position of `ids[0]` in the whole text
        ids = np.concatenate((self._past, text.ids.astype(np.int64)))
        end = self._position + len(text)
        grid = np.arange(self._position // self.stride, -(-end // self.stride), dtype=np.int64) * self.stride
        scored_from = np.maximum(grid, self._position) - origin
        ends = np.minimum(grid + self.stride, end) - origin
        begins = np.maximum(grid + self.stride - self.context - origin, 0)
        stream = TextStream(ids, np.array([0, len(ids)]))
        log_probs = np.empty(len(ids), dtype=np.float64)
        num_rows = max(1, MAX_SCORED_POSITIONS // self.context)
        for start in range(0, len(grid), num_rows):
            rows = slice(start, start + num_rows)
            batch = stream.batch(begins[rows], ends[rows])
            mask = torch.from_numpy(positions(batch) >= scored_from[rows, None]) & batch.tgt_mask
            log_probs_here, _ = real_log_probs(self.model, batch.to(self.device), None, mask.to(self.device))
            log_probs[positions(batch)[mask.numpy()]] = log_probs_here
        self._position, self._past = end, ids[-self.context - 1 :]
        return log_probs[len(ids) - len(text) :]


def positions(batch: Batch) -> Positions:
    """The position in the text of each element `[B, T]` of a batch, padding included."""
    rows: Positions = batch.rows.cpu().numpy()
    return rows[:, None] + np.arange(batch.tgt_mask.shape[1])


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
        return self.reader.signature

    def score(self, lines: Sequence[str]) -> ScoredText:
        """Score a text, or the next lines of the text that is being read."""
        lines = [self.normaliser.apply(line) for line in lines]
        text = TextStream.of_lines(encode_ended(self.tokenizer, lines, self.line_end))
        return ScoredText(lines, text, self.reader.read(text), self.line_end)


def batches(lengths: Sequence[int], max_rows: int, max_positions: int) -> Iterator[slice]:
    """Slices of rows sorted from longest to shortest, with limited rows and positions (padding included)."""
    begin = 0
    while begin < len(lengths):
        end = begin + max(1, min(max_rows, max_positions // lengths[begin]))
        yield slice(begin, end)
        begin = end


def halve_on_oom(items: Sequence[Item], work: Callable[[Sequence[Item]], Iterable[Result]]) -> list[Result]:
    """`work(items)`; where memory runs out, the same in halves. A result must not depend on its neighbours.

    Raises HeedError where memory does not suffice for a single item.
    """
    try:
        return list(work(items))
    except (RuntimeError, MemoryError) as error:
        if not is_out_of_memory(error):
            raise
        if len(items) == 1:
            raise HeedError("out of memory for a single line of this length: split it into sentences.") from error
    warn_of_halving()  # outside of the handler, so that the error has released its memory
    middle = len(items) // 2
    return halve_on_oom(items[:middle], work) + halve_on_oom(items[middle:], work)


@cache
def warn_of_halving() -> None:
    """Warn once in a process."""
    warn("out of memory for a whole batch; it is computed in parts, with the same result.")


def in_length_order(
    lengths: Sequence[int], ties: Sequence[int], score: Callable[[Sequence[int]], Iterable[Result]],
    max_rows: int = MAX_SCORED_ROWS,
) -> list[Result]:  # fmt: skip
    """`score` on the indices of all rows, in batches from the longest to the shortest; results in the rows' order.

    `ties` orders rows of equal length.
    """
    order = sorted(range(len(lengths)), key=lambda i: (-lengths[i], ties[i]))
    results: dict[int, Result] = {}
    for part in batches([lengths[i] for i in order], max_rows, MAX_SCORED_POSITIONS):
        results.update(zip(order[part], halve_on_oom(order[part], score), strict=True))
    return [results[i] for i in range(len(lengths))]
