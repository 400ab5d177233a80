"""n-gram counts of texts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statistical.ngram_oracle import BOS, EOS, PAD, UNK, ngrams
from statistical.ngram_texts import VOCAB_SIZE, A, B, counts_of, texts

from heed.core.errors import DataError
from heed.statistical import ngram_counts
from heed.statistical.ngram_counts import NEVER, NgramCounts


def spelled(counts: NgramCounts) -> list[list[tuple[int, ...]]]:
    """The words of every n-gram, for each length."""
    actual = [[(word,) for word in counts.levels[0].words.tolist()]]
    for level in counts.levels[1:]:
        ends = zip(level.parents.tolist(), level.words.tolist(), strict=True)
        actual.append([(*actual[-1][parent], word) for parent, word in ends])
    return actual


@settings(max_examples=60)
@given(texts, st.integers(1, 5))
def test_counts_equal_those_of_a_dictionary(sentences: list[list[int]], order: int) -> None:
    counts = counts_of(sentences, order)
    for n, (level, words) in enumerate(zip(counts.levels, spelled(counts), strict=True), start=1):
        actual = {ngram: count for ngram, count in zip(words, level.counts.tolist(), strict=True) if count}
        assert actual == dict(ngrams(sentences, n))


@settings(max_examples=60)
@given(texts, st.integers(2, 5))
def test_ngrams_are_sorted_and_have_the_right_suffixes(sentences: list[list[int]], order: int) -> None:
    counts = counts_of(sentences, order)
    words = spelled(counts)
    for n in range(2, order + 1):
        level = counts.levels[n - 1]
        assert [words[n - 2][suffix] for suffix in level.suffixes] == [ngram[1:] for ngram in words[n - 1]]
        assert (np.diff(level.parents * VOCAB_SIZE + level.words) > 0).all()
        assert counts.begins(n).tolist() == [ngram[0] == BOS for ngram in words[n - 1]]


@given(texts.filter(bool), st.integers(1, 4), st.integers(1, 5))
def test_the_size_of_the_chunks_changes_nothing(sentences: list[list[int]], order: int, chunk: int) -> None:
    whole = counts_of(sentences, order)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ngram_counts, "_CHUNK", chunk)
        in_parts = counts_of(iter(sentences), order)  # type: ignore[arg-type]
    for a, b in zip(whole.levels, in_parts.levels, strict=True):
        for name in ("parents", "words", "suffixes", "counts"):
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name))
    np.testing.assert_array_equal(whole.first_seen, in_parts.first_seen)
    assert whole.num_tokens == in_parts.num_tokens


@given(texts.filter(bool), st.integers(2, 5))
def test_keys_too_large_to_be_sorted_with_their_positions_give_the_same_counts(
    sentences: list[list[int]], order: int
) -> None:
    usual = counts_of(sentences, order)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ngram_counts, "_BITS", 0)
        other = counts_of(sentences, order)
    for a, b in zip(usual.levels, other.levels, strict=True):
        for name in ("parents", "words", "suffixes", "counts"):
            np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


def test_the_largest_keys_that_fit_are_sorted_with_their_positions() -> None:
    for bits in (60, 61, 62, 63):  # of the largest key; three keys need two bits for their positions
        keys = np.array([(1 << bits) - 1, 0, (1 << bits) - 2])
        ordered, order = ngram_counts._sorted(keys.copy())
        assert (ordered.tolist(), order.tolist()) == (sorted(keys.tolist()), [1, 2, 0])


def test_the_first_occurrence_of_each_word_is_recorded() -> None:
    counts = counts_of([[B, A], [A, B]], 1)
    seen = {BOS: 0, B: 1, A: 2, EOS: 3}
    assert counts.first_seen.tolist() == [seen.get(word, NEVER) for word in range(VOCAB_SIZE)]


@pytest.mark.parametrize("sentences", [[[A, B], [B]], [np.array([A, B], dtype=np.uint16), np.array([B])]])
def test_sequences_may_be_lists_or_arrays(sentences: Sequence[Sequence[int]]) -> None:
    assert counts_of(sentences, 2).levels[1].counts.sum() == 5


def test_an_empty_sentence_is_a_begin_and_an_end() -> None:
    level = counts_of([[]], 2).levels[1]
    assert (level.parents.tolist(), level.words.tolist(), level.counts.tolist()) == ([BOS], [EOS], [1])


def test_no_text_has_no_ngrams() -> None:
    counts = counts_of([], 3)
    assert [len(level) for level in counts.levels] == [VOCAB_SIZE, 0, 0]
    assert not counts.levels[0].counts.any()


@pytest.mark.parametrize("wrong", [-1, VOCAB_SIZE])
def test_an_id_outside_the_vocabulary_is_an_error(wrong: int) -> None:
    with pytest.raises(DataError, match=f"token id {wrong} .* 0 to {VOCAB_SIZE - 1}"):
        counts_of([[A], [wrong]], 2)


@pytest.mark.parametrize("wrong", [PAD, BOS])
def test_begin_and_padding_inside_a_sentence_are_an_error(wrong: int) -> None:
    with pytest.raises(DataError, match=f"token id {wrong} "):
        counts_of([[UNK, wrong]], 2)
