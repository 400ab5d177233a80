"""Solutions of chapter 4: which spans are phrases, and how links of two directions grow together."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import pytest

from heed.statistical.alignment.pairs import Links
from heed.statistical.alignment.symmetrise import grow_diag, intersection, union
from heed.statistical.phrases.extraction import Span, consistent_spans


def phrases(num_src: int, num_tgt: int, links: Links) -> set[Span]:
    """Solution 1, by the definition: a link inside, and none that leads out."""
    found = set()
    for begin, low in product(range(num_src), range(num_tgt)):
        for end, high in product(range(begin + 1, num_src + 1), range(low + 1, num_tgt + 1)):
            sides = [(begin <= i < end, low <= j < high) for i, j in links]
            if (True, True) in sides and all(a == b for a, b in sides):
                found.add((begin, end, low, high))
    return found


@pytest.mark.parametrize(
    "order, num_phrases",
    [((0, 1, 2, 3), 10), ((3, 2, 1, 0), 10), ((1, 3, 0, 2), 5), ((1, 0, 3, 2), 7)],
    ids=["monotone", "reversed", "two inside out", "two swaps"],
)
def test_the_order_of_the_words_decides_how_many_phrases_there_are(order: Sequence[int], num_phrases: int) -> None:
    """n words in order, or in reverse, have n (n + 1) / 2 pairs; 1 3 0 2 has its four words and the whole alone."""
    links = frozenset(enumerate(order))
    found = phrases(4, 4, links)
    assert len(found) == num_phrases
    assert set(consistent_spans(4, 4, links, longest=4)) == found


def test_a_word_without_a_link_multiplies_phrases() -> None:
    """Two linked pairs make three phrase pairs; a target word without a link between them makes five of them."""
    assert len(phrases(2, 2, frozenset({(0, 0), (1, 1)}))) == 3
    assert len(phrases(2, 3, frozenset({(0, 0), (1, 2)}))) == 5


def test_links_of_one_direction_are_added_where_they_touch() -> None:
    """Solution 2: (1, 2) touches (1, 1) and brings in target word 2; (3, 4) then touches nothing and stays out."""
    forward, backward = frozenset({(0, 0), (1, 1), (1, 2), (3, 4)}), frozenset({(0, 0), (1, 1), (0, 1)})
    assert intersection(forward, backward) == {(0, 0), (1, 1)}
    grown = grow_diag(forward, backward)
    assert grown == {(0, 0), (1, 1), (1, 2)}
    assert intersection(forward, backward) < grown < union(forward, backward)
