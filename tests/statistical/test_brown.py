"""Brown clustering: equal to the greedy algorithm, step by step."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heed.core.errors import UsageError
from heed.statistical.brown import Clustering, Pairs, cluster_words

END = 0
"""Begin and end of sentence."""


def pairs_of(sentences: Sequence[Sequence[int]], vocab_size: int) -> Pairs:
    """The pairs of sentences, each between two ends."""
    counts: Counter[tuple[int, int]] = Counter()
    for sentence in sentences:
        counts.update(itertools.pairwise((END, *sentence, END)))
    left, right = (np.array([pair[side] for pair in counts], dtype=np.int64) for side in (0, 1))
    return Pairs(left, right, np.array(list(counts.values()), dtype=np.int64), vocab_size)


def information(pairs: Pairs, cluster_of: dict[int, object]) -> float:
    """Σ p(a, b) log (p(a, b) / (p(a ·) p(· b))) over the words that have a cluster, margins over all, in bits."""
    total = int(pairs.counts.sum())
    joint: Counter[tuple[object, object]] = Counter()
    left: Counter[object] = Counter()
    right: Counter[object] = Counter()
    for a, b, n in zip(pairs.left.tolist(), pairs.right.tolist(), pairs.counts.tolist(), strict=True):
        if a in cluster_of:
            left[cluster_of[a]] += n
        if b in cluster_of:
            right[cluster_of[b]] += n
        if a in cluster_of and b in cluster_of:
            joint[cluster_of[a], cluster_of[b]] += n
    return sum(n / total * math.log2(n * total / (left[a] * right[b])) for (a, b), n in joint.items())


def greedy(pairs: Pairs, num_clusters: int) -> tuple[list[frozenset[int]], list[frozenset[int]]]:
    """The definition: all merges tried at each step. The clusters, and the sets that merging them on makes."""
    frequencies: Counter[int] = Counter()
    for word, n in zip(pairs.right.tolist(), pairs.counts.tolist(), strict=True):
        frequencies[word] += n
    words = sorted((word for word in frequencies if word != END), key=lambda word: (-frequencies[word], word))
    groups: list[frozenset[int]] = []

    def merge() -> frozenset[int]:
        def after(a: frozenset[int], b: frozenset[int]) -> float:
            left = [group for group in groups if group not in (a, b)] + [a | b, frozenset([END])]
            return information(pairs, {word: number for number, group in enumerate(left) for word in group})

        a, b = max(itertools.combinations(groups, 2), key=lambda two: round(after(*two), 9))
        groups[:] = [group for group in groups if group not in (a, b)] + [a | b]
        return a | b

    for word in words:
        groups.append(frozenset([word]))
        if len(groups) > num_clusters:
            merge()
    actual = list(groups)
    return actual, [merge() for _ in range(len(actual) - 1)]


def sets_of(actual: Clustering) -> tuple[set[frozenset[int]], list[frozenset[int]]]:
    """The same of our answer."""
    num_clusters = len(actual.merges) + 1
    groups = [frozenset(np.flatnonzero(actual.clusters == number).tolist()) for number in range(num_clusters)]
    made = []
    for a, b in actual.merges.tolist():
        groups.append(groups[a] | groups[b])
        made.append(groups[-1])
    return set(groups[:num_clusters]), made


@settings(max_examples=40)
@given(st.integers(0, 10_000), st.integers(1, 5))
def test_clusters_equal_the_definition(seed: int, num_clusters: int) -> None:
    """Random text is without ties, which two equally right answers would come from."""
    random = np.random.default_rng(seed)
    odds = random.dirichlet(np.full(8, 0.7), size=9)
    sentences = []
    for _ in range(40):
        words = [0]
        for _ in range(int(random.integers(1, 9))):
            words.append(1 + int(random.choice(8, p=odds[words[-1]])))
        sentences.append(words[1:])
    pairs = pairs_of(sentences, 9)
    if len(set(itertools.chain.from_iterable(sentences))) < num_clusters:
        return
    actual = cluster_words(pairs, num_clusters, apart=(END,))
    clusters, made = sets_of(actual)
    expected, expected_made = greedy(pairs, num_clusters)
    assert clusters == set(expected)
    assert made == expected_made
    groups = {word: int(actual.clusters[word]) for word in range(1, 9) if actual.clusters[word] >= 0} | {END: -1}
    assert actual.mutual_information == pytest.approx(information(pairs, dict(groups)))


SUBJECTS, VERBS, OBJECTS = (1, 2, 3), (4, 5, 6), (7, 8, 9)


def test_words_with_the_same_neighbours_share_a_cluster() -> None:
    sentences = list(itertools.product(SUBJECTS, VERBS, OBJECTS)) * 3
    clusters, _ = sets_of(cluster_words(pairs_of(sentences, 11), 3, apart=(END,)))
    assert clusters == {frozenset(SUBJECTS), frozenset(VERBS), frozenset(OBJECTS)}


def test_paths_are_those_of_a_tree_with_the_clusters_as_leaves() -> None:
    sentences = list(itertools.product(SUBJECTS, VERBS, OBJECTS)) * 3 + [(10,)]
    actual = cluster_words(pairs_of(sentences, 11), 6, apart=(END,))
    paths = actual.paths()
    assert len(set(paths)) == 6
    assert sum(2.0 ** -len(path) for path in paths) == 1, "every leaf of a binary tree is a cluster"
    last_a, last_b = actual.merges[-1].tolist()
    leaves = {last_a, last_b} & set(range(6))
    assert all(len(paths[leaf]) == 1 for leaf in leaves)


def test_one_cluster_has_the_empty_path() -> None:
    actual = cluster_words(pairs_of([(1, 2)], 3), 1, apart=(END,))
    assert actual.paths() == [""]
    assert actual.clusters.tolist() == [-1, 0, 0]


def test_clusters_are_numbered_by_their_most_frequent_words() -> None:
    actual = cluster_words(pairs_of([(3,), (3,), (3, 2), (1, 2)], 4), 3, apart=(END,))
    assert actual.clusters.tolist() == [-1, 2, 1, 0]


def test_more_clusters_than_words_are_an_error() -> None:
    with pytest.raises(UsageError, match="num_classes = 3 is more than the 2 different words"):
        cluster_words(pairs_of([(1, 2)], 5), 3, apart=(END,))
