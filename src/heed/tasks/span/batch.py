"""Batches of questions with their contexts and answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from heed.data.batch import Ids, SourceBatch
from heed.nn.span_head import as_grid
from heed.nn.word_source import WordSource
from heed.tasks.words import COLUMNS, word_source

SPANS = ("answers", "candidates")
"""Columns of spans, each the number of its first word in the row and the number of further ones."""
ALL_COLUMNS = (*COLUMNS, "asked", *SPANS)


@dataclass(frozen=True)
class PairSource:
    """Rows of questions with contexts, as a head reads them."""

    words: WordSource
    context: Bool[Tensor, "B W"]
    """True = a word of the context."""
    candidates: Int[Tensor, "B C 2"]
    are_candidates: Bool[Tensor, "B C"]

    def part(self, rows: slice) -> PairSource:
        """Some of the rows."""
        words = self.words.part(rows)
        return PairSource(
            words, self.context[rows, : words.words.shape[1]], self.candidates[rows], self.are_candidates[rows]
        )

    def to(self, device: torch.device) -> PairSource:
        """The same rows on another device."""
        return PairSource(*(getattr(self, name).to(device) for name in self.__dataclass_fields__))

    @property
    def mask(self) -> Bool[Tensor, "B S"]:
        """True = a real position."""
        return self.words.mask

    def grid(self, length: int) -> Bool[Tensor, "B W L"] | None:
        """The spans that are candidates; None without any."""
        if not self.are_candidates.any():
            return None
        return as_grid(self.candidates, self.are_candidates, self.context.shape[1], length)


@dataclass(frozen=True)
class SpanBatch(SourceBatch):
    """Questions with their answers."""

    source: PairSource
    answers: Int[Tensor, "B K 2"]
    weights: Float[Tensor, "B K"]
    """The share of each answer; a row of zeros has no answer."""
    rows: Int[Tensor, " B"]

    @property
    def num_targets(self) -> int:
        return len(self.rows)

    def part(self, rows: slice) -> SpanBatch:
        return SpanBatch(self.source.part(rows), self.answers[rows], self.weights[rows], self.rows[rows])


def pair_source(ids: Mapping[str, Sequence[Ids]]) -> PairSource:
    """The rows of these columns."""
    source = word_source(ids)
    asked = torch.tensor([int(row[0]) for row in ids["asked"]])
    context = source.words & (torch.arange(source.words.shape[1]) >= asked[:, None])
    candidates, are_candidates = _spans(ids["candidates"])
    return PairSource(source, context, candidates, are_candidates)


def collate(ids: Mapping[str, Sequence[Ids]], rows: Sequence[int] | NDArray[np.int64]) -> SpanBatch:
    """A batch from the columns of the token store and the rows' indices in the corpus."""
    answers, given = _spans(ids["answers"])
    weights = given / given.sum(1, keepdim=True).clamp(min=1)
    return SpanBatch(pair_source(ids), answers, weights, torch.from_numpy(np.array(rows, dtype=np.int64)))


def _spans(rows: Sequence[Ids]) -> tuple[Int[Tensor, "B K 2"], Bool[Tensor, "B K"]]:
    """The spans of each row, padded with zeros, and which are real."""
    lengths = np.array([len(row) // 2 for row in rows])
    mask = np.arange(max(1, int(lengths.max(initial=0)))) < lengths[:, None]
    spans = np.zeros((*mask.shape, 2), dtype=np.int64)
    spans[mask] = np.concatenate([np.asarray(row, dtype=np.int64).reshape(-1, 2) for row in rows])
    return torch.from_numpy(spans), torch.from_numpy(mask)
