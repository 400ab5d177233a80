"""Backoff n-gram models, as trees of n-grams.

    p(w | h) = p*(h w)                      if the n-gram h w is stored
             = bow(h) · p(w | h')           otherwise; h' is h without its first word, bow(h) = 1 if h is not stored

Every n-gram model, whatever its smoothing, is such a table (Katz 1987), and an ARPA file contains one. Here it is a
tree, in which an n-gram is the child of its first n - 1 words. A context is a node: the longest stored n-gram, shorter
than the order, that the words so far end with. A sentence begins in the context of `<s>`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from heed.core.errors import DataError
from heed.statistical.predictor import Floats, Ints, Predictor, members, starts

ROOT = 0
"""The empty context. Nodes 1 to V are the words; the longer n-grams follow, sorted by length, parent and word."""


@dataclass(frozen=True, eq=False)
class BackoffModel(Predictor):
    """A tree of n-grams with M nodes and a root; the root and the first C - 1 nodes are contexts."""

    words: NDArray[np.int32]
    """[M]: the last word of each n-gram."""
    offsets: Ints
    """[C + 1]: the children of context c are the nodes from offsets[c] to offsets[c + 1]."""
    log_probs_of: NDArray[np.float32]
    """[M]: log p* (nats); -inf for what is never predicted."""
    backoffs: NDArray[np.float32]
    """[C]: log bow (nats) of each context; 0 for the root."""
    bos_id: int
    eos_id: int

    @classmethod
    def of_levels(
        cls, parents: Sequence[Ints], words: Sequence[Ints], log_probs: Sequence[NDArray[np.floating]],
        backoffs: Sequence[NDArray[np.floating]], bos_id: int, eos_id: int,
    ) -> BackoffModel:  # fmt: skip
        """From the n-grams of each length, sorted by `parents` (positions in the level below) and then by word.

        The first level has every word of the vocabulary. `backoffs` are of all levels but the longest.
        """
        sizes = [1, *map(len, words[:-1])]
        children = [np.bincount(up, minlength=size) for up, size in zip(parents, sizes, strict=True)]
        return cls(
            np.concatenate(words, dtype=np.int32, casting="same_kind"),
            starts(np.concatenate(children)) + 1,
            np.concatenate(log_probs, dtype=np.float32, casting="same_kind"),
            np.concatenate([np.zeros(1), *backoffs], dtype=np.float32, casting="same_kind"),
            bos_id,
            eos_id,
        )

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[np.generic]], vocab_size: int, bos_id: int, eos_id: int
    ) -> BackoffModel:
        """Read what `arrays` returned. Raises DataError for arrays that do not fit the vocabulary."""
        names = ("words", "offsets", "log_probs", "backoffs")
        if missing := [name for name in names if name not in arrays]:
            raise DataError(f"not an n-gram model: {missing[0]!r} is missing.")
        words, offsets, log_probs, backoffs = (arrays[name] for name in names)
        whole = np.issubdtype(words.dtype, np.integer) and np.issubdtype(offsets.dtype, np.integer)
        model = cls(
            words.astype(np.int32) if whole else np.empty(0, dtype=np.int32),
            offsets.astype(np.int64) if whole else np.empty(0, dtype=np.int64),
            log_probs.astype(np.float32),
            backoffs.astype(np.float32),
            bos_id,
            eos_id,
        )
        if not model._is_consistent(vocab_size):
            raise DataError(
                f"not an n-gram model of {vocab_size} words: its sizes and numbers are inconsistent. Use the "
                "tokenizer that it was trained with."
            )
        return model

    def _is_consistent(self, vocab_size: int) -> bool:
        """Whether the nodes are a sorted tree of words of the vocabulary, and the numbers are logarithms."""
        flat = all(array.ndim == 1 for array in (self.words, self.offsets, self.log_probs_of, self.backoffs))
        if not flat or len(self.offsets) != len(self.backoffs) + 1 or len(self.words) != len(self.log_probs_of):
            return False
        if len(self.backoffs) < 1 or len(self.words) < len(self.backoffs) - 1:
            return False
        parts = np.diff(self.offsets)
        if self.offsets[0] != 1 or self.offsets[-1] != len(self.words) + 1 or (parts < 0).any():
            return False
        contexts = np.arange(len(self.backoffs))
        if (self.offsets[:-1] <= contexts).any():  # every child follows its parent
            return False
        if ((self.words < 0) | (self.words >= vocab_size)).any():
            return False
        if not np.array_equal(self.words[: parts[0]], np.arange(vocab_size)) or (np.diff(self._keys) <= 0).any():
            return False
        return bool((self.log_probs_of <= 0).all() and (self.backoffs < np.inf).all())

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        return {
            "words": self.words,
            "offsets": self.offsets,
            "log_probs": self.log_probs_of,
            "backoffs": self.backoffs,
        }

    @cached_property
    def level_starts(self) -> list[int]:
        """The first node of each length, from 0 (the root) to the order, and the end of the longest."""
        firsts = [0, 1]
        while firsts[-1] < len(self.offsets) and firsts[-1] > firsts[-2]:
            firsts.append(int(self.offsets[firsts[-1]]))
        return firsts if firsts[-1] > firsts[-2] else firsts[:-1]

    @property
    def order(self) -> int:
        """The length of the longest n-grams."""
        return len(self.level_starts) - 2

    @property
    def vocab_size(self) -> int:
        return int(self.offsets[1]) - 1

    @property
    def num_ngrams(self) -> list[int]:
        """The number of n-grams of each length, from 1."""
        return np.diff(self.level_starts[1:]).tolist()

    @cached_property
    def parents(self) -> Ints:
        """[M]: the context of each n-gram, its first n - 1 words."""
        return np.repeat(np.arange(len(self.backoffs)), np.diff(self.offsets))

    @cached_property
    def _keys(self) -> Ints:
        """[M], ascending: one number for each pair of a context and its next word."""
        vocab_size = self.offsets[1] - 1
        return np.asarray(self.parents * vocab_size + self.words)

    @cached_property
    def suffixes(self) -> Ints:
        """[C]: the longest proper suffix of each context that is a context."""
        suffixes = np.zeros(len(self.backoffs), dtype=np.int64)
        for begin, end in zip(self.level_starts[2:], self.level_starts[3:], strict=False):
            nodes = np.arange(begin, min(end, len(suffixes)))
            shorter, words = self.parents[nodes - 1], self.words[nodes - 1]
            while len(nodes):
                shorter = suffixes[shorter]
                below = self.child(shorter, words)
                suffixes[nodes[below > 0]] = below[below > 0]
                left = below == 0
                nodes, shorter, words = nodes[left], shorter[left], words[left]
        return suffixes

    def child(self, contexts: Ints, words: NDArray[np.integer]) -> Ints:
        """The n-gram of each context and word; 0 if it is not stored."""
        if not len(self._keys):
            return np.zeros(len(contexts), dtype=np.int64)
        keys = contexts * self.vocab_size + words
        places = np.searchsorted(self._keys, keys)
        np.minimum(places, len(self._keys) - 1, out=places)
        return np.where(self._keys[places] == keys, places + 1, 0)

    @property
    def start(self) -> Ints:
        return np.array([self.bos_id + 1 if self.order > 1 else ROOT])

    def follow(self, contexts: Ints, ids: Ints) -> Ints:
        """The context after each token, [B, 1] and [B, T] -> [B, T, 1]; a new sentence begins after `</s>`."""
        ids = np.where(ids == self.eos_id, self.bos_id, ids)
        longest = np.zeros(ids.shape, dtype=np.int64)
        ends_before = self._ends_of(contexts[:, 0])
        nodes = longest  # the n-gram of the current length that ends with each token
        for length in range(1, self.order):
            before = np.concatenate([ends_before[length - 1][:, None], nodes[:, :-1]], axis=1)
            nodes = np.zeros(ids.shape, dtype=np.int64)
            is_context = before > 0 if length > 1 else np.ones(ids.shape, dtype=np.bool_)
            nodes[is_context] = self.child(before[is_context], ids[is_context])
            longest = np.where(nodes > 0, nodes, longest)
        return longest[..., None]

    def _ends_of(self, contexts: Ints) -> Ints:
        """The suffix of each length of the given contexts, [B] -> [order, B]; 0 if there is none."""
        ends = np.zeros((self.order, len(contexts)), dtype=np.int64)
        lengths = np.array(self.level_starts[1:])
        rows = np.arange(len(contexts))
        for _ in range(1, self.order):
            ends[np.searchsorted(lengths, contexts, side="right"), rows] = contexts
            contexts = self.suffixes[contexts]
        ends[0] = ROOT
        return ends

    def log_prob(self, contexts: Ints, words: Ints) -> Floats:
        """As the base class. Raises ValueError for numbers that are not words, which even the root does not have."""
        if words.min(initial=0) < 0 or words.max(initial=0) >= self.vocab_size:
            raise ValueError(f"words are numbers from 0 to {self.vocab_size - 1}")
        log_probs = np.zeros(len(words))
        left = np.arange(len(words))
        nodes = contexts[:, 0]
        while len(left):
            children = self.child(nodes, words[left])
            stored = children > 0
            log_probs[left[stored]] += self.log_probs_of[children[stored] - 1]
            left, nodes = left[~stored], nodes[~stored]
            log_probs[left] += self.backoffs[nodes]
            nodes = self.suffixes[nodes]
        return log_probs

    def log_probs(self, contexts: Ints) -> Floats:
        rows = np.tile(self.log_probs_of[: self.vocab_size].astype(np.float64), (len(contexts), 1))
        for nodes in self._ends_of(contexts[:, 0])[1:]:
            longer = np.flatnonzero(nodes)
            rows[longer] += self.backoffs[nodes[longer], None]
            owners, children = members(nodes[longer], self.offsets)
            rows[longer[owners], self.words[children - 1]] = self.log_probs_of[children - 1]
        return rows
