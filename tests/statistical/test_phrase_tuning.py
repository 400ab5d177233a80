"""The line search of minimum error rate training against trying every interval, and tuning as a whole."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from itertools import combinations, pairwise

import numpy as np
import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st

from heed.statistical.phrases.bleu import NUM_STATISTICS, bleu, statistics
from heed.statistical.phrases.derivations import PhraseApplication, PhraseDerivation
from heed.statistical.phrases.features import FEATURES, UNKNOWN, beginning_weights
from heed.statistical.phrases.line_search import Candidates, ascend, best_step
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
        translate, [[(word,) for word in reference]], lambda ids: [(id,) for id in ids], begin, 3, 1, lambda _: None
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
    tune(translate, references, lambda ids: [(id,) for id in ids], beginning_weights(), 1, 1, lambda _: None)
    assert len(kept) == 4 * 2
