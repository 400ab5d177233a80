"""Related sentences are found by BM25 as by its definition, and ordered by what they share with the query."""

from __future__ import annotations

import math
from collections.abc import Sequence
from difflib import SequenceMatcher

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


@given(SENTENCES, st.lists(st.integers(0, 12), max_size=6))
def test_the_best_by_bm25_are_ordered_by_similarity(sentences: Sentences, query: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(related, "NUM_CANDIDATES", 4)
        found = RelatedSentences(sentences).find(query, 3)
    scores = bm25(query, sentences)
    candidates = sorted((score for score in scores if score > 0), reverse=True)[:4]
    similarity = [SequenceMatcher(None, query, each, autojunk=False).ratio() for each in sentences]
    assert len(found) == min(3, len(candidates))
    assert all(scores[i] >= candidates[-1] - 1e-5 for i in found)
    assert [similarity[i] for i in found] == sorted((similarity[i] for i in found), reverse=True)


def test_a_sentence_is_most_related_to_itself() -> None:
    sentences = [[1, 2, 3], [3, 2, 1], [1, 2, 3, 4], [7, 8]]
    index = RelatedSentences(sentences)
    assert [index.find(each, 1) for each in sentences] == [[0], [1], [2], [3]]
    assert index.find([1, 2, 3], 9) == [0, 2, 1]


@pytest.mark.parametrize("query", [[], [99], [9]])
def test_a_query_that_shares_nothing_finds_nothing(query: list[int]) -> None:
    assert RelatedSentences([[1, 2], [3], []]).find(query, 5) == []


def test_an_empty_index_finds_nothing() -> None:
    assert RelatedSentences([]).find([1], 5) == []
