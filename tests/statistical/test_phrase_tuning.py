"""The line search of minimum error rate training against trying every interval, and tuning as a whole."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from itertools import combinations, pairwise
from typing import cast

import numpy as np
import pytest
import sacrebleu
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from heed.statistical.phrases import tuning
from heed.statistical.phrases.bleu import NUM_STATISTICS, bleu, statistics
from heed.statistical.phrases.candidates import Candidates
from heed.statistical.phrases.derivations import PhraseApplication, PhraseDerivation
from heed.statistical.phrases.expected_bleu import Objective, log_bleu, maximise
from heed.statistical.phrases.features import FEATURES, UNKNOWN, beginning_weights
from heed.statistical.phrases.line_search import ascend, best_step
from heed.statistical.phrases.tuning import tune
from heed.statistical.predictor import Floats

WORDS = "abcdefgh"
texts = st.lists(st.sampled_from(range(len(WORDS))), min_size=4, max_size=9)


def random_candidates(rng: np.random.Generator, num_sentences: int = 4) -> Candidates:
    """n-best lists with small integer features, so that lines often cross in one point or are equal."""
    lists = []
    for _ in range(num_sentences):
        size = int(rng.integers(1, 6))
        reference = rng.integers(0, 3, 6).tolist()
        outputs = [rng.integers(0, 3, int(rng.integers(4, 8))).tolist() for _ in range(size)]
        counts = np.array([statistics(output, reference) for output in outputs])
        lists.append((rng.integers(-3, 4, (size, 3)).astype(float), counts))
    return Candidates.of(lists)


def by_brute_force(candidates: Candidates, weights: Floats, direction: Floats) -> float:
    """The highest BLEU in the middle of all intervals between crossings of any two lines of a sentence."""
    scores, slopes = candidates.features @ weights, candidates.features @ direction
    places = set()
    for row in range(len(scores)):
        for one, other in combinations(np.flatnonzero(candidates.exists[row]), 2):
            if slopes[row, one] != slopes[row, other]:
                places.add((scores[row, one] - scores[row, other]) / (slopes[row, other] - slopes[row, one]))
    ordered = sorted(places) or [0.0]
    wide = [(a, b) for a, b in pairwise(ordered) if b - a > 1e-6]
    middles = [ordered[0] - 1, ordered[-1] + 1, *((a + b) / 2 for a, b in wide)]
    return max(candidates.bleu(weights + step * direction) for step in middles)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 100_000))
def test_the_best_step_along_a_line_is_that_of_brute_force(seed: int) -> None:
    rng = np.random.default_rng(seed)
    candidates = random_candidates(rng)
    weights, direction = rng.normal(size=3), rng.normal(size=3)
    step, value = best_step(candidates, weights, direction)
    assert value == pytest.approx(by_brute_force(candidates, weights, direction))
    assert candidates.bleu(weights + step * direction) == pytest.approx(value)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 100_000))
def test_ascending_never_lowers_bleu(seed: int) -> None:
    rng = np.random.default_rng(seed)
    candidates, weights = random_candidates(rng, 8), rng.normal(size=3)
    tuned, value = ascend(candidates, weights, np.eye(3))
    assert candidates.bleu(tuned) == pytest.approx(value)
    assert value >= candidates.bleu(weights)
    assert all(best_step(candidates, tuned, direction)[1] < value + 1e-2 for direction in np.eye(3))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=4))
def test_bleu_of_tokens_is_that_of_sacrebleu(pairs: list[tuple[list[int], list[int]]]) -> None:
    sums = np.sum([statistics(output, reference) for output, reference in pairs], axis=0)
    outputs, references = ([" ".join(WORDS[id] for id in side) for side in sides] for sides in zip(*pairs, strict=True))
    expected = sacrebleu.corpus_bleu(outputs, [references], tokenize="none", smooth_method="none").score
    assert float(bleu(sums)) == pytest.approx(expected)


def test_nothing_has_a_bleu_of_zero() -> None:
    assert float(bleu(np.zeros(NUM_STATISTICS, dtype=np.int64))) == 0.0


def derivation(target: list[int], **features: float) -> PhraseDerivation:
    """A derivation with these features."""
    values = tuple(features.get(name.replace(" ", "_"), 0.0) for name in FEATURES)
    return PhraseDerivation(tuple(target), 0.0, (PhraseApplication(0, 1, tuple(target), 0, values),))


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 100_000))
def test_the_slope_of_the_bleu_of_expected_counts_is_that_of_finite_differences(seed: int) -> None:
    rng = np.random.default_rng(seed)
    candidates, near = random_candidates(rng), rng.normal(size=3)
    objective = Objective(candidates, near, np.array([True, True, False]), 0.1)
    at = objective.begin + rng.normal(size=len(objective.begin)) / 2
    value, slope = objective(at)
    for place in range(len(at)):
        moved = np.eye(len(at))[place] * 1e-6
        assert slope[place] == pytest.approx((objective(at + moved)[0] - objective(at - moved)[0]) / 2e-6, abs=1e-4)
    assert objective.weights(objective.begin) == pytest.approx(near)
    assert objective.weights(at)[2] == near[2]
    assert value <= 0


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 100_000))
def test_with_large_weights_it_is_the_bleu_of_the_best_candidates(seed: int) -> None:
    rng = np.random.default_rng(seed)
    candidates, weights = random_candidates(rng, 8), rng.normal(size=3)
    features = candidates.features + rng.uniform(0, 0.1, candidates.features.shape)  # without ties
    candidates = Candidates(features, candidates.statistics, candidates.exists)
    objective = Objective(candidates, 1e6 * weights, np.ones(3, dtype=np.bool_), 0.0)
    expected = candidates.bleu(weights)
    assume(expected)
    assert 100 * np.exp(objective(objective.begin)[0]) == pytest.approx(expected)


def test_expected_counts_have_the_bleu_of_counts() -> None:
    counts = np.array([5, 3, 2, 1, 8, 7, 6, 5, 10])
    for length in (10, 8, 4):
        counts[-1] = length
        assert 100 * np.exp(log_bleu(counts.astype(float))[0]) == pytest.approx(float(bleu(counts)))


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 100_000))
def test_the_objective_is_that_of_its_definition(seed: int) -> None:
    """By the formulas, sentence by sentence, with a kept weight whose feature differs."""
    rng = np.random.default_rng(seed)
    candidates, near = random_candidates(rng), rng.normal(size=3)
    objective = Objective(candidates, near, np.array([True, True, False]), 0.0)
    weights = objective.weights(objective.begin * 1.5)
    expected = np.zeros(NUM_STATISTICS)
    for row in range(len(candidates.exists)):
        scores = np.exp(candidates.features[row][candidates.exists[row]] @ weights)
        expected += (scores / scores.sum()) @ candidates.statistics[row][candidates.exists[row]]
    assert objective(objective.begin * 1.5)[0] == pytest.approx(log_bleu(expected)[0])


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 100_000))
def test_the_ascent_ends_where_the_slope_is_small(seed: int) -> None:
    rng = np.random.default_rng(seed)
    candidates, near, is_free = random_candidates(rng, 8), rng.normal(size=3), np.ones(3, dtype=np.bool_)
    scale = Objective(candidates, np.ones(3), is_free, 0.0).begin
    objective = Objective(candidates, near, is_free, 0.1)
    _, slope = objective(maximise(candidates, near, is_free, 0.1)[scale > 0] * scale[scale > 0])
    assert np.abs(slope).max(initial=0) < 1e-2


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 100_000))
def test_the_ascent_gains_and_a_penalty_keeps_the_weights_near(seed: int) -> None:
    rng = np.random.default_rng(seed)
    candidates, near, is_free = random_candidates(rng, 8), rng.normal(size=3), np.array([True, False, True])
    plain = Objective(candidates, near, is_free, 0.0)
    scale = Objective(candidates, np.ones(3), is_free, 0.0).begin
    values, distances = [], []
    for penalty in (0.01, 1.0, 100.0):
        found = maximise(candidates, near, is_free, penalty)
        assert found[1] == near[1]
        at = found[is_free] * scale
        values.append(plain(at)[0])
        distances.append(float(np.sum((at - plain.begin) ** 2)))
        assert values[-1] - penalty * distances[-1] >= plain(plain.begin)[0] - 1e-9
    assert values == sorted(values, reverse=True)
    assert distances == sorted(distances, reverse=True)


def test_tuning_finds_the_weights_that_choose_the_references() -> None:
    reference = [1, 2, 3, 4, 5]
    good = derivation(reference, words=5.0, distortion=-4.0)
    bad = derivation([1, 2, 3], words=3.0, distortion=0.0)

    def translate(weights: Floats) -> list[list[PhraseDerivation]]:
        ranked = sorted([good, bad], key=lambda each: -float(each.features @ weights))
        return [ranked]

    begin = beginning_weights()
    begin[FEATURES.index("words")] = -1.0
    assert translate(begin)[0][0] is bad
    tuned = tune(
        translate,
        [[(word,) for word in reference]],
        lambda ids: [(id,) for id in ids],
        begin,
        3,
        1,
        lambda _: None,
    )
    assert translate(tuned)[0][0] is good
    assert tuned[UNKNOWN] == begin[UNKNOWN]


def test_no_round_of_tuning_begins_after_the_time_limit() -> None:
    rounds, reports = 0, []

    def translate(_: Floats) -> list[list[PhraseDerivation]]:
        nonlocal rounds
        rounds += 1
        return [[derivation([rounds], words=float(rounds))]]

    begin = beginning_weights()
    tuned = tune(translate, [[(1,)]], lambda ids: [(id,) for id in ids], begin, 9, 1, reports.append, lambda: True)
    assert rounds == 1
    assert (tuned == begin).all()
    assert "time limit" in reports[-1]


def test_without_any_derivation_the_weights_are_kept() -> None:
    rounds = 0

    def translate(_: Floats) -> list[list[PhraseDerivation]]:
        nonlocal rounds
        rounds += 1
        return [[], []]

    begin = beginning_weights()
    assert (
        tune(translate, [[(1,)], [(2,)]], lambda ids: [(id,) for id in ids], begin, 3, 1, lambda _: None) == begin
    ).all()
    assert rounds == 1


def test_tuning_keeps_no_derivations_of_earlier_sentences() -> None:
    """All derivations of a thousand sentences need gigabytes."""
    kept: list[weakref.ref[PhraseDerivation]] = []

    def translate(_: Floats) -> Iterator[list[PhraseDerivation]]:
        for number in range(4):
            assert sum(each() is not None for each in kept) <= 1
            best = derivation([number], words=1.0)
            kept.append(weakref.ref(best))
            yield [best]
            del best

    references = [[(number,)] for number in range(4)]
    tune(
        translate,
        references,
        lambda ids: [(id,) for id in ids],
        beginning_weights(),
        1,
        1,
        lambda _: None,
    )
    assert len(kept) == 4 * 2


def test_the_first_step_is_careful_and_those_after_worse_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Line searches follow better rounds and those that find no new candidates, after which the tuning ends."""
    calls: list[str] = []
    kept = {"maximise": tuning.maximise, "improve": tuning.improve}

    def counted(name: str) -> Callable[..., Floats]:
        def call(*arguments: object) -> Floats:
            calls.append(name)
            return cast(Floats, kept[name](*arguments))

        return call

    for name in kept:
        monkeypatch.setattr(tuning, name, counted(name))

    def run(rounds: int, num_new: int) -> list[str]:
        calls.clear()
        number = 0

        def translate(_: Floats) -> list[list[PhraseDerivation]]:
            nonlocal number
            number += 1
            return [[derivation([min(number, num_new)], words=float(min(number, num_new)))]]

        tune(translate, [[(1,)]], lambda ids: [(id,) for id in ids], beginning_weights(), rounds, 1, lambda _: None)
        return list(calls)

    assert run(4, 9) == ["maximise"] * 4
    assert run(4, 1) == ["maximise", "improve"]
    assert run(8, 3) == ["maximise", "maximise", "maximise", "improve"]


def test_line_searches_follow_better_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "maximise", lambda *_: pytest.fail("a careful step"))
    monkeypatch.setattr(tuning, "improve", lambda _, weights, __: weights)
    reference, number = list(range(9)), 3

    def translate(_: Floats) -> list[list[PhraseDerivation]]:
        nonlocal number
        number += 1
        return [[derivation(reference[:number], words=float(number))]]

    monkeypatch.setattr(tuning, "_FIRST_SEARCH", 0)
    begin, words = beginning_weights(), [[(word,) for word in reference]]
    tune(translate, words, lambda ids: [(id,) for id in ids], begin, 4, 1, lambda _: None)
    assert number == 8
