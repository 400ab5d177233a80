"""Are the bigram probabilities those of the definition?"""

import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heed.core.errors import DataError
from heed.statistical import bigram
from heed.statistical.bigram import BigramCounts

PAD, BOS, EOS, A, B = range(5)
VOCAB_SIZE = 7  # two tokens are never seen

corpora = st.lists(st.lists(st.integers(A, VOCAB_SIZE - 2), max_size=6), max_size=12)


def estimate(sequences, vocab_size=VOCAB_SIZE):
    return BigramCounts.estimate(sequences, vocab_size, bos_id=BOS, eos_id=EOS, pad_id=PAD)


def oracle(sequences, context, word):
    """The formula of the module, read off dictionaries."""
    pairs = Counter()
    for ids in sequences:
        framed = [BOS, *ids, EOS]
        pairs.update(itertools.pairwise(framed))
    if word in (BOS, PAD):
        return 0.0
    n1, n2 = (sum(count == n for count in pairs.values()) for n in (1, 2))
    discount = n1 / (n1 + 2 * n2) if n1 and n2 else 0.5
    word_count = sum(count for (_, w), count in pairs.items() if w == word)
    p_word = (word_count + 1) / (pairs.total() + VOCAB_SIZE - 2)
    after = [count for (v, _), count in pairs.items() if v == context]
    if not after:
        return p_word
    return max(pairs[context, word] - discount, 0) / sum(after) + discount * len(after) / sum(after) * p_word


def probability(counts, context, word):
    return np.exp(counts.log_prob(np.array([context]), np.array([word])))[0]


def test_two_sentences_by_hand():
    counts = estimate([[A, B], [A, A]], vocab_size=5)
    # pairs: bos a twice; a b, b eos, a a, a eos once
    assert counts.discount == pytest.approx(4 / (4 + 2 * 1))
    np.testing.assert_allclose(counts.unigram, [0, 0, (2 + 1) / (6 + 3), (3 + 1) / (6 + 3), (1 + 1) / (6 + 3)])
    assert probability(counts, A, B) == pytest.approx((1 - 2 / 3) / 3 + 2 / 3 * 3 / 3 * 2 / 9)
    assert probability(counts, BOS, A) == pytest.approx((2 - 2 / 3) / 2 + 2 / 3 * 1 / 2 * 4 / 9)
    assert probability(counts, BOS, EOS) == pytest.approx(2 / 3 * 1 / 2 * 3 / 9)


@settings(max_examples=50, deadline=None)
@given(corpora)
def test_probabilities_equal_the_formula_over_dictionaries(sequences):
    rows = np.exp(estimate(sequences).log_probs(np.arange(VOCAB_SIZE)))
    expected = [[oracle(sequences, context, word) for word in range(VOCAB_SIZE)] for context in range(VOCAB_SIZE)]
    np.testing.assert_allclose(rows, expected, rtol=1e-12)


@settings(max_examples=50, deadline=None)
@given(corpora)
def test_probabilities_sum_to_one_after_seen_and_unseen_contexts(sequences):
    rows = np.exp(estimate(sequences).log_probs(np.arange(VOCAB_SIZE)))
    np.testing.assert_allclose(rows.sum(axis=1), 1, atol=1e-12)


@settings(max_examples=50, deadline=None)
@given(corpora)
def test_rows_and_single_pairs_agree_to_the_bit(sequences):
    counts = estimate(sequences)
    contexts, words = (ids.ravel() for ids in np.indices((VOCAB_SIZE, VOCAB_SIZE)))
    rows = counts.log_probs(np.arange(VOCAB_SIZE))
    np.testing.assert_array_equal(counts.log_prob(contexts, words), rows.ravel())


def test_begin_and_padding_are_never_predicted():
    rows = estimate([[A, B], [A]]).log_probs(np.array([BOS, A, EOS]))
    assert (rows[:, [BOS, PAD]] == -np.inf).all()
    assert np.isfinite(np.delete(rows, [BOS, PAD], axis=1)).all()


def test_an_unseen_context_falls_back_to_the_words_alone():
    counts = estimate([[A, B], [A]])
    rows = np.exp(counts.log_probs(np.array([EOS, PAD])))
    np.testing.assert_allclose(rows, np.tile(counts.unigram, (2, 1)), rtol=1e-12)


def test_with_much_text_probabilities_become_relative_frequencies():
    counts = estimate([[A, B], [A, A], [A]] * 10_000)
    assert probability(counts, A, EOS) == pytest.approx(2 / 4, abs=1e-4)
    assert probability(counts, A, B) == pytest.approx(1 / 4, abs=1e-4)
    assert probability(counts, BOS, A) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("sequences", [[], [[A]], [[A], [A]]])
def test_the_discount_is_one_half_where_the_counts_tell_nothing(sequences):
    assert estimate(sequences).discount == 0.5


def test_a_model_of_no_text_is_uniform():
    rows = estimate([]).log_probs(np.array([BOS, A]))
    np.testing.assert_allclose(np.exp(rows), np.tile([0, 0, *[1 / 5] * 5], (2, 1)))


def test_an_empty_sentence_is_an_end_after_a_begin():
    counts = estimate([[]])
    assert (counts.offsets[BOS], counts.words.tolist(), counts.counts.tolist()) == (0, [EOS], [1])


def test_the_order_of_the_sentences_and_the_size_of_the_chunks_change_nothing(monkeypatch):
    random = np.random.default_rng(0)
    sequences = [random.integers(A, 50, size=random.integers(0, 9)).tolist() for _ in range(200)]
    expected = estimate(sequences, vocab_size=50).arrays()
    monkeypatch.setattr(bigram, "_CHUNK", 7)
    shuffled = [sequences[i] for i in random.permutation(200)]
    for name, array in estimate(iter(shuffled), vocab_size=50).arrays().items():
        np.testing.assert_array_equal(array, expected[name])


def test_sequences_may_be_arrays():
    lists = estimate([[A, B], [B]])
    arrays = estimate([np.array([A, B], dtype=np.uint16), np.array([B])])
    np.testing.assert_array_equal(lists.log_probs(np.arange(3)), arrays.log_probs(np.arange(3)))


def test_counts_come_back_from_their_arrays():
    counts = estimate([[A, B], [A, A], [B]])
    again = BigramCounts.from_arrays(counts.arrays())
    np.testing.assert_array_equal(again.log_probs(np.arange(VOCAB_SIZE)), counts.log_probs(np.arange(VOCAB_SIZE)))
    assert again.vocab_size == VOCAB_SIZE


@pytest.mark.parametrize("wrong", [-1, VOCAB_SIZE])
def test_an_id_outside_the_vocabulary_is_refused(wrong):
    with pytest.raises(DataError, match=f"token id {wrong} .* 0 to {VOCAB_SIZE - 1}"):
        estimate([[A], [wrong]])


@pytest.mark.parametrize("wrong", [PAD, BOS])
def test_begin_and_padding_inside_a_sequence_are_refused(wrong):
    with pytest.raises(DataError, match=f"token id {wrong} "):
        estimate([[A, wrong]])


def test_no_contexts_give_no_rows():
    none = np.array([], dtype=np.int64)
    assert estimate([[A]]).log_probs(none).shape == (0, VOCAB_SIZE)
    assert estimate([[A]]).log_prob(none, none).shape == (0,)
