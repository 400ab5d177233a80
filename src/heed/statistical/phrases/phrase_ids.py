"""Phrases as numbers: a tree of phrases, in which a phrase is the child of its words but the last."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from heed.statistical.predictor import Bools, Ints, starts

ROOT = 0


@dataclass(frozen=True, eq=False)
class PhraseTree:
    """M phrases and their beginnings, numbered from 1 by length, first words, and last word."""

    keys: Ints
    """[M], ascending: parent * `num_words` + last word."""
    num_words: int
    """Size of the vocabulary."""

    def __len__(self) -> int:
        """Number of nodes, with the root."""
        return len(self.keys) + 1

    def child(self, nodes: Ints, words: Ints) -> Ints:
        """The phrase of each node and the next word; 0 if it is not stored."""
        if not len(self.keys):
            return np.zeros(len(nodes), dtype=np.int64)
        wanted = nodes * self.num_words + words
        places = np.minimum(np.searchsorted(self.keys, wanted), len(self.keys) - 1)
        return np.where(self.keys[places] == wanted, places + 1, ROOT)

    def words(self, node: int) -> tuple[int, ...]:
        """The words of a phrase."""
        words: list[int] = []
        while node != ROOT:
            node, word = divmod(int(self.keys[node - 1]), self.num_words)
            words.append(word)
        return tuple(reversed(words))

    def all_words(self, nodes: Ints) -> tuple[Ints, Ints]:
        """The words of several phrases one after another, and where each begins."""
        rows: list[Ints] = []
        left = nodes.copy()
        while (left > 0).any():
            keys = self.keys[np.maximum(left, 1) - 1]
            rows.append(np.where(left > 0, keys % self.num_words, -1))
            left = np.where(left > 0, keys // self.num_words, ROOT)
        padded = np.array(rows[::-1], dtype=np.int64).reshape(len(rows), len(nodes)).T
        return padded[padded >= 0], starts((padded >= 0).sum(1))

    @cached_property
    def lengths(self) -> Ints:
        """[M + 1]: the number of words of each phrase, 0 for the root."""
        parents = self.keys // max(1, self.num_words)
        lengths = np.zeros(len(self), dtype=np.int64)
        begin, end = ROOT, ROOT + 1
        while end < len(self):  # the phrases of one length are the children of those that are a word shorter
            begin, end = end, int(np.searchsorted(parents, end)) + 1
            lengths[begin:end] = lengths[begin - 1] + 1
        return lengths

    def is_consistent(self, longest: int) -> bool:
        """Whether the keys ascend, every phrase follows its parent, and none has more than `longest` words."""
        parents = self.keys // max(1, self.num_words)
        follow = (
            (np.diff(self.keys) > 0).all() and (self.keys >= 0).all() and (parents <= np.arange(len(parents))).all()
        )
        return bool(follow and self.lengths[-1] <= longest)


def number_phrases(words: Ints, begins: Ints, ends: Ints, num_words: int) -> tuple[PhraseTree, Ints]:
    """The tree of some phrases of a text, and the node of each.

    `words` [S] are those of all sentences; the phrases [P] are positions in `words`, and do not leave their sentence.
    """
    longest = int((ends - begins).max(initial=0))
    needed: list[Bools] = []  # positions where a phrase of each length begins
    for length in range(1, longest + 1):
        here = np.zeros(len(words) + 1, dtype=np.bool_)
        here[begins[ends - begins >= length]] = True
        needed.append(here[:-1])
    nodes = np.zeros(len(words), dtype=np.int64)
    of_phrase = np.zeros(len(begins), dtype=np.int64)
    keys: list[Ints] = []
    first = 1
    for length, here in enumerate(needed, start=1):
        places = np.flatnonzero(here)
        distinct, inverse = np.unique(nodes[places] * num_words + words[places + length - 1], return_inverse=True)
        nodes[places] = inverse + first
        keys.append(distinct)
        first += len(distinct)
        whole = ends - begins == length
        of_phrase[whole] = nodes[begins[whole]]
    return PhraseTree(np.concatenate([np.empty(0, dtype=np.int64), *keys]), num_words), of_phrase
