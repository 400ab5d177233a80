"""Laws of aligners (`heed.statistical.alignment.aligner.Aligner`), for every member of `ALIGNERS`."""

from __future__ import annotations

import numpy as np
import pytest
from alignment_oracle import BOOKS, MIXED

from heed.statistical.alignment import ALIGNERS
from heed.statistical.alignment.aligner import Aligner
from heed.statistical.alignment.pairs import SentencePairs
from heed.statistical.alignment.smoothing import NONE, Smoothing
from heed.statistical.alignment.training import train

every_aligner = pytest.mark.parametrize("name", ALIGNERS)


@every_aligner
@pytest.mark.parametrize("pairs", [BOOKS, MIXED], ids=["books", "mixed"])
def test_an_iteration_never_lowers_the_likelihood(name: str, pairs: SentencePairs) -> None:
    aligner: Aligner = train(name, pairs, iterations=1, smoothing=NONE)
    likelihoods = [aligner.log_likelihood(pairs)]
    for _ in range(8):
        aligner.estimate(pairs)
        likelihoods.append(aligner.log_likelihood(pairs))
    assert (np.diff(likelihoods) > -1e-9).all()
    assert likelihoods[-1] > likelihoods[0] or pairs is BOOKS  # which some models explain at once


@every_aligner
@pytest.mark.parametrize(
    "smoothing", [NONE, Smoothing("variational", 0.01), Smoothing("collapsed")], ids=lambda s: s.kind
)
def test_an_iteration_reports_the_likelihood_before_it(name: str, smoothing: Smoothing) -> None:
    aligner = train(name, MIXED, iterations=1, smoothing=smoothing)
    before = aligner.log_likelihood(MIXED)
    aligner.estimate(MIXED)
    assert aligner.last_log_likelihood == pytest.approx(before)


@every_aligner
def test_links_are_positions_of_the_pair(name: str) -> None:
    links = train(name, MIXED).links(MIXED)
    assert len(links) == len(MIXED)
    for (source, target), of_pair in zip(MIXED, links, strict=True):
        assert all(0 <= i < len(source) and 0 <= j < len(target) for i, j in of_pair)


@every_aligner
def test_the_posteriors_of_a_target_word_sum_to_one(name: str) -> None:
    for (source, target), of_pair in zip(MIXED, train(name, MIXED).posteriors(MIXED), strict=True):
        assert of_pair.shape == (len(target), len(source) + 1)
        np.testing.assert_allclose(of_pair.sum(-1), 1)
        assert (of_pair >= 0).all()


@every_aligner
def test_neighbours_in_a_block_do_not_change_a_pair(name: str) -> None:
    aligner = train(name, MIXED, smoothing=NONE)
    together = aligner.posteriors(MIXED)
    for place, pair in enumerate(MIXED):
        alone = SentencePairs.of_ids([pair])
        np.testing.assert_allclose(aligner.posteriors(alone)[0], together[place], atol=1e-12)


@every_aligner
def test_pairs_with_a_side_of_too_many_words_are_left_out(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heed.statistical.alignment.pairs.MAX_WORDS", 3)
    longer = SentencePairs.of_ids([*MIXED, ([2, 3, 4, 5], [5]), ([2], [2, 3, 4, 5])])
    aligner = train(name, longer)
    assert aligner.links(longer)[-2:] == [frozenset()] * 2
    assert aligner.log_likelihood(longer) == pytest.approx(train(name, MIXED).log_likelihood(MIXED))
    assert longer.num_targets == MIXED.num_targets


@every_aligner
def test_pairs_with_an_empty_side_have_no_links_and_no_likelihood(name: str) -> None:
    aligner = train(name, MIXED)
    odd = SentencePairs.of_ids([([], [2]), ([2, 3], [3]), ([2], [])])
    whole = SentencePairs.of_ids([([2, 3], [3])])
    assert [bool(links) for links in aligner.links(odd)] in ([False, True, False], [False, False, False])
    assert aligner.log_likelihood(odd) == pytest.approx(aligner.log_likelihood(whole))


MONOTONE = SentencePairs.of_ids([(words, words) for words in ([2, 3, 4], [4, 2, 5], [5, 4, 3], [3, 5, 2])])
"""Pairs whose words correspond in their order."""


@every_aligner
def test_words_that_were_not_trained_on_are_linked_by_what_a_model_knows_of_positions(name: str) -> None:
    aligner = train(name, MONOTONE)
    unknown = SentencePairs.of_ids([([1, 1, 1], [1, 1, 1])])
    assert np.isfinite(aligner.log_likelihood(unknown))
    if name == "ibm1":  # which knows nothing of them
        real = aligner.posteriors(unknown)[0][:, 1:]
        np.testing.assert_allclose(real, real[0, 0])
    else:
        assert aligner.links(unknown) == [{(0, 0), (1, 1), (2, 2)}]


@every_aligner
def test_the_parameters_are_restored(name: str) -> None:
    aligner = train(name, MIXED, smoothing=NONE)
    other = type(aligner)(aligner.lexicon)
    other.restore(aligner.parameters())
    assert other.log_likelihood(MIXED) == aligner.log_likelihood(MIXED)


@every_aligner
def test_the_example_of_the_book_is_aligned(name: str) -> None:
    assert train(name, BOOKS, iterations=8, smoothing=NONE).links(BOOKS) == [{(0, 0), (1, 1)}] * 3
