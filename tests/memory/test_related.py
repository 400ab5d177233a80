"""Related sentences are found by BM25 as by its definition, and ordered by what they share with the query."""

from __future__ import annotations

import math
from collections.abc import Sequence
from difflib import SequenceMatcher
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import heed.memory.related as related
from heed.memory.related import K1, B, RelatedSentences

Sentences = list[list[int]]
SENTENCES = st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=6), min_size=1, max_size=12)


def bm25(query: Sequence[int], sentences: Sentences) -> list[float]:
    """The score of each sentence, with loops."""
    mean = sum(map(len, sentences)) / len(sentences)
    scores = []
    for sentence in sentences:
        score = 0.0
        for token in set(query):
            frequency = sum(token in each for each in sentences)
            count = sentence.count(token)
            if count:
                inverse = math.log(1 + (len(sentences) - frequency + 0.5) / (frequency + 0.5))
                score += inverse * count * (K1 + 1) / (count + K1 * (1 - B + B * len(sentence) / mean))
        scores.append(score)
    return scores


@given(SENTENCES, st.lists(st.integers(0, 12), max_size=6), st.data())
def test_the_best_by_bm25_are_ordered_by_similarity(
    sentences: Sentences, query: list[int], data: st.DataObject
) -> None:
    """However many are added at a time."""
    cuts = data.draw(st.lists(st.integers(0, len(sentences)), max_size=4))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(related, "NUM_CANDIDATES", 4)
        index = RelatedSentences()
        for first, last in pairwise((0, *sorted(cuts), len(sentences))):
            index.add(sentences[first:last])
        found = index.find(query, 3)
    scores = bm25(query, sentences)
    candidates = sorted((score for score in scores if score > 0), reverse=True)[:4]
    similarity = [SequenceMatcher(None, query, each, autojunk=False).ratio() for each in sentences]
    assert len(found) == min(3, len(candidates))
    assert all(scores[i] >= candidates[-1] - 1e-5 for i in found)
    assert list(found.values()) == [similarity[i] for i in found] == sorted(found.values(), reverse=True)


def test_a_sentence_is_most_related_to_itself() -> None:
    sentences = [[1, 2, 3], [3, 2, 1], [1, 2, 3, 4], [7, 8]]
    index = RelatedSentences(sentences)
    assert [index.find(each, 1) for each in sentences] == [{0: 1.0}, {1: 1.0}, {2: 1.0}, {3: 1.0}]
    assert list(index.find([1, 2, 3], 9)) == [0, 2, 1]


def test_texts_that_take_long_to_compare_are_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The best by BM25 are compared."""
    index = RelatedSentences([[1] * 6, [1] * 6 + [2], [1] * 6 + [3, 3], [4]])
    assert list(index.find([1] * 5)) == [0, 1, 2]
    for most, found in ((90, [0, 1, 2]), (89, [0, 1]), (0, [0])):
        monkeypatch.setattr(related, "MAX_EQUAL", most)
        assert list(index.find([1] * 5)) == found


@pytest.mark.parametrize(
    ("first", "found", "most_asked"),
    [(0, [0, 1, 2, 3], 4), (51, [51, 52, 53, 54], 59), (58, [58], 59), (59, [], 59)],
)
def test_sentences_that_cannot_be_used_hide_none_that_can(
    first: int, found: list[int], most_asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many are more related to the query; each is asked about once, and only until there are enough."""
    monkeypatch.setattr(related, "NUM_CANDIDATES", 4)
    index = RelatedSentences([[1, 2, 3]] * 50 + [[1, 2, 3, 4 + n] for n in range(9)] + [[8]])
    asked: list[int] = []

    def usable(some: Sequence[int]) -> list[int]:
        asked.extend(some)
        return [n for n in some if n >= first]

    assert list(index.find([1, 2, 3], 4, usable)) == found
    assert len(asked) == len(set(asked)) <= most_asked


@pytest.mark.parametrize("query", [[], [99], [9]])
def test_a_query_that_shares_nothing_finds_nothing(query: list[int]) -> None:
    assert RelatedSentences([[1, 2], [3], []]).find(query, 5) == {}


def test_an_empty_index_finds_nothing() -> None:
    assert RelatedSentences([]).find([1], 5) == {}


def test_what_is_found_does_not_depend_on_how_it_was_added() -> None:
    sentences = [[i % 7, i % 5, i % 3] for i in range(40)]
    at_once, one_by_one = RelatedSentences(sentences), RelatedSentences()
    for sentence in sentences:
        one_by_one.add([sentence])
    assert len(one_by_one._parts) <= 6
    for query in ([1, 2], [6, 4, 2], [0]):
        assert at_once.find(query) == one_by_one.find(query)


def test_the_search_ends_where_many_sentences_cannot_be_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(related, "MOST_ASKED_IN_ALL", 100)
    asked: list[int] = []

    def usable(some: Sequence[int]) -> list[int]:
        asked.extend(some)
        return []

    assert RelatedSentences([[1, number] for number in range(1000)]).find([1], 4, usable) == {}
    assert 100 <= len(asked) < 300
