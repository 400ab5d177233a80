"""Predictor of word vectors: vectors of words and texts, and nearest neighbours."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from shlex import quote
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from heed.data.word_windows import InputRows
from heed.nn.negative_sampling import example_vectors
from heed.run import Run
from heed.tasks.arguments import several_texts
from heed.tasks.embedding import Neighbourhood, TokenVectors
from heed.tasks.predictor import Predictor
from heed.tasks.word_vectors.data import WordText
from heed.text.vocabulary import SPECIAL_PIECES
from heed.text.word_ngrams import ngram_buckets

Floats = NDArray[np.float32]


def input_rows(words: Sequence[str], config: Any) -> InputRows:
    """The rows of the input table of each piece of a vocabulary: its own, and those of its n-grams."""
    if not config.max_ngram:
        return InputRows.of_words(len(words))
    rows = [[id, *_ngram_rows(word, len(words), config)] for id, word in enumerate(words)]
    starts = np.concatenate([[0], np.cumsum([*map(len, rows)])])
    return InputRows(starts, np.array([row for each in rows for row in each]), len(words) + config.buckets)


def _ngram_rows(word: str, num_words: int, config: Any) -> list[int]:
    if word in SPECIAL_PIECES:
        return []
    buckets = ngram_buckets(word, config.min_ngram, config.max_ngram, config.buckets)
    return [num_words + bucket for bucket in buckets]


class WordVectorPredictor(Predictor):
    """Trained or counted word vectors."""

    abilities = frozenset({"embed"})
    run: Run

    @property
    def data(self) -> WordText:
        """The run's `[data]` table."""
        return cast(WordText, self.run.recipe.data)

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the vocabulary, the most frequent first."""
        return self.run.tokenizers["tgt"].vocabulary.text_pieces

    @cached_property
    def vectors(self) -> Floats:
        """The vectors of `words`, [V, D]."""
        pieces, model = self.run.tokenizers["tgt"].vocabulary.pieces, cast(Any, self.run.model)
        rows = input_rows(pieces, self.run.recipe.model)
        ids = np.arange(len(SPECIAL_PIECES), len(pieces))
        bags = rows.bags(np.arange(len(ids) + 1), ids, np.ones(len(ids), dtype=np.float32))
        with torch.no_grad():
            table = model.inputs.cpu().float()
            return example_vectors(table, bags).numpy() if len(ids) else np.empty((0, table.shape[1]), np.float32)

    @cached_property
    def _places(self) -> dict[str, int]:
        return {word: place for place, word in enumerate(self.words)}

    def vector(self, word: str) -> Floats | None:
        """The vector of a word [D], for an unknown one from its n-grams; None without any."""
        if (place := self._places.get(word)) is not None:
            return cast(Floats, self.vectors[place])
        config: Any = self.run.recipe.model
        rows = _ngram_rows(word, len(self.words) + len(SPECIAL_PIECES), config) if config.max_ngram else []
        if not rows:
            return None
        table = cast(Any, self.run.model).inputs
        return cast(Floats, (table[rows].sum(0) / len(rows) ** 0.5).cpu().numpy())

    def token_vectors(self, texts: Sequence[str]) -> list[TokenVectors]:
        """The known words of each text with their vectors."""
        normaliser, size = self.data.normaliser, cast(Any, self.run.model).inputs.shape[1]
        result = []
        for text in several_texts(texts):
            found = [(word, self.vector(word)) for word in normaliser.apply(text).split()]
            known = [(word, vector) for word, vector in found if vector is not None]
            table = np.stack([vector for _, vector in known]) if known else np.empty((0, size), np.float32)
            result.append(TokenVectors([word for word, _ in known], table))
        return result

    @cached_property
    def neighbourhood(self) -> Neighbourhood:
        return Neighbourhood(self.words, self.vectors)

    def commands(self, name: str) -> Sequence[str]:
        some = self.words[min(100, len(self.words) - 1)] if self.words else "word"
        return [f"heed neighbours {name} {quote(some)}", f"heed embed {name} < in.txt > vectors.npy"]
