"""Maximum spanning trees against the best of all trees."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from heed.metrics.spanning_tree import maximum_spanning_tree


def is_tree(heads: tuple[int, ...], root: int) -> bool:
    """Whether every word reaches the root."""
    for word in range(len(heads)):
        seen = 0
        while word != root and seen <= len(heads):
            word, seen = heads[word], seen + 1
        if word != root:
            return False
    return True


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5])
def test_the_tree_has_the_highest_sum_of_all_trees(number: int) -> None:
    for seed in range(40):
        scores = np.random.default_rng(seed).normal(size=(number, number))
        root = seed % number
        found = maximum_spanning_tree(scores, root)
        assert found[root] == -1 and is_tree(tuple(found), root)
        total = sum(scores[head, word] for word, head in enumerate(found) if word != root)
        every = itertools.product(*[range(number) if word != root else [-1] for word in range(number)])
        trees = (heads for heads in every if all(h != w for w, h in enumerate(heads)) and is_tree(heads, root))
        best = max(sum(scores[h, w] for w, h in enumerate(heads) if w != root) for heads in trees)
        assert total == pytest.approx(best)
