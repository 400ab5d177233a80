"""Phrase extraction and scoring against their definitions, by brute force."""

from __future__ import annotations

import math
from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heed.core.errors import DataError
from heed.statistical.alignment.pairs import Links
from heed.statistical.phrases.extraction import LinkedText, Span, consistent_spans, orientations
from heed.statistical.phrases.phrase_ids import number_phrases
from heed.statistical.phrases.table import PhraseTable, score_phrases

NUM_WORDS = 6
Pair = tuple[list[int], list[int]]
Phrases = tuple[tuple[int, ...], tuple[int, ...]]


@st.composite
def linked_pairs(draw: st.DrawFn) -> tuple[Pair, Links]:
    """A sentence pair with links."""
    words = st.lists(st.integers(0, NUM_WORDS - 1), min_size=1, max_size=5)
    src, tgt = draw(words), draw(words)
    places = list(product(range(len(src)), range(len(tgt))))
    return (src, tgt), frozenset(draw(st.lists(st.sampled_from(places), max_size=6)))


def is_consistent(span: Span, links: Links) -> bool:
    """The definition: a link inside, and none that leads out."""
    begin, end, low, high = span
    sides = [(begin <= i < end, low <= j < high) for i, j in links]
    return any(a and b for a, b in sides) and all(a == b for a, b in sides)


def all_consistent(num_src: int, num_tgt: int, links: Links, longest: int) -> set[Span]:
    """Every pair of spans that fulfils the definition."""
    spans = product(range(num_src), range(1, num_src + 1), range(num_tgt), range(1, num_tgt + 1))
    return {
        (b, e, low, high)
        for b, e, low, high in spans
        if 0 < e - b <= longest and 0 < high - low <= longest and is_consistent((b, e, low, high), links)
    }


@settings(max_examples=150, deadline=None)
@given(linked_pairs(), st.integers(1, 5))
def test_the_phrases_are_all_that_fulfil_the_definition(linked: tuple[Pair, Links], longest: int) -> None:
    (src, tgt), links = linked
    spans = list(consistent_spans(len(src), len(tgt), links, longest))
    assert len(spans) == len(set(spans))
    assert set(spans) == all_consistent(len(src), len(tgt), links, longest)


def test_the_phrases_of_a_known_example() -> None:
    # "michael geht davon aus" - "michael assumes": Koehn 2010, chapter 5.
    spans = set(consistent_spans(4, 2, frozenset({(0, 0), (1, 1), (2, 1), (3, 1)}), 7))
    assert spans == {(0, 1, 0, 1), (1, 4, 1, 2), (0, 4, 0, 2)}


@pytest.mark.parametrize(
    ("span", "expected"),
    [((0, 1, 0, 1), (0, 2)), ((1, 2, 2, 3), (1, 2)), ((2, 3, 1, 2), (2, 1)), ((1, 3, 1, 3), (0, 0))],
)
def test_orientations_of_a_turned_pair(span: Span, expected: tuple[int, int]) -> None:
    assert orientations(span, 4, 4, frozenset({(0, 0), (1, 2), (2, 1), (3, 3)})) == expected


def brute_force(pairs: list[Pair], links: list[Links], longest: int) -> dict[Phrases, list[float]]:
    """The four features of every phrase pair, from the definitions."""
    linked: Counter[tuple[int, int]] = Counter()
    for (src, tgt), of_pair in zip(pairs, links, strict=True):
        linked.update((src[i], tgt[j]) for i, j in of_pair)
        linked.update((src[i], -1) for i in range(len(src)) if all(a != i for a, _ in of_pair))
        linked.update((-1, tgt[j]) for j in range(len(tgt)) if all(b != j for _, b in of_pair))
    of_src, of_tgt = Counter[int](), Counter[int]()
    for (src_word, tgt_word), count in linked.items():
        of_src[src_word] += count
        of_tgt[tgt_word] += count
    occurrences: dict[Phrases, list[tuple[float, float]]] = {}
    for (src, tgt), of_pair in zip(pairs, links, strict=True):
        for begin, end, low, high in all_consistent(len(src), len(tgt), of_pair, longest):
            to_tgt, to_src = 1.0, 1.0
            for j in range(low, high):
                given = [src[i] for i, b in of_pair if b == j] or [-1]
                to_tgt *= sum(linked[f, tgt[j]] / of_src[f] for f in given) / len(given)
            for i in range(begin, end):
                given = [tgt[j] for a, j in of_pair if a == i] or [-1]
                to_src *= sum(linked[src[i], e] / of_tgt[e] for e in given) / len(given)
            key = tuple(src[begin:end]), tuple(tgt[low:high])
            occurrences.setdefault(key, []).append((to_src, to_tgt))
    sources, targets = Counter[tuple[int, ...]](), Counter[tuple[int, ...]]()
    for (f, e), each in occurrences.items():
        sources[f] += len(each)
        targets[e] += len(each)
    return {
        (f, e): [
            math.log(len(each) / targets[e]), math.log(max(a for a, _ in each)),
            math.log(len(each) / sources[f]), math.log(max(b for _, b in each)),
        ] for (f, e), each in occurrences.items()
    }  # fmt: skip


@settings(max_examples=50, deadline=None)
@given(st.lists(linked_pairs(), min_size=1, max_size=4), st.integers(1, 4))
def test_the_features_are_those_of_the_definitions(corpus: list[tuple[Pair, Links]], longest: int) -> None:
    pairs, links = [pair for pair, _ in corpus], [each for _, each in corpus]
    table = score_phrases(LinkedText.of(pairs, links, longest), NUM_WORDS)
    scored = {
        (table.sources.words(int(table.src_nodes[row])), table.target(int(table.tgt_nodes[row]))): table.features[row]
        for row in range(len(table))
    }
    expected = brute_force(pairs, links, longest)
    assert scored.keys() == expected.keys()
    for key, features in expected.items():
        assert scored[key].tolist() == pytest.approx(features, abs=1e-5)


@settings(max_examples=30, deadline=None)
@given(linked_pairs())
def test_a_table_keeps_the_links_inside_its_phrases(linked: tuple[Pair, Links]) -> None:
    (src, tgt), links = linked
    distinct = list(range(len(src))), list(range(len(tgt)))  # each phrase occurs once
    table = score_phrases(LinkedText.of([distinct], [links], 4), NUM_WORDS)
    for row in range(len(table)):
        f, e = table.sources.words(int(table.src_nodes[row])), table.target(int(table.tgt_nodes[row]))
        inside = {(i - f[0], j - e[0]) for i, j in links if i in f and j in e}
        assert set(table.links_of(row, len(e))) == inside


def test_orientations_are_counted_and_smoothed() -> None:
    pairs = [([0, 1], [2, 3]), ([0, 1], [3, 2])]
    links = [frozenset({(0, 0), (1, 1)}), frozenset({(0, 1), (1, 0)})]
    table = score_phrases(LinkedText.of(pairs, links, 1), NUM_WORDS)
    [row] = [row for row in range(len(table)) if table.sources.words(int(table.src_nodes[row])) == (1,)]
    shares = np.exp(table.orientations[row])
    # word 1 comes after word 0 once, and before it once, when nothing but the begin of the sentence is before it
    assert shares.tolist() == pytest.approx([1.5 / 3.5, 0.5 / 3.5, 1.5 / 3.5, 1.5 / 3.5, 1.5 / 3.5, 0.5 / 3.5])


def test_a_tree_of_phrases_numbers_and_restores_them() -> None:
    words = np.array([1, 2, 1, 2, 3])  # of two sentences: 1 2, and 1 2 3
    tree, nodes = number_phrases(words, np.array([0, 2, 2, 4]), np.array([2, 4, 5, 5]), 5)
    assert [tree.words(node) for node in nodes.tolist()] == [(1, 2), (1, 2), (1, 2, 3), (3,)]
    assert nodes[0] == nodes[1]
    flat, begins = tree.all_words(nodes)
    assert flat.tolist() == [1, 2, 1, 2, 1, 2, 3, 3]
    assert begins.tolist() == [0, 2, 4, 7, 8]


def test_a_table_is_restored_from_its_arrays_and_damaged_ones_are_refused() -> None:
    text = LinkedText.of([([0, 1], [2, 3])], [frozenset({(0, 0), (1, 1)})], 2)
    arrays = score_phrases(text, NUM_WORDS).arrays()
    again = PhraseTable.from_arrays(arrays, NUM_WORDS)
    assert all((array == again.arrays()[name]).all() for name, array in arrays.items())
    for name in arrays:
        with pytest.raises(DataError, match="phrase table"):
            PhraseTable.from_arrays({key: value for key, value in arrays.items() if key != name}, NUM_WORDS)


DAMAGES: dict[str, list[list[Any]]] = {
    "sources": [[0, 1, 25], [0, 1, 7, 7], [-1, 1, 7], [0.0, 1.0, 7.0], [[0, 1, 7]]],
    "targets": [[2, 3, 25], [3, 2, 21], [2, 3], [2, 3, 21, 30]],
    "offsets": [[0, 0, 1, 2], [0, 1, 1, 2, 3], [0, 0, 2, 1, 3], [1, 1, 1, 2, 3], [0, 0, 1, 2, 4]],
    "tgt_nodes": [[1, 2, 4], [1, 0, 3], [1, -1, 3], [1, 2], [1, 2, 3, 3], [1.0, 2.0, 3.0]],
    "features": [[[0, 0, 0, math.nan]] * 3, [[0, 0, 0, math.inf]] * 3, [[0, 0, 0]] * 3, [[0, 0, 0, 0]] * 2],
    "orientations": [[[0, 0, 0, 0, 0, math.nan]] * 3, [[0, 0, 0, 0]] * 3, [[0, 0, 0, 0, 0, 0]] * 4],
    "links": [[1, 1, 1 << 2], [1, 1, 1 << 14], [1, 2, 1], [1, 1, -1], [1, 1], [1, 1, 1 << 62]],
    "counts": [[1, 1, 0], [1, 1, -1], [1, 1], [1, 1, 1 << 31]],
}
"""For each array of a table of three pairs, others that are not consistent with the rest."""


def test_every_damaged_array_is_refused() -> None:
    text = LinkedText.of([([0, 1], [2, 3])], [frozenset({(0, 0), (1, 1)})], 2)
    arrays = score_phrases(text, NUM_WORDS).arrays()
    assert DAMAGES.keys() == arrays.keys()
    for name, others in DAMAGES.items():
        for other in others:
            with pytest.raises(DataError, match="phrase table"):
                PhraseTable.from_arrays({**arrays, name: np.array(other)}, NUM_WORDS)


def test_a_table_of_longer_phrases_than_its_links_allow_is_refused() -> None:
    words = np.arange(8) % NUM_WORDS
    tree, _ = number_phrases(words, np.array([0]), np.array([8]), NUM_WORDS)
    assert tree.lengths.tolist() == list(range(9))
    assert tree.is_consistent(8)
    assert not tree.is_consistent(7)


def test_several_pairs_of_a_source_phrase_have_ascending_targets() -> None:
    text = LinkedText.of([([0], [2]), ([0], [3])], [frozenset({(0, 0)})] * 2, 1)
    arrays = score_phrases(text, NUM_WORDS).arrays()
    for nodes in ([2, 1], [1, 1]):
        with pytest.raises(DataError, match="phrase table"):
            PhraseTable.from_arrays({**arrays, "tgt_nodes": np.array(nodes)}, NUM_WORDS)
