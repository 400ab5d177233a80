"""LZ78 (Ziv & Lempel 1978) as a predictor.

A text is split into phrases, each the longest earlier phrase plus one token; the phrases form a tree. With m(node) for
the number of phrases in the subtree of a node, including itself, and V possible tokens,

    P(w | node) = (1 + (V - 1) m(child)) / (1 + (V - 1) m(node))        m = 0 for a missing child

which sums to one (Langdon 1983). After a token without a child, and at the end of a sentence, the next phrase begins at
the root. The factors of a phrase cancel: while the tree is learned, its j-th phrase has the probability
1 / (1 + (V - 1) j). This is the code, and `code_bits` is its length.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from heed.core.errors import DataError
from heed.statistical.predictor import Floats, Ints, Predictor, log, members, starts

ROOT = 0


@dataclass(frozen=True, eq=False)
class PhraseTree(Predictor):
    """The M phrases of a text and the root, which is node 0; parents come before their children."""

    parents: Ints
    """[M]: the node of each phrase without its last token."""
    words: Ints
    """[M]: its last token."""
    predictable: NDArray[np.bool_]
    """[V']: which tokens of the vocabulary are possible; V of them."""
    eos_id: int

    @classmethod
    def learn(cls, sequences: Iterable[Sequence[int]], predictable: NDArray[np.bool_], eos_id: int) -> PhraseTree:
        """Split sentences into phrases; each sentence begins at the root, and its end is a token too."""
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
        """Read what `arrays` returned. Raises DataError for arrays that do not fit the vocabulary."""
        if missing := [name for name in ("parents", "words") if name not in arrays]:
            raise DataError(f"not a phrase tree: {missing[0]!r} is missing.")
        tree = cls(arrays["parents"].astype(np.int64), arrays["words"].astype(np.int64), predictable, eos_id)
        parents, words = tree.parents, tree.words
        if parents.shape != words.shape or parents.ndim != 1 or ((words < 0) | (words >= len(predictable))).any():
            raise DataError("not a phrase tree of this vocabulary: its sizes and numbers are inconsistent.")
        ordered = ((parents >= 0) & (parents <= np.arange(len(parents)))).all()
        if not ordered or not predictable[words].all() or (np.diff(tree._keys) == 0).any():
            raise DataError("not a phrase tree: its sizes and numbers are inconsistent.")
        return tree

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        return {"parents": self.parents.astype(np.int32), "words": self.words.astype(np.int32)}

    @property
    def vocab_size(self) -> int:
        return len(self.predictable)

    @cached_property
    def sizes(self) -> Ints:
        """[M + 2]: m of each node; the last, 0, is that of a missing child."""
        sizes = [1] * (len(self.parents) + 1)
        for node, parent in zip(range(len(self.parents), 0, -1), self.parents[::-1].tolist(), strict=True):
            sizes[parent] += sizes[node]
        return np.array([*sizes, 0])

    @cached_property
    def _order(self) -> Ints:
        """The phrases sorted by parent and token, [M]; node = phrase + 1."""
        return np.argsort(self.parents * self.vocab_size + self.words)

    @cached_property
    def _keys(self) -> Ints:
        return np.asarray((self.parents * self.vocab_size + self.words)[self._order])

    @cached_property
    def _bounds(self) -> Ints:
        """The range of the children of each node in the sorted phrases, [M + 2]."""
        return starts(np.bincount(self.parents, minlength=len(self.parents) + 1))

    @cached_property
    def _children(self) -> dict[int, int]:
        """The child of each pair of a node and a token, which are one number."""
        keys = self.parents * self.vocab_size + self.words
        return dict(zip(keys.tolist(), range(1, len(keys) + 1), strict=True))

    @property
    def start(self) -> Ints:
        return np.array([ROOT])

    def follow(self, contexts: Ints, ids: Ints) -> Ints:
        nodes = np.empty(ids.shape, dtype=np.int64)
        children, vocab_size = self._children, self.vocab_size
        for row, (node, words) in enumerate(zip(contexts[:, 0].tolist(), ids.tolist(), strict=True)):
            path = []
            for word in words:
                node = children.get(node * vocab_size + word, ROOT) if word != self.eos_id else ROOT
                path.append(node)
            nodes[row] = path
        return nodes[..., None]

    def log_prob(self, contexts: Ints, words: Ints) -> Floats:
        nodes = contexts[:, 0]
        log_probs = self._log(np.where(self.predictable[words], 0, -1)) - self._log(self.sizes[nodes])
        if len(self._keys):
            keys = nodes * self.vocab_size + words
            places = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
            seen = self._keys[places] == keys
            log_probs[seen] += self._log(self.sizes[self._order[places[seen]] + 1])
        return log_probs

    def log_probs(self, contexts: Ints) -> Floats:
        nodes = contexts[:, 0]
        rows = np.tile(np.where(self.predictable, 0.0, -np.inf), (len(nodes), 1))
        owners, places = members(nodes, self._bounds)
        phrases = self._order[places]
        rows[owners, self.words[phrases]] = self._log(self.sizes[phrases + 1])
        return rows - self._log(self.sizes[nodes])[:, None]

    def _log(self, sizes: Ints) -> Floats:
        """log (1 + (V - 1) m); -inf for m = -1, an impossible token."""
        return log(np.where(sizes < 0, 0.0, 1.0 + (self.predictable.sum() - 1) * np.maximum(sizes, 0)))


def grow(children: dict[int, int], vocab_size: int, words: Iterable[int]) -> int:
    """Split tokens into phrases, from the root, and add them to the tree; returns the node where the tokens end."""
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
    """Bits of LZ78's code for `data` after `primer`: -log2 P of its bytes with a growing tree.

    `data` begins a new phrase.
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
