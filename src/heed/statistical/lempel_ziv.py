"""Lempel and Ziv's second code (1978) as a predictor.

A text is cut into phrases, each the longest one that was there before and one token more. The phrases are a tree. With
m(node) for the number of phrases in the tree below a node, itself counted, and V tokens that may come,

    P(w | node) = (1 + (V - 1) m(child)) / (1 + (V - 1) m(node))        m = 0 for a child that is not there

which adds up to one (Langdon 1983). Where the tree has no child for a token, and at the end of a sentence, the next
phrase begins at the root. The factors of a phrase cancel: while the tree is learned, its j-th phrase has the
probability 1 / (1 + (V - 1) j). That is the code, and the length of it in bits is `code_bits`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from heed.core.errors import DataError
from heed.statistical.arrays import Floats, Ints, log, members, starts

ROOT = 0


@dataclass(frozen=True, eq=False)
class PhraseTree:
    """The M phrases of a text and the root, which is node 0; parents stand before their children."""

    parents: Ints
    """[M]: the node of each phrase without its last token."""
    words: Ints
    """[M]: its last token."""
    predictable: NDArray[np.bool_]
    """[V']: which tokens of the vocabulary may come; V of them."""
    eos_id: int

    @classmethod
    def learn(cls, sequences: Iterable[Sequence[int]], predictable: NDArray[np.bool_], eos_id: int) -> PhraseTree:
        """Cut sentences into phrases; each begins at the root, and its end is a token too."""
        children: dict[int, int] = {}
        vocab_size = len(predictable)
        for ids in sequences:
            grow(children, vocab_size, [*ids, eos_id])
        keys = np.fromiter(children, dtype=np.int64, count=len(children))
        return cls(keys // vocab_size, keys % vocab_size, predictable, eos_id)

    @classmethod
    def from_arrays(
        cls, arrays: Mapping[str, NDArray[np.generic]], predictable: NDArray[np.bool_], eos_id: int
    ) -> PhraseTree:
        """The tree that `arrays` gave. Raises DataError for arrays that are none of this vocabulary."""
        if missing := [name for name in ("parents", "words") if name not in arrays]:
            raise DataError(f"not a phrase tree: {missing[0]!r} is missing.")
        found = cls(arrays["parents"].astype(np.int64), arrays["words"].astype(np.int64), predictable, eos_id)
        parents, words = found.parents, found.words
        if parents.shape != words.shape or parents.ndim != 1 or ((words < 0) | (words >= len(predictable))).any():
            raise DataError("not a phrase tree of this vocabulary: its sizes and numbers are inconsistent.")
        ordered = ((parents >= 0) & (parents <= np.arange(len(parents)))).all()
        if not ordered or not predictable[words].all() or (np.diff(found._keys) == 0).any():
            raise DataError("not a phrase tree: its sizes and numbers are inconsistent.")
        return found

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """All there is to save."""
        return {"parents": self.parents.astype(np.int32), "words": self.words.astype(np.int32)}

    @property
    def vocab_size(self) -> int:
        """V', with the tokens that are never predicted."""
        return len(self.predictable)

    @cached_property
    def sizes(self) -> Ints:
        """[M + 2]: m of each node; the last is that of a child that is not there, 0."""
        found = [1] * (len(self.parents) + 1)
        for node, parent in zip(range(len(self.parents), 0, -1), self.parents[::-1].tolist(), strict=True):
            found[parent] += found[node]
        return np.array([*found, 0])

    @cached_property
    def _order(self) -> Ints:
        """The phrases sorted by parent and token, [M]; node = phrase + 1."""
        return np.argsort(self.parents * self.vocab_size + self.words)

    @cached_property
    def _keys(self) -> Ints:
        return np.asarray((self.parents * self.vocab_size + self.words)[self._order])

    @cached_property
    def _bounds(self) -> Ints:
        """Where the children of each node stand in the sorted phrases, [M + 2]."""
        return starts(np.bincount(self.parents, minlength=len(self.parents) + 1))

    @cached_property
    def _children(self) -> dict[int, int]:
        """The node behind each pair of a node and a token, as one number."""
        keys = self.parents * self.vocab_size + self.words
        return dict(zip(keys.tolist(), range(1, len(keys) + 1), strict=True))

    @property
    def start(self) -> Ints:
        """[1]: the root."""
        return np.array([ROOT])

    def follow(self, contexts: Ints, ids: Ints) -> Ints:
        """The node after each token, [B, 1] and [B, T] -> [B, T, 1]."""
        found = np.empty(ids.shape, dtype=np.int64)
        children, vocab_size = self._children, self.vocab_size
        for row, (node, words) in enumerate(zip(contexts[:, 0].tolist(), ids.tolist(), strict=True)):
            path = []
            for word in words:
                node = children.get(node * vocab_size + word, ROOT) if word != self.eos_id else ROOT
                path.append(node)
            found[row] = path
        return found[..., None]

    def log_prob(self, contexts: Ints, words: Ints) -> Floats:
        """log P(words[i] | contexts[i]), [N, 1] and [N] -> [N] in nats."""
        nodes = contexts[:, 0]
        found = self._log(np.where(self.predictable[words], 0, -1)) - self._log(self.sizes[nodes])
        if len(self._keys):
            keys = nodes * self.vocab_size + words
            places = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
            seen = self._keys[places] == keys
            found[seen] += self._log(self.sizes[self._order[places[seen]] + 1])
        return found

    def log_probs(self, contexts: Ints) -> Floats:
        """log P(w | contexts[i]) for every w, [N, 1] -> [N, V'] in nats."""
        nodes = contexts[:, 0]
        rows = np.tile(np.where(self.predictable, 0.0, -np.inf), (len(nodes), 1))
        owners, places = members(nodes, self._bounds)
        phrases = self._order[places]
        rows[owners, self.words[phrases]] = self._log(self.sizes[phrases + 1])
        return rows - self._log(self.sizes[nodes])[:, None]

    def _log(self, sizes: Ints) -> Floats:
        """log (1 + (V - 1) m); -inf for m = -1, what can never come."""
        return log(np.where(sizes < 0, 0.0, 1.0 + (self.predictable.sum() - 1) * np.maximum(sizes, 0)))


def grow(children: dict[int, int], vocab_size: int, words: Iterable[int]) -> int:
    """Cut tokens into phrases from the root on, and add these to the tree; the node where the tokens end."""
    node = ROOT
    for word in words:
        key = node * vocab_size + word
        if key in children:
            node = children[key]
        else:
            children[key] = len(children) + 1
            node = ROOT
    return node


def code_bits(data: bytes, primer: bytes = b"") -> float:
    """Bits of LZ78's code for `data` behind `primer`: -log2 P of its bytes, the tree growing as they come.

    `data` begins a phrase of its own.
    """
    children: dict[int, int] = {}
    grow(children, 256, primer)
    num_before = len(children)
    end = grow(children, 256, data)
    whole = math.fsum(math.log2(1 + 255 * j) for j in range(num_before + 1, len(children) + 1))
    if end == ROOT:
        return whole
    keys = np.fromiter(children, dtype=np.int64, count=len(children))
    sizes = PhraseTree(keys // 256, keys % 256, np.ones(256, dtype=np.bool_), -1).sizes
    return whole + math.log2((1 + 255 * int(sizes[ROOT])) / (1 + 255 * int(sizes[end])))
