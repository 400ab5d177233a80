"""Tests of hashed n-grams, against n-grams counted in Python."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heed.statistical.text_ngrams import Counted, NgramOrders, incidence, ngrams_of, normal_form
from heed.text.words import split_words

MARKS = "\u0301\u094d\ufe0f"
TEXTS = st.lists(st.text(alphabet=f"abÄß ,.!\t_9語{MARKS}\u0e31\u200c\u200d\xad", max_size=20), min_size=1, max_size=4)
WORD = rf"\w[\w{MARKS}]*(?:[\u200c\u200d\xad]+[\w{MARKS}]+)*(?:(?<=[{MARKS}])\u200d)?|\S"


def words(text: str, order: int) -> Counter[str]:
    """N-grams of words, and of words and one end of the text."""
    tokens = ["<", *re.findall(WORD, normal_form(text)), ">"]
    counts = Counter(tokens[1:-1])
    for length in range(2, order + 1):
        counts.update(" ".join(tokens[i : i + length]) for i in range(len(tokens) - length + 1))
    return Counter({gram: n for gram, n in counts.items() if not (gram.startswith("< ") and gram.endswith(" >"))})


def characters(text: str, shortest: int, longest: int) -> Counter[str]:
    """N-grams of characters with blanks at most at their ends."""
    text = normal_form(text)
    grams = (text[i : i + n] for n in range(shortest, longest + 1) for i in range(len(text) - n + 1))
    return Counter(gram for gram in grams if " " not in gram[1:-1])


@given(TEXTS)
def test_hashes_are_those_of_the_ngrams_of_each_text(texts: list[str]) -> None:
    ngrams = ngrams_of(texts, NgramOrders(words=3, min_characters=2, characters=4))
    of_words, of_characters = ngrams.kinds
    for number, text in enumerate(texts):
        for found, expected in ((of_words, words(text, 3)), (of_characters, characters(text, 2, 4))):
            hashes = found.hashes[found.text == number]
            assert sorted(Counter(hashes.tolist()).values()) == sorted(expected.values())


@given(TEXTS)
def test_models_of_earlier_versions_cut_words_at_marks_as_before(texts: list[str]) -> None:
    found = ngrams_of(texts, NgramOrders(words=1, characters=0, cut_at_marks=True))
    words = [found.joined[b:e] for b, e in zip(found.kinds[0].begin, found.kinds[0].end, strict=True)]
    assert sorted(words) == sorted(re.findall(r"\w+|[^\w\s]", found.joined))


@pytest.mark.parametrize(
    "text", ["हिन्दी भाषा में", "bọ\u0301lá ẹ\u0300kọ\u0301 .", "می\u200cخواهم", "i\u0307stanbul", "a ก \u0e31 ก"]
)
def test_words_are_those_of_taggers(text: str) -> None:
    found = ngrams_of([text], NgramOrders(words=1, characters=0))
    words = [found.joined[b:e] for b, e in zip(found.kinds[0].begin, found.kinds[0].end, strict=True)]
    assert words == text.split() == [word.text for word in split_words(text)]


@given(TEXTS)
def test_places_are_where_the_ngrams_are(texts: list[str]) -> None:
    ngrams = ngrams_of(texts, NgramOrders(words=1, min_characters=2, characters=3))
    for found in ngrams.kinds:
        names: dict[int, str] = {}
        for hashed, begin, end in zip(found.hashes.tolist(), found.begin, found.end, strict=True):
            assert names.setdefault(hashed, ngrams.joined[begin:end]) == ngrams.joined[begin:end]
        assert len(set(names.values())) == len(names)


def test_neighbours_do_not_change_the_ngrams_of_a_text() -> None:
    texts = ["a dog runs", "", "the dog sleeps . "]
    together = ngrams_of(texts, NgramOrders()).kinds
    for number, text in enumerate(texts):
        for block, alone in zip(together, ngrams_of([text], NgramOrders()).kinds, strict=True):
            assert block.hashes[block.text == number].tolist() == alone.hashes.tolist()


def test_rare_hashes_are_forgotten_when_there_are_too_many() -> None:
    counted = Counted(most=4)
    for hashes in ([1, 2, 3, 3], [3, 4, 5, 6], [2, 3, 9, 9]):
        counted.add(np.array(hashes, dtype=np.uint64))
    assert len(counted.hashes) <= 4
    assert 3 in counted.frequent(2, 10)
    assert counted.counts[counted.hashes == 3] == [4]
    assert counted.frequent(1, 1).tolist() == [3]


def test_of_equally_frequent_hashes_some_are_kept_only_where_none_would_remain() -> None:
    counted = Counted()
    counted.add(np.array([4, 4, 4, 1, 1, 2, 2], dtype=np.uint64))
    assert counted.frequent(1, 2).tolist() == [4]
    counted.add(np.array([1, 2, 3], dtype=np.uint64))
    assert counted.frequent(1, 3).tolist() == [1, 2, 4]
    assert counted.frequent(1, 2).tolist() == [1, 2]
    assert counted.frequent(1, 1).tolist() == [1]


def test_incidences_are_distinct_known_ngrams() -> None:
    found = ngrams_of(["a b a", "c", "b"], NgramOrders(words=1, characters=0)).kinds[0]
    vocabulary = np.unique(found.hashes[found.text != 1])
    columns, offsets, counts = incidence(found, vocabulary, 3)
    assert offsets.tolist() == [0, 2, 2, 3]
    assert sorted(columns[:2].tolist()) == [0, 1]
    assert columns[2] in columns[:2]
    assert sorted(counts[:2].tolist()) == [1, 2] and counts[2] == 1
