"""Paired tests: error rates, and the draws of sacreBLEU."""

import itertools

import numpy as np
import pytest
from noisy_systems import corpus
from sacrebleu.metrics import BLEU, CHRF, TER
from sacrebleu.significance import PairedTest, _bootstrap_resample

from heed.metrics import output_metric
from heed.metrics.likelihood import LikelihoodStatistics, TextLikelihood
from heed.metrics.significance import compare, paired_bootstrap, paired_randomisation, values

ORACLES = {"bleu": BLEU, "chrf": CHRF, "chrf++": lambda: CHRF(word_order=2), "ter": TER}


@pytest.fixture(autouse=True)
def _library_defaults(monkeypatch):
    monkeypatch.delenv("SACREBLEU_SEED", raising=False)


def statistics(name, references, *systems):
    """The sentence statistics of each system."""
    return [output_metric(name).statistics(system, references) for system in systems]


def by_sacrebleu(kind, name, references, a, b):
    _, columns = PairedTest([("a", a), ("b", b)], {name: ORACLES[name]()}, [references], kind, n_samples=200)()
    first, second = next(column for key, column in columns.items() if key != "System")
    return second.score - first.score, second.p_value


@pytest.mark.parametrize("name", ["bleu", "chrf", "chrf++", "ter"])
def test_the_paired_bootstrap_draws_as_sacrebleu_does_and_keeps_the_sign(name):
    references, *systems = corpus(noise=(0.40, 0.36))
    drawn = []
    for system in systems:
        oracle = ORACLES[name]()
        counted = oracle._extract_corpus_statistics(system, [references])
        drawn.append(np.array([score.score for score in _bootstrap_resample(counted, oracle, 200)[1]]))
    apart = drawn[1] - drawn[0]
    delta, p_value = paired_bootstrap(*statistics(name, references, *systems), samples=200)
    assert delta == pytest.approx(by_sacrebleu("bs", name, references, *systems)[0])
    assert p_value == pytest.approx((np.sum(abs(apart - apart.mean()) >= abs(delta)) + 1) / 201)


def shares_below_5_percent(num_lines, num_trials):
    """Of comparisons of equal systems: by the bootstrap, and by randomisation."""
    random = np.random.default_rng(0)
    actual = []
    for _ in range(num_trials):
        texts = [TextLikelihood.of_sentence("ab" * 20, -float(n), 3) for n in random.normal(60, 10, size=2 * num_lines)]
        a, b = LikelihoodStatistics.of(texts[:num_lines]), LikelihoodStatistics.of(texts[num_lines:])
        actual.append((paired_bootstrap(a, b, samples=100)[1], paired_randomisation(a, b, samples=100)[1]))
    return np.mean(np.array(actual) < 0.05, axis=0)


def test_one_of_twenty_comparisons_of_equal_systems_is_significant():
    # without a difference, p < 0.05 must occur in one comparison of twenty; dropping the sign makes it two
    shares = shares_below_5_percent(100, 200)
    assert all(0.02 < share < 0.08 for share in shares), shares


@pytest.mark.parametrize("name", ["bleu", "chrf", "chrf++"])  # differences of TER are often equal: see below
def test_paired_randomisation_is_that_of_sacrebleu(name):
    # 64 sentences: sacreBLEU draws all its random bits at once, and only whole groups of 32 come out the same
    texts = corpus(noise=(0.40, 0.36), num_sentences=64)
    actual = paired_randomisation(*statistics(name, *texts), samples=200)
    assert actual == pytest.approx(by_sacrebleu("ar", name, *texts))


def test_paired_randomisation_estimates_the_share_of_all_ways_to_swap():
    references, a, b = corpus(num_sentences=10, noise=(0.5, 0.3))
    edits = [
        [TER().sentence_score(line, [reference]).num_edits for line, reference in zip(system, references, strict=True)]
        for system in (a, b)
    ]
    fewer = np.subtract(*edits)
    signs = np.array(list(itertools.product([-1, 1], repeat=10)))
    share = np.mean(abs(signs @ fewer) >= abs(fewer.sum()))
    delta, p_value = paired_randomisation(*statistics("ter", references, a, b), samples=4000)
    assert delta == pytest.approx(-100 * fewer.sum() / sum(len(line.split()) for line in references))
    assert 0.05 < share < 0.95 and p_value == pytest.approx(share, abs=0.03)


@pytest.mark.parametrize("test", [paired_bootstrap, paired_randomisation])
def test_a_system_does_not_differ_from_itself(test):
    references, a, _ = corpus()
    assert test(*statistics("bleu", references, a, a), samples=50) == (0.0, 1.0)


@pytest.mark.parametrize("test", [paired_bootstrap, paired_randomisation])
def test_a_much_better_system_is_significantly_better_in_either_order(test):
    a, b = statistics("chrf", *corpus(noise=(0.9, 0.1)))
    delta, p_value = test(a, b, samples=300)
    assert delta > 20 and p_value < 0.01
    backwards, same = test(b, a, samples=300)
    assert backwards == -delta and same < 0.01


def test_a_difference_in_one_sentence_is_not_significant_by_randomisation():
    references, a, _ = corpus()
    b = [references[0], *a[1:]]
    delta, p_value = paired_randomisation(*statistics("ter", references, a, b), samples=100)
    assert delta < 0 and p_value == 1


def test_a_comparison_makes_both_tests():
    a, b = statistics("ter", *corpus(num_sentences=20))
    actual = compare(a, b)
    assert (actual.difference, actual.p_bootstrap) == paired_bootstrap(a, b)
    assert (actual.difference, actual.p_randomisation) == paired_randomisation(a, b)


def test_language_models_are_compared_by_bits_per_byte():
    texts = [f"{'ab' * (i % 7 + 1)}" for i in range(60)]
    nats = np.random.default_rng(0).uniform(2, 9, size=60)
    first, better = (
        LikelihoodStatistics.of(
            [TextLikelihood.of_sentence(text, -n + gain, 3) for text, n in zip(texts, nats, strict=True)]
        )
        for gain in (0.0, 0.5)
    )
    num_bytes = sum(len(text) + 1 for text in texts)
    actual = compare(first, better)
    assert actual.difference == pytest.approx(-0.5 * 60 / num_bytes / np.log(2))
    assert actual.p_bootstrap < 0.01 and actual.p_randomisation < 0.01
    same = compare(first, first)
    assert same.p_bootstrap == same.p_randomisation == 1


def test_on_five_lines_only_randomisation_keeps_its_error_rate():
    by_bootstrap, by_randomisation = shares_below_5_percent(5, 120)
    assert by_bootstrap > 0.1
    assert by_randomisation < 0.08


@pytest.mark.parametrize(("num_lines", "has_bootstrap"), [(19, False), (20, True)])
def test_few_lines_have_only_the_randomisation_test(num_lines, has_bootstrap):
    texts = [TextLikelihood.of_sentence("ab" * 20, -float(n), 3) for n in range(2 * num_lines)]
    actual = compare(LikelihoodStatistics.of(texts[:num_lines]), LikelihoodStatistics.of(texts[num_lines:]))
    assert (actual.p_bootstrap is not None) == has_bootstrap
    assert 0 < actual.p_randomisation <= 1


def test_equal_draws_are_scored_once_and_each_has_its_score():
    scored = []

    class Ratio:
        def value(self, totals):
            scored.append(totals.tolist())
            return totals[0] / totals[1]

    totals = np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0], [3.0, 4.0], [3.0, 4.0]])
    assert values(Ratio(), totals).tolist() == [0.5, 0.75, 0.5, 0.75, 0.75]
    assert scored == [[1.0, 2.0], [3.0, 4.0]]
