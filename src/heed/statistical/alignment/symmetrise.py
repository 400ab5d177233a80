"""Symmetrisation: the links of both directions of a pair combined into one set (Och & Ney 2003; Koehn et al. 2003).

`grow-diag` begins with the links of both and adds links of either that touch a link, also diagonally, and bring in a
word without one, until there are none. `grow-diag-final-and` then adds further
links of either between two words that have none. `agreement` does not combine links, but posteriors: it links words
for which the geometric mean of both directions' exceeds a threshold (Liang, Taskar & Klein 2006, section 3.3).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from heed.statistical.alignment.pairs import Links
from heed.statistical.predictor import Bools, Floats

_NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))


def intersection(forward: Links, backward: Links) -> Links:
    """Links of both directions."""
    return forward & backward


def union(forward: Links, backward: Links) -> Links:
    """Links of either direction."""
    return forward | backward


def grow_diag(forward: Links, backward: Links) -> Links:
    """Links of both, and those of either that extend them to a word without a link."""
    return frozenset(_grown(forward, backward))


def grow_diag_final_and(forward: Links, backward: Links) -> Links:
    """As `grow_diag`, and then links of either between two words without one, first those of `forward`."""
    links = _grown(forward, backward)
    sources, targets = {i for i, _ in links}, {j for _, j in links}
    for direction in (forward, backward):
        for i, j in sorted(direction - links):
            if i not in sources and j not in targets:
                links.add((i, j))
                sources.add(i)
                targets.add(j)
    return frozenset(links)


def _grown(forward: Links, backward: Links) -> set[tuple[int, int]]:
    links, either = set(forward & backward), forward | backward
    sources, targets = {i for i, _ in links}, {j for _, j in links}
    num_before = -1
    while len(links) > num_before:
        num_before = len(links)
        for i, j in sorted(links):
            for down, right in _NEIGHBOURS:
                near = i + down, j + right
                if near in either and (near[0] not in sources or near[1] not in targets):
                    links.add(near)
                    sources.add(near[0])
                    targets.add(near[1])
    return links


AGREEMENT = "agreement"
THRESHOLD = 0.25
"""Of the geometric mean of posteriors; chosen on development data."""


def agreed(forward: Floats, backward: Floats) -> Bools:
    """Links [B, J, I] of a block by agreement, from posteriors [B, J, I + 1] and [B, I, J + 1]."""
    return np.asarray(forward[:, :, 1:] * backward[:, :, 1:].transpose(0, 2, 1) > THRESHOLD**2)


SYMMETRISATIONS: dict[str, Callable[[Links, Links], Links]] = {
    "intersection": intersection,
    "union": union,
    "grow-diag": grow_diag,
    "grow-diag-final-and": grow_diag_final_and,
}
