"""Lempel-Ziv phrases and predictions: equal to Lempel and Ziv's code."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heed.core.errors import DataError
from heed.statistical.lempel_ziv import ROOT, PhraseTree, code_bits, grow

EOS, A, B = 2, 4, 5
PREDICTABLE = np.arange(7) > 1
sentences_of = st.lists(st.lists(st.integers(3, 6), max_size=8), max_size=8)


def learn(*sentences: list[int]) -> PhraseTree:
    """The tree of some sentences."""
    return PhraseTree.learn(sentences, PREDICTABLE, EOS)


def phrases(tree: PhraseTree) -> list[tuple[int, ...]]:
    """The tokens of each node, the root's first."""
    actual: list[tuple[int, ...]] = [()]
    for parent, word in zip(tree.parents.tolist(), tree.words.tolist(), strict=True):
        actual.append((*actual[parent], word))
    return actual


def test_a_text_falls_into_phrases_one_token_longer_than_any_before() -> None:
    """a | ab | aba | b | end; then ab a is there: the end makes it aba end."""
    tree = learn([A, A, B, A, B, A, B], [A, B, A])
    assert phrases(tree)[1:] == [(A,), (A, B), (A, B, A), (B,), (EOS,), (A, B, A, EOS)]
    assert tree.sizes.tolist() == [7, 4, 3, 2, 1, 1, 1, 0]


def test_probabilities_are_shares_of_phrases() -> None:
    tree = learn([A, A, B, A, B, A, B], [A, B, A])
    root = np.exp(tree.log_probs(np.array([[ROOT]])))[0]
    v = 5  # tokens that may come
    assert root[[A, B, EOS, 3]].tolist() == pytest.approx(
        [(1 + 4 * 4) / (1 + 4 * 7), (1 + 4) / (1 + 4 * 7), (1 + 4) / (1 + 4 * 7), 1 / (1 + (v - 1) * 7)]
    )
    assert root[[0, 1]].tolist() == [0, 0]


@settings(max_examples=50)
@given(sentences_of, st.lists(st.integers(2, 6), min_size=1, max_size=10))
def test_probabilities_add_up_and_single_ones_agree(sentences: list[list[int]], ids: list[int]) -> None:
    tree = learn(*sentences)
    contexts = tree.follow(tree.start[None], np.array([ids]))[0]
    rows = tree.log_probs(contexts)
    np.testing.assert_allclose(np.exp(rows).sum(1), 1, rtol=1e-9)
    for word in range(7):
        alone = tree.log_prob(contexts, np.full(len(contexts), word))
        np.testing.assert_allclose(alone, rows[:, word])


@given(sentences_of, st.lists(st.integers(2, 6), min_size=1, max_size=10))
def test_the_next_phrase_begins_where_the_tree_ends(sentences: list[list[int]], ids: list[int]) -> None:
    tree = learn(*sentences)
    names = phrases(tree)
    before: tuple[int, ...] = ()
    for node, word in zip(tree.follow(tree.start[None], np.array([ids]))[0, :, 0].tolist(), ids, strict=True):
        before = (*before, word) if (*before, word) in names and word != EOS else ()
        assert names[node] == before


def adaptive_bits(data: bytes, primer: bytes) -> float:
    """-log2 of the probability of the bytes, each predicted by the phrases before its own."""
    children: dict[int, int] = {}
    grow(children, 256, primer)
    bits, node, phrase = 0.0, ROOT, list[int]()
    for byte in data:
        keys = np.array(list(children), dtype=np.int64)
        tree = PhraseTree(keys // 256, keys % 256, np.ones(256, dtype=np.bool_), -1)
        bits -= float(tree.log_prob(np.array([[node]]), np.array([byte]))[0]) / math.log(2)
        phrase.append(byte)
        node = children.get(node * 256 + byte, ROOT)
        if node == ROOT:
            grow(children, 256, phrase)
            phrase.clear()
    return bits


@settings(max_examples=40)
@given(st.binary(max_size=12) | st.text("ab", max_size=25).map(str.encode), st.text("ab", max_size=20).map(str.encode))
def test_the_length_of_the_code_equals_the_sum_of_the_predictions(data: bytes, primer: bytes) -> None:
    assert code_bits(data, primer) == pytest.approx(adaptive_bits(data, primer))


def test_repetition_makes_the_code_short() -> None:
    assert code_bits(b"") == 0
    assert code_bits(b"a") == 8
    assert code_bits(b"ab" * 5000) < 0.5 * 10_000
    assert code_bits(b"the dog", b"the dog and the cat " * 50) < code_bits(b"the dog")


def test_a_tree_is_restored_from_its_arrays() -> None:
    tree = learn([A, A, B, A, B, A, B], [A, B, A])
    again = PhraseTree.from_arrays(tree.arrays(), PREDICTABLE, EOS)
    contexts = np.arange(7)[:, None]
    np.testing.assert_array_equal(again.log_probs(contexts), tree.log_probs(contexts))


def test_a_tree_of_no_text_is_uniform() -> None:
    actual = np.exp(learn().log_probs(np.array([[ROOT]])))[0]
    np.testing.assert_allclose(actual[PREDICTABLE], 1 / 5)


@pytest.mark.parametrize(
    "changes",
    [{"parents": [5, 0]}, {"parents": [-1, 0]}, {"words": [A, 9]}, {"words": [A, 1]}, {"words": [A]},
     {"words": [[A], [B]]}, {"words": [A, A]}, {"parents": None}],
)  # fmt: skip
def test_inconsistent_arrays_are_an_error(changes: dict[str, Any]) -> None:
    arrays = {"parents": [0, 0], "words": [A, B], **changes}
    whole = {name: np.array(array, dtype=np.int32) for name, array in arrays.items() if array is not None}
    with pytest.raises(DataError, match="not a phrase tree"):
        PhraseTree.from_arrays(whole, PREDICTABLE, EOS)
