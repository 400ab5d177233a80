"""Maximum spanning trees of scores of edges (Chu & Liu 1965; Edmonds 1967)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def maximum_spanning_tree(scores: Floats, root: int) -> list[int]:
    """The head of each word of the tree with the highest sum of `scores[head, word]`; -1 for the root."""
    scores = scores.astype(np.float64)
    np.fill_diagonal(scores, -np.inf)
    scores[:, root] = -np.inf
    heads = _tree(scores, root)
    heads[root] = -1
    return heads


def _tree(scores: Floats, root: int) -> list[int]:
    """Take the best head of each word; contract a cycle into one word, and solve the rest."""
    heads: list[int] = scores.argmax(axis=0).tolist()
    heads[root] = root
    cycle = _cycle(heads, root)
    if not cycle:
        return heads
    rest = [word for word in range(len(heads)) if word not in set(cycle)]
    inside, new = np.array(cycle), len(rest)
    of_cycle = scores[[heads[word] for word in cycle], cycle]
    smaller = np.full((new + 1, new + 1), -np.inf)
    smaller[:new, :new] = scores[np.ix_(rest, rest)]
    into = scores[np.ix_(rest, cycle)] - of_cycle  # what entering the cycle at each of its words changes
    out_of = scores[np.ix_(cycle, rest)]
    smaller[:new, new], smaller[new, :new] = into.max(axis=1), out_of.max(axis=0)
    found = _tree(smaller, rest.index(root))
    for place, word in enumerate(rest):
        head = found[place]
        heads[word] = int(inside[out_of[:, place].argmax()]) if head == new else rest[head]
    entered = int(inside[into[found[new]].argmax()])
    heads[entered] = rest[found[new]]
    return heads


def _cycle(heads: list[int], root: int) -> list[int]:
    """The words of a cycle; empty without one."""
    state = [0] * len(heads)
    state[root] = 2
    for start in range(len(heads)):
        path, word = [], start
        while state[word] == 0:
            state[word] = 1
            path.append(word)
            word = heads[word]
        if state[word] == 1:
            return path[path.index(word) :]
        for seen in path:
            state[seen] = 2
    return []
