"""Aligners with independent links, against sums over all alignments, known answers, and their text files."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Sequence

import numpy as np
import pytest
from alignment_oracle import BOOKS, MIXED, Alignment, lexical, summed, t

from heed.core.errors import UsageError
from heed.statistical.alignment import align
from heed.statistical.alignment import diagonal as diagonal_module
from heed.statistical.alignment import lexicon as lexicon_module
from heed.statistical.alignment import pairs as pairs_module
from heed.statistical.alignment.aligner import Aligner
from heed.statistical.alignment.diagonal import Diagonal
from heed.statistical.alignment.digamma import digamma
from heed.statistical.alignment.ibm1 import Ibm1, Independent
from heed.statistical.alignment.ibm2 import Ibm2
from heed.statistical.alignment.lexicon import Lexicon
from heed.statistical.alignment.pairs import NULL, Block, SentencePairs, Words
from heed.statistical.alignment.smoothing import FLOOR, NONE, Smoothing
from heed.statistical.alignment.training import train, train_pair


@pytest.mark.parametrize("name", ["ibm1", "ibm2", "diagonal"])
def test_likelihood_and_posteriors_are_sums_over_all_alignments(name: str) -> None:
    aligner = train(name, MIXED, iterations=3, smoothing=NONE)
    assert isinstance(aligner, Independent)

    def joint(source: Sequence[int], target: Sequence[int], alignment: Alignment) -> float:
        prior = np.broadcast_to(aligner.prior(len(source), len(target)), (len(target), len(source) + 1))
        places = math.prod(float(prior[j, i]) for j, i in enumerate(alignment))
        return places * lexical(lambda e, f: t(aligner, e, f), source, target, alignment)

    total, posteriors = summed(MIXED, joint)
    assert aligner.log_likelihood(MIXED) == pytest.approx(total)
    for ours, theirs in zip(aligner.posteriors(MIXED), posteriors, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-12)


@pytest.mark.parametrize("name", ["ibm1", "ibm2", "diagonal"])
def test_an_iteration_counts_the_posteriors(name: str) -> None:
    aligner = train(name, MIXED, iterations=2, smoothing=NONE)
    counts: dict[tuple[int, int], float] = {}
    for (source, target), rows in zip(MIXED, aligner.posteriors(MIXED), strict=True):
        for f, row in zip(target, rows, strict=True):
            for e, mass in zip([NULL, *source], row.tolist(), strict=True):
                counts[e, f] = counts.get((e, f), 0.0) + mass
    aligner.estimate(MIXED)
    for (e, f), count in counts.items():
        assert t(aligner, e, f) == pytest.approx(count / sum(n for (other, _), n in counts.items() if other == e))


def test_two_iterations_on_the_example_of_knight_by_hand() -> None:
    """b c ↔ x y and b ↔ y of Knight's tutorial (1999, section 28), by Model 1 without the empty word."""
    pairs = SentencePairs.of_ids([([2, 3], [2, 3]), ([2], [3])])

    class WithoutEmptyWord(Ibm1):
        def prior(self, num_src: int, num_tgt: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
            return np.array([0.0, *[1.0 / num_src] * num_src])

    aligner = WithoutEmptyWord.new(pairs)
    aligner.estimate(pairs)
    assert [t(aligner, 2, 2), t(aligner, 2, 3), t(aligner, 3, 2), t(aligner, 3, 3)] == [0.25, 0.75, 0.5, 0.5]
    aligner.estimate(pairs)
    assert t(aligner, 2, 3) == pytest.approx((0.6 + 1) / (0.6 + 1 + 1 / 3))
    for _ in range(100):
        aligner.estimate(pairs)
    assert t(aligner, 2, 3) > 0.99 and t(aligner, 3, 2) > 0.99


def test_model_2_with_a_uniform_table_and_the_diagonal_without_tension_are_model_1() -> None:
    one = train("ibm1", MIXED, smoothing=NONE)
    assert Ibm2.after(one).log_likelihood(MIXED) == pytest.approx(one.log_likelihood(MIXED))
    same_lengths = SentencePairs.of_ids([pair for pair in MIXED if len(pair[0]) == 3])
    diagonal = Diagonal(one.lexicon, tension=0.0, p_null=0.25)
    assert diagonal.log_likelihood(same_lengths) == pytest.approx(one.log_likelihood(same_lengths))


def test_the_tension_is_the_best_for_the_posteriors() -> None:
    aligner = train("diagonal", MIXED, iterations=3, smoothing=NONE)
    posteriors = aligner.posteriors(MIXED)
    aligner.estimate(MIXED)
    assert isinstance(aligner, Diagonal)

    def expected(tension: float) -> float:
        model = Diagonal(aligner.lexicon, tension=tension)
        priors = [model.prior(len(source), len(target)) for source, target in MIXED]
        return sum(float((p * np.log(q)).sum()) for p, q in zip(posteriors, priors, strict=True))

    best = max(np.linspace(0.1, 14, 500), key=expected)
    assert aligner.tension == pytest.approx(best, abs=0.05)


def test_the_tension_is_the_same_however_few_distances_are_held_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    expected, found = (train("diagonal", MIXED, iterations=3) for _ in range(2))
    expected.estimate(MIXED)
    monkeypatch.setattr(diagonal_module, "_CELLS", 2)
    found.estimate(MIXED)
    assert found.parameters() == expected.parameters()


def test_the_diagonal_model_needs_little_memory_for_long_pairs_of_different_lengths() -> None:
    aligner = Diagonal(Ibm1.new(MIXED).lexicon)
    words = np.zeros((1, 400), dtype=np.int64)
    tracemalloc.start()
    for length in range(390, 400):
        block = Block(np.zeros(1, dtype=np.int64), words[:, :200], words[:, :length])
        aligner.count(block, np.broadcast_to(aligner.prior(200, length), (1, length, 201)))
    aligner.finish()
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 5_000_000  # all priors have 6 million bytes
    assert aligner.tension == pytest.approx(4.0, abs=0.01)


def test_smoothing_raises_the_bound_of_variational_bayes() -> None:
    """log P with the sub-normalised table, minus the divergence of each row's posterior from its prior, never falls."""
    alpha = 0.1
    aligner = Ibm1.new(MIXED, Smoothing("variational", alpha))
    bounds = []
    for _ in range(6):
        counts = counts_of(aligner)
        aligner.estimate(MIXED)
        bounds.append(aligner.log_likelihood(MIXED) - divergence(counts, aligner.lexicon, alpha))
    assert (np.diff(bounds) > -1e-9).all()


def counts_of(aligner: Aligner) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """The expected counts of the entries of the table."""
    counts = aligner.lexicon.new_counts()
    for (source, target), rows in zip(MIXED, aligner.posteriors(MIXED), strict=True):
        keys = np.array([NULL, *source]) * aligner.lexicon.tgt_size + np.array(target)[:, None]
        np.add.at(counts, aligner.lexicon.find(keys), rows)
    return counts[: len(aligner.lexicon.keys)]


def divergence(counts: np.ndarray[tuple[int, ...], np.dtype[np.float64]], lexicon: Lexicon, alpha: float) -> float:
    """Σ_e KL(Dirichlet(counts + alpha) || Dirichlet(alpha))."""
    total = 0.0
    for begin, end in zip(lexicon.offsets[:-1].tolist(), lexicon.offsets[1:].tolist(), strict=True):
        row = counts[begin:end] + alpha
        if len(row):
            total += math.lgamma(row.sum()) - math.lgamma(alpha * len(row))
            total -= sum(math.lgamma(x) - math.lgamma(alpha) for x in row.tolist())
            total += float(((row - alpha) * (digamma(row) - digamma(np.array([row.sum()])))).sum())
    return total


def test_digamma_has_its_known_values() -> None:
    x = np.array([0.01, 0.5, 1.0, 2.0, 100.0])
    euler = 0.5772156649015329
    known = [-100.56088545786867, -euler - 2 * math.log(2), -euler, 1 - euler, 4.600161852738087]
    np.testing.assert_allclose(digamma(x), known, rtol=1e-9)


def test_the_size_of_blocks_and_of_sorted_parts_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = train("diagonal", MIXED)
    monkeypatch.setattr(pairs_module, "MAX_CELLS", 4)
    monkeypatch.setattr(lexicon_module, "_AT_ONCE", 8)
    monkeypatch.setattr(lexicon_module, "_IN_MEMORY", 16)
    again = SentencePairs.of_ids(list(MIXED))
    assert len(again.spans) > len(MIXED.spans)
    found = train("diagonal", again)
    assert (found.lexicon.keys == expected.lexicon.keys).all()
    assert found.log_likelihood(again) == pytest.approx(expected.log_likelihood(MIXED))


def test_the_table_has_the_pairs_of_words_that_share_a_sentence_pair_and_no_others() -> None:
    lexicon = Lexicon.of(BOOKS)
    shared = {(e, f) for source, target in BOOKS for e in (NULL, *source) for f in target}
    assert lexicon.keys.tolist() == sorted(e * BOOKS.tgt_size + f for e, f in shared)
    assert lexicon.probs[lexicon.find(np.array([2 * BOOKS.tgt_size + 5]))].tolist() == [FLOOR]  # the, Ein


def test_words_are_linked_by_the_function_on_texts() -> None:
    sources = [["the", "house"], ["the", "book"], ["a", "book"], []]
    targets = [["das", "haus"], ["das", "buch"], ["ein", "buch"], ["x"]]
    links = align(sources, targets, "ibm1", iterations=8, smoothing=NONE)
    assert links == [{(0, 0), (1, 1)}] * 3 + [frozenset()]
    with pytest.raises(UsageError, match="unknown aligner 'ibm9'; the aligners are ibm1"):
        align(sources, targets, "ibm9")
    with pytest.raises(ValueError, match="4 source sentences, but 1 target"):
        align(sources, targets[:1])


def test_words_are_numbered_in_order_and_unknown_ones_are_1() -> None:
    words = Words.of([["b", "a"], ["b"]])
    assert list(words) == ["b", "a"]
    folded = Words.of([["B", "b", "a"]], lowercase=True)
    assert list(folded) == ["b", "a"]
    assert SentencePairs.of([["A", "b", "C"]], [["b"]], folded, words)[0] == ([3, 2, 1], [2])
    assert SentencePairs.of([["a", "c"]], [["b"]], words, words)[0] == ([3, 1], [2])


@pytest.mark.parametrize("name", ["ibm1", "ibm2", "diagonal", "hmm"])
def test_words_whose_probabilities_underflow_can_still_be_linked(name: str) -> None:
    """With α = 0.001, exp ψ(α) is below the least number."""
    words = [["a", "b"], ["a", "c", "d"], ["a"], ["b", "c"]], [["x", "y"], ["x", "z", "w"], ["x", "x"], ["y", "z"]]
    trained = train_pair(name, *words, smoothing=Smoothing("variational", 1e-3))
    pairs = SentencePairs.of([["d", "d"]], [["x", "z"]], trained.src_words, trained.tgt_words)
    aligner = trained.aligners["forward"]
    [posteriors] = aligner.posteriors(pairs)
    assert np.allclose(posteriors.sum(-1), 1) and np.isfinite(aligner.log_likelihood(pairs))


def test_collapsed_smoothing_leaves_a_pair_out_of_its_own_counts() -> None:
    """The formula of the definition, cell by cell, in the third iteration."""
    alpha = 0.3
    aligner = train("ibm1", MIXED, iterations=2, smoothing=Smoothing("collapsed", alpha))
    own = train("ibm1", MIXED, iterations=1, smoothing=Smoothing("collapsed", alpha)).posteriors(MIXED)
    counts: dict[tuple[int, int], float] = {}
    for (source, target), rows in zip(MIXED, own, strict=True):
        for f, row in zip(target, rows.tolist(), strict=True):
            for e, mass in zip([NULL, *source], row, strict=True):
                counts[e, f] = counts.get((e, f), 0.0) + mass
    totals = [sum(count for (other, _), count in counts.items() if other == e) for e in range(MIXED.src_size)]
    num_targets = MIXED.tgt_size - 1
    for (source, target), before, after in zip(MIXED, own, aligner.posteriors(MIXED), strict=True):
        left = [
            [
                (counts[e, f] - mass + alpha) / (totals[e] - mass + alpha * num_targets)
                for e, mass in zip([NULL, *source], row, strict=True)
            ]
            for f, row in zip(target, before.tolist(), strict=True)
        ]
        np.testing.assert_allclose(after, np.array(left) / np.sum(left, axis=-1, keepdims=True), atol=1e-6)


def test_collapsed_probabilities_of_all_target_words_sum_to_one() -> None:
    lexicon = train("ibm1", MIXED).lexicon
    for e in (NULL, 2, 3, 4, 5):
        keys = e * lexicon.tgt_size + np.arange(1, lexicon.tgt_size)
        assert lexicon.probs[lexicon.find(keys)].sum() == pytest.approx(1)


def test_smoothing_needs_a_prior() -> None:
    with pytest.raises(ValueError, match="needs a prior that is a number above 0"):
        Smoothing("variational", 0.0)
