"""Text stream: a text as one sequence of tokens, and batches of its spans.

Every token of the stream is predicted, the ends of lines included. What a model reads before a token is the token
before it; where that is the end of a sentence, and at the beginning of the text, it reads bos, as it does before a
sentence that stands alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.random import Philox
from numpy.typing import NDArray

from heed.core.errors import DataError
from heed.data.batch import Batch
from heed.data.store import TokenStore
from heed.text.vocabulary import Vocabulary

Positions = NDArray[np.int64]


@dataclass(frozen=True)
class TextStream:
    """The tokens of a text one after the other, and where its lines begin."""

    ids: NDArray[np.integer]
    """[N], in the order of the text."""
    offsets: NDArray[np.integer]
    """[lines + 1]: where each line begins, and N."""
    before: int = Vocabulary.bos_id
    """The token before the first one; bos where the text begins."""
    store: TokenStore | None = None
    """Where the tokens are read from, if not from memory."""

    @classmethod
    def of_store(cls, store: TokenStore) -> TextStream:
        """The rows of a store, read from disk as they are asked for. Raises DataError where there is no token."""
        ids, offsets = store.all_tokens("tgt")
        if not len(ids):
            raise DataError(f"The token store {store.folder} has no tokens: there is nothing to train on.")
        return cls(ids, offsets, store=store)

    @classmethod
    def of_lines(cls, lines: Sequence[Sequence[int]]) -> TextStream:
        """The lines, each with what ends it."""
        lengths = np.array([0, *map(len, lines)], dtype=np.int64)
        ids = np.concatenate([np.zeros(0, dtype=np.int64), *(np.asarray(line, dtype=np.int64) for line in lines)])
        return cls(ids, np.cumsum(lengths))

    def __len__(self) -> int:
        return len(self.ids)

    def batch(
        self, begins: Positions, ends: Positions, from_bos: NDArray[np.bool_] | bool = False,
        segment: int | None = None, relative_length: float = 1.0,
    ) -> Batch:  # fmt: skip
        """The tokens from each begin to each end as the rows of a batch.

        `from_bos`: rows whose past is not told, which begin with bos whatever stands before them.
        """
        lengths = ends - begins
        columns = np.arange(lengths.max(initial=0))
        mask = columns < lengths[:, None]
        places = np.where(mask, begins[:, None] + columns, begins[:, None])
        tgt_out = np.where(mask, self.ids[places].astype(np.int64), Vocabulary.pad_id)
        first = np.where(begins > 0, self.ids[np.maximum(begins - 1, 0)].astype(np.int64), self.before)
        tgt_in = read_before(tgt_out, np.where(from_bos, Vocabulary.bos_id, first))
        tgt_in[~mask] = Vocabulary.pad_id
        if self.store is not None:
            self.store.release_pages()
        return Batch(
            source=None,
            tgt_in=torch.from_numpy(tgt_in),
            tgt_out=torch.from_numpy(tgt_out),
            tgt_mask=torch.from_numpy(mask),
            rows=torch.from_numpy(begins.copy()),
            num_tokens=int(lengths.sum()),
            num_src_tokens=0,
            segment=segment,
            relative_length=relative_length,
        )

    def begins_line(self, positions: Positions) -> NDArray[np.bool_]:
        """Whether a line begins at each position."""
        wanted = positions.astype(self.offsets.dtype)  # else all offsets would be converted
        return np.asarray(self.offsets[np.searchsorted(self.offsets, wanted)] == wanted)


def read_before(ids: NDArray[np.int64], first: NDArray[np.int64]) -> NDArray[np.int64]:
    """What a model reads before each of `ids` `[B, T]`; `first` `[B]` are the tokens before the first column."""
    before = np.concatenate((first[:, None], ids[:, :-1]), axis=1)
    before[before == Vocabulary.eos_id] = Vocabulary.bos_id
    return before


def random_stream(seed: int, epoch: int) -> Philox:
    """The random numbers of an epoch: raw output of a generator that NumPy promises to keep."""
    return Philox(key=np.array([seed, epoch], dtype=np.uint64))


def uniform(random: Philox, size: int) -> NDArray[np.float64]:
    """Random numbers in (0, 1) `[size]`."""
    return ((random.random_raw(size) >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53


def shuffled(n: int, random: Philox) -> Positions:
    """The numbers below `n` in random order."""
    return np.argsort(random.random_raw(n), kind="stable").astype(np.int64, copy=False)
