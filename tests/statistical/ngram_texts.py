"""Texts for n-gram tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from statistical.ngram_oracle import BOS, EOS, PAD, UNK

from heed.statistical.backoff import BackoffModel
from heed.statistical.estimation import estimate, open_vocabulary
from heed.statistical.ngram_counts import NgramCounts
from heed.statistical.smoothing import SmoothingConfig
from heed.text.readers import read_lines

VOCAB_SIZE = 9
"""Padding, begin, end, unknown, three words that occur and two that never do."""
A, B, C = 4, 5, 6

texts = st.lists(st.lists(st.integers(UNK, C), max_size=6), max_size=12)

PREDICTABLE = np.arange(VOCAB_SIZE) > BOS


def counts_of(sentences: Sequence[Sequence[int]], order: int, vocab_size: int = VOCAB_SIZE) -> NgramCounts:
    """The n-grams of sentences."""
    return NgramCounts.of(sentences, order, vocab_size, BOS, EOS, PAD)


def model_of(sentences: Sequence[Sequence[int]], order: int, **smoothing: Any) -> BackoffModel:
    """An n-gram model of the small vocabulary."""
    return estimate(counts_of(sentences, order), SmoothingConfig(**smoothing), PREDICTABLE)


def words_of(path: Path) -> list[list[str]]:
    """The lines of a text in words; `<unk>` becomes a word like others, as lmplz needs it."""
    return [line.replace("<unk>", "<rare>").split() for line in read_lines(path) if line.strip()]


def numbered(lines: Sequence[Sequence[str]]) -> dict[str, int]:
    """An id for each word, by first appearance."""
    ids: dict[str, int] = {}
    for line in lines:
        for word in line:
            ids.setdefault(word, len(ids) + 4)
    return ids


def model_of_words(lines: Sequence[Sequence[str]], order: int, **smoothing: Any) -> tuple[BackoffModel, dict[str, int]]:
    """An open-vocabulary model of lines of words, and the ids of the words."""
    ids = numbered(lines)
    counts = counts_of([[ids[word] for word in line] for line in lines], order, len(ids) + 4)
    return estimate(counts, SmoothingConfig(**smoothing), open_vocabulary(counts, UNK)), ids


def pieces_of(ids: dict[str, int]) -> list[str]:
    """How each id is spelled."""
    return ["<pad>", "<s>", "</s>", "<unk>", *ids]


def scored(model: BackoffModel, ids: dict[str, int], lines: Sequence[Sequence[str]]) -> list[np.ndarray]:
    """log p (nats) of the words and the end of each line."""
    rows = [[ids.get(word, UNK) for word in line] for line in lines]
    contexts = model.follow(model.start[None], np.array([[id for row in rows for id in (BOS, *row)]]))[0]
    required = np.array([id for row in rows for id in (*row, EOS)])
    return np.split(model.log_prob(contexts, required), np.cumsum([len(row) + 1 for row in rows])[:-1])
