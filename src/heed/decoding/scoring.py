"""Forced scoring: log-probabilities that a model gives to a given text, by the same `advance` that decodes.

Also the bounds of a batch that is scored or searched, and smaller batches where memory runs out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from heed.core.errors import DataError, HeedError
from heed.core.progress import warn
from heed.data.batch import Batch, collate
from heed.nn.contract import Autoregressive, Source, State
from heed.nn.device import is_out_of_memory
from heed.text.vocabulary import BOS_ID, EOS_ID, PAD_ID

LogProbs = NDArray[np.float64]

MAX_POSITIONS = 64_000
"""Rows × longest row of one search: long lines come in smaller batches."""
MAX_SCORED_POSITIONS = 16_000
"""The same for a batch that is scored, where each position has a distribution of its own."""
MAX_SCORED_ROWS = 64
MAX_SCORED_TOKENS = 10_000
"""Tokens of the longest text that is scored at once: attention is quadratic. Count-based models take any length."""
_AT_ONCE = 64
"""Positions whose full distributions are in memory at once."""

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
def token_log_probs(
    model: Autoregressive, source: Source | None, tgt_in: Int[Tensor, "B T"], tgt_out: Int[Tensor, "B T"]
) -> Float[Tensor, "B T"]:
    """log P(tgt_out_t | tgt_in_≤t, source) in nats for every position, padding included."""
    state = model.start(source, 1 if source is not None else tgt_in.shape[0])
    features, _ = model.advance(tgt_in, state)
    return model.head.log_prob(features, tgt_out)


@torch.inference_mode()
def real_log_probs(
    model: Autoregressive, batch: Batch, state: State | None, mask: Bool[Tensor, "B T"] | None = None
) -> tuple[LogProbs, State]:
    """log P of the real tokens of a batch, or of those in `mask`, row by row, and the state after the batch.

    `state`: None starts afresh. For a language model.
    """
    features, after = model.advance(batch.tgt_in, state if state is not None else model.start(None, len(batch.rows)))
    mask = batch.tgt_mask if mask is None else mask
    log_probs = model.head.log_prob(features[mask], batch.tgt_out[mask])
    return log_probs.double().cpu().numpy(), after


def score_rows(
    model: Autoregressive, tgt_ids: Sequence[Sequence[int]], device: torch.device,
    src_ids: Sequence[Sequence[int]] | None = None,
) -> list[TokenScores]:  # fmt: skip
    """Scores of target sentences given without their ends, each given its source if the model has one.

    Raises DataError for a sentence that is too long to be scored at once.
    """
    lengths = [max(len(ids), len(src_ids[i]) if src_ids else 0) + 1 for i, ids in enumerate(tgt_ids)]
    require_short(max(lengths, default=0), model)

    def score(rows: Sequence[int]) -> list[TokenScores]:
        sources = [src_ids[i] for i in rows] if src_ids is not None else None
        batch = collate(sources, [tgt_ids[i] for i in rows], range(len(rows)), BOS_ID, EOS_ID, PAD_ID).to(device)
        log_probs = token_log_probs(model, batch.source, batch.tgt_in, batch.tgt_out).tolist()
        ended = [(*tgt_ids[i], EOS_ID) for i in rows]
        return [TokenScores(ids, tuple(row[: len(ids)])) for ids, row in zip(ended, log_probs, strict=True)]

    return in_length_order(lengths, list(map(len, tgt_ids)), MAX_SCORED_ROWS, MAX_SCORED_POSITIONS, score)


def require_short(num_tokens: int, model: Autoregressive) -> None:
    """Raises DataError for a line with more tokens than the model can score at once."""
    if num_tokens > MAX_SCORED_TOKENS and not model.count_based:
        raise DataError(
            f"a line has {num_tokens:,} tokens, but at most {MAX_SCORED_TOKENS:,} can be scored at once: "
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
        stats += _stats(model.head.log_probs(features[part]).float(), tokens[part], num_choices)
    return stats


def _stats(log_probs: Float[Tensor, "N V"], ids: Int[Tensor, " N"], num_choices: int) -> list[TokenStats]:
    own = log_probs.gather(1, ids[:, None])
    ranks = (log_probs > own).sum(dim=1) + 1
    best, tokens = log_probs.topk(min(num_choices, log_probs.shape[1]), dim=1)
    columns = (own[:, 0].tolist(), ranks.tolist(), tokens.tolist(), best.tolist())
    return [
        TokenStats(value, rank, tuple(zip(choices, values, strict=True)))
        for value, rank, choices, values in zip(*columns, strict=True)
    ]


def batches(lengths: Sequence[int], max_rows: int, max_positions: int) -> Iterator[slice]:
    """Slices of rows sorted from the longest to the shortest, bounded in rows and in positions, padding included."""
    begin = 0
    while begin < len(lengths):
        end = begin + max(1, min(max_rows, max_positions // lengths[begin]))
        yield slice(begin, end)
        begin = end


def halve_on_oom(items: Sequence[Item], work: Callable[[Sequence[Item]], Sequence[Result]]) -> list[Result]:
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
    lengths: Sequence[int], ties: Sequence[int], max_rows: int, max_positions: int,
    work: Callable[[Sequence[int]], Sequence[Result]],
) -> list[Result]:  # fmt: skip
    """`work` on the indices of all rows, in batches from the longest to the shortest; results in the rows' order.

    `ties` orders rows of equal length.
    """
    order = sorted(range(len(lengths)), key=lambda i: (-lengths[i], ties[i]))
    results: dict[int, Result] = {}
    for part in batches([lengths[i] for i in order], max_rows, max_positions):
        results.update(zip(order[part], halve_on_oom(order[part], work), strict=True))
    return [results[i] for i in range(len(lengths))]
