"""Symmetrisation: the definitions, and a worked example."""

from __future__ import annotations

import random

import numpy as np
import pytest

from heed.statistical.alignment.pairs import Links
from heed.statistical.alignment.symmetrise import SYMMETRISATIONS, agreed

FORWARD: Links = frozenset({(0, 0), (1, 1), (1, 2), (3, 4)})
BACKWARD: Links = frozenset({(0, 0), (1, 1), (2, 2), (5, 5)})


def test_the_worked_example() -> None:
    combined = {name: sorted(combine(FORWARD, BACKWARD)) for name, combine in SYMMETRISATIONS.items()}
    both, grown = [(0, 0), (1, 1)], [(0, 0), (1, 1), (1, 2), (2, 2)]
    assert combined == {
        "intersection": both,
        "union": [(0, 0), (1, 1), (1, 2), (2, 2), (3, 4), (5, 5)],
        "grow-diag": grown,
        "grow-diag-final-and": [*grown, (3, 4), (5, 5)],
    }


@pytest.mark.parametrize("seed", range(20))
def test_each_is_between_intersection_and_union(seed: int) -> None:
    draw = random.Random(seed)
    forward, backward = (frozenset((draw.randrange(6), draw.randrange(6)) for _ in range(8)) for _ in range(2))
    sets = [combine(forward, backward) for combine in SYMMETRISATIONS.values()]
    intersection, union, grown, final = sets
    assert intersection <= grown <= final <= union


def test_agreement_links_words_whose_posteriors_have_a_high_geometric_mean() -> None:
    forward = np.array([[[0.1, 0.9, 0.0], [0.5, 0.1, 0.4]]])
    backward = np.array([[[0.3, 0.6, 0.1], [0.6, 0.2, 0.2]]])
    assert agreed(forward, backward).tolist() == [[[True, False], [False, True]]]


def test_a_link_between_two_linked_words_is_not_grown() -> None:
    links = SYMMETRISATIONS["grow-diag"](frozenset({(0, 0), (1, 1), (0, 1)}), frozenset({(0, 0), (1, 1)}))
    assert links == {(0, 0), (1, 1)}
