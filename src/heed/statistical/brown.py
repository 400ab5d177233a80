"""Brown clustering (Brown et al. 1992): word classes that maximise the mutual information of adjacent classes.

The C most frequent words start as one cluster each. Then each further word, in order of frequency, becomes a cluster of
its own, and the two clusters are merged whose merge loses the least average mutual information

    I = Σ_{a, b} p(a, b) log (p(a, b) / (p(a ·) p(· b)))        p(a, b): a word of b follows one of a

until all words are in C clusters (Brown et al., section 3; the window of C + 1 is theirs, O(V C²) is Liang 2005).
Merging further, to one cluster, gives a binary tree, in which each cluster has a bit string.

With h(n) = n log n, I equals Σ h(n_ab) - Σ_a R_a log l_a - Σ_b K_b log r_b up to a constant, where n_ab are the counts
of pairs, R and K their sums over the current clusters, and l and r the counts of a cluster as left and right element in
the whole text. The change of the first sum by a merge is stored for each pair of clusters and updated incrementally; as
g(u, v) = h(u + v) - h(u) - h(v) is 0 unless both are positive, a rare word changes few of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heed.core.errors import UsageError
from heed.statistical.predictor import Floats, Ints, starts


@dataclass(frozen=True, eq=False)
class Pairs:
    """Distinct pairs [P] of V words: the count of word `left[i]` followed by word `right[i]`."""

    left: Ints
    right: Ints
    counts: Ints
    vocab_size: int


@dataclass(frozen=True, eq=False)
class Clustering:
    """C clusters of the seen words, numbered by the frequency of their most frequent word."""

    clusters: Ints
    """[V]: the cluster of each word; -1 for unseen and separate words."""
    merges: Ints
    """[C - 1, 2]: the two clusters of each merge down to one; the i-th merge creates number C + i."""
    mutual_information: float
    """I of the clusters, in bits."""

    def paths(self) -> list[str]:
        """The bit string of each cluster, from the root of the tree; similar clusters share a prefix."""
        num_clusters = len(self.merges) + 1
        paths = [""] * (2 * num_clusters - 1)
        for made, (first, second) in reversed(list(enumerate(self.merges.tolist(), start=num_clusters))):
            paths[first], paths[second] = paths[made] + "0", paths[made] + "1"
        return paths[:num_clusters]


def cluster_words(pairs: Pairs, num_clusters: int, apart: tuple[int, ...] = ()) -> Clustering:
    """Cluster the words of a text.

    The words `apart` (begin and end of sentence) form a class of their own, which counts as a neighbour but is never
    merged. Raises UsageError if there are fewer words than clusters.
    """
    frequencies = np.bincount(pairs.right, pairs.counts, pairs.vocab_size)
    frequencies = np.maximum(frequencies, np.bincount(pairs.left, pairs.counts, pairs.vocab_size))
    frequencies[list(apart)] = 0
    words = np.argsort(-frequencies, kind="stable")[: np.count_nonzero(frequencies)]
    if len(words) < num_clusters:
        raise UsageError(f"num_classes = {num_clusters} is more than the {len(words)} different words of the text.")
    window = _Window(pairs, num_clusters, apart)
    for place, word in enumerate(words.tolist()):
        window.insert(word)
        if place >= num_clusters:
            window.merge(*window.best())
    slots = window.slots[words].tolist()
    number = {slot: place for place, slot in enumerate(dict.fromkeys(slots))}
    clusters = np.full(pairs.vocab_size, -1, dtype=np.int64)
    clusters[words] = [number[slot] for slot in slots]
    information = window.mutual_information()
    return Clustering(clusters, _tree(window, number), information)


def _tree(window: _Window, number: dict[int, int]) -> Ints:
    """Merge the remaining clusters into one; `number` maps slots to clusters."""
    merges = []
    for made in range(len(number), 2 * len(number) - 1):
        a, b = window.best()
        merges.append((number[a], number[b]))
        window.merge(a, b)
        number[a] = made
    return np.array(merges, dtype=np.int64).reshape(-1, 2)


class _Window:
    """The current clusters in S slots, and the change by each possible merge. Slot 0 has the separate words."""

    def __init__(self, pairs: Pairs, num_clusters: int, apart: tuple[int, ...]) -> None:
        size = num_clusters + 2
        self.total = float(pairs.counts.sum())
        self.follows = _Neighbours(pairs.left, pairs.right, pairs.counts, pairs.vocab_size)
        self.precedes = _Neighbours(pairs.right, pairs.left, pairs.counts, pairs.vocab_size)
        self.slots = np.full(pairs.vocab_size, -1, dtype=np.int64)
        """[V]: the slot of each word; -1 if it has not been inserted yet."""
        self.used = np.zeros(size, dtype=np.bool_)
        self.n = np.zeros((size, size))
        """[S, S]: the count of a word of one cluster followed by one of another."""
        self.left, self.right = _Margin(size), _Margin(size)
        self.changes = np.zeros((size, size))
        """[S, S], symmetric: the change of Σ h(n) by merging two clusters."""
        self._below = np.tri(size, dtype=np.bool_)
        for word in apart:
            self._place(word, 0)

    def insert(self, word: int) -> None:
        """Make a word a cluster of its own."""
        slot = 1 + int(np.argmin(self.used[1:]))
        self._place(word, slot)
        self._add(slot, 1.0)
        self._compare(slot)

    def _place(self, word: int, slot: int) -> None:
        """Put a word into a slot, and count its pairs with the words inserted so far."""
        self.slots[word], self.used[slot] = slot, True
        after, num_after = self.follows.of(word)
        before, num_before = self.precedes.of(word)
        self.left.add(slot, num_after.sum())
        self.right.add(slot, num_before.sum())
        here = self.slots[after] >= 0
        np.add.at(self.n[slot], self.slots[after[here]], num_after[here])
        here = (self.slots[before] >= 0) & (before != word)
        np.add.at(self.n[:, slot], self.slots[before[here]], num_before[here])

    def best(self) -> tuple[int, int]:
        """The two slots whose merge loses the least mutual information."""
        gains = self.changes - self.left.changes(self.n.sum(1)) - self.right.changes(self.n.sum(0))
        excluded = self._below | ~self.used | ~self.used[:, None]
        excluded[0] = True
        gains[excluded] = -np.inf
        a, b = divmod(int(np.argmax(gains)), len(gains))
        return a, b

    def merge(self, a: int, b: int) -> None:
        """Move the words of slot b to slot a."""
        self._add(a, -1.0)
        self._add(b, -1.0)
        for n in (self.n, self.n.T):
            n[a] += n[b]
            n[b] = 0
        for margin in (self.left, self.right):
            margin.add(a, margin.counts[b])
            margin.add(b, -margin.counts[b])
        self.slots[self.slots == b] = a
        self.used[b] = False
        self._add(a, 1.0)
        self._compare(a)

    def _add(self, slot: int, sign: float) -> None:
        """Add (or subtract) the change of the counts with this slot by each merge of two others."""
        for counts in (self.n[slot], self.n[:, slot]):
            near = np.flatnonzero(counts)
            self.changes[near[:, None], near] += sign * _g(counts[near, None], counts[near])

    def _compare(self, slot: int) -> None:
        """Compute the change by merging this slot with each other one; the counts within the two are added."""
        n, own, to, back, others = self.n, self.n[slot, slot], self.n[slot], self.n[:, slot], self.n.diagonal()
        changes = _h(own + to + back + others) - _h(own) - _h(to) - _h(back) - _h(others)
        changes -= _g(own, back) + _g(to, others) + _g(own, to) + _g(back, others)
        for counts, of_others in ((to, n), (back, n.T)):
            near = np.flatnonzero(counts)
            changes += _g(counts[near], of_others[:, near]).sum(1)
        self.changes[slot] = self.changes[:, slot] = changes

    def mutual_information(self) -> float:
        """I, in bits."""
        a, b = np.nonzero(self.n)
        n = self.n[a, b]
        expected = self.left.counts[a] * self.right.counts[b] / self.total
        return float((n * np.log2(n / expected)).sum() / self.total)


class _Margin:
    """The counts of each cluster on one side of pairs, and the logarithms of the sums of every two."""

    def __init__(self, size: int) -> None:
        self.counts = np.zeros(size)
        self._logs = np.zeros((size, size))
        """log(l_a + l_b)."""

    def add(self, slot: int, count: float) -> None:
        self.counts[slot] += count
        self._logs[slot] = self._logs[:, slot] = np.log(np.maximum(self.counts + self.counts[slot], 1))

    def changes(self, sums: Floats) -> Floats:
        """The change of Σ_a R_a log l_a by each merge, where R are the `sums`, [S] -> [S, S]."""
        alone = sums * np.log(np.maximum(self.counts, 1))
        return np.asarray((sums[:, None] + sums) * self._logs - alone[:, None] - alone)


class _Neighbours:
    """The distinct neighbours of each word on one side, with counts."""

    def __init__(self, words: Ints, neighbours: Ints, counts: Ints, vocab_size: int) -> None:
        order = np.argsort(words, kind="stable")
        self._bounds = starts(np.bincount(words, minlength=vocab_size))
        self._neighbours, self._counts = neighbours[order], counts[order]

    def of(self, word: int) -> tuple[Ints, Ints]:
        """The neighbours of a word and their counts."""
        place = slice(self._bounds[word], self._bounds[word + 1])
        return self._neighbours[place], self._counts[place]


def _h(n: Floats) -> Floats:
    """n log n of integers, 0 for 0."""
    return np.asarray(n * np.log(np.maximum(n, 1)))


def _g(u: Floats, v: Floats) -> Floats:
    """h(u + v) - h(u) - h(v)."""
    return _h(u + v) - _h(u) - _h(v)
