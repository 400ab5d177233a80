"""The stack search against all derivations of a sentence, and the n best of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heed.statistical.backoff import BackoffModel
from heed.statistical.estimation import estimate
from heed.statistical.ngram_counts import NgramCounts
from heed.statistical.phrases.derivations import BestDerivations, PhraseDerivation
from heed.statistical.phrases.extraction import LinkedText
from heed.statistical.phrases.features import AFTER, BEFORE, DISTORTION, FEATURES, LANGUAGE, LANGUAGES, feature_names
from heed.statistical.phrases.language import LanguageScorer
from heed.statistical.phrases.options import COPIED, OptionFinder, Options, future_scores
from heed.statistical.phrases.search import Limits, StackSearch
from heed.statistical.phrases.table import score_phrases
from heed.statistical.phrases.word_classes import LEFT_OUT, in_classes
from heed.statistical.predictor import Floats
from heed.statistical.smoothing import SmoothingConfig

NUM_WORDS, BOS, EOS, PAD = 12, 1, 2, 0
FIRST = 3


def language_model(sentences: list[list[int]], order: int, num_words: int = NUM_WORDS) -> BackoffModel:
    """A smoothed model of some sentences."""
    counts = NgramCounts.of(sentences, order, num_words, BOS, EOS, PAD)
    predictable = np.ones(num_words, dtype=np.bool_)
    predictable[[PAD, BOS]] = False
    return estimate(counts, SmoothingConfig(), predictable)


class World:
    """A small random text with its table, language models and weights."""

    def __init__(self, seed: int, has_classes: bool = False) -> None:
        rng = np.random.default_rng(seed)
        pairs, links = [], []
        for _ in range(6):
            src, tgt = (rng.integers(FIRST, NUM_WORDS, rng.integers(2, 5)).tolist() for _ in range(2))
            pairs.append((src, tgt))
            links.append(frozenset((int(rng.integers(len(src))), j) for j in range(len(tgt)) if rng.random() < 0.8))
        self.table = score_phrases(LinkedText.of(pairs, links, 3), NUM_WORDS)
        targets = [tgt for _, tgt in pairs]
        self.languages = [LanguageScorer(language_model(targets, 3))]
        if has_classes:
            classes = np.arange(NUM_WORDS) % 3 + FIRST
            classes[NUM_WORDS - 1] = LEFT_OUT
            of_targets = language_model(in_classes(classes, targets), 4, FIRST + 3)
            self.languages.append(LanguageScorer(of_targets, classes))
        self.weights = rng.normal(0.3, 0.4, len(feature_names(has_classes)))
        self.weights[DISTORTION] = abs(self.weights[DISTORTION])
        known = sorted({word for src, _ in pairs for word in src})
        chosen = rng.choice(known, int(rng.integers(1, 5))).tolist()
        self.words: list[tuple[int, ...]] = [(word,) for word in chosen]
        if rng.random() < 0.5:
            self.words.append((FIRST, NUM_WORDS - 1))  # spelled by two tokens, so unknown

    def options(self, limit: int = 3) -> Options:
        """The options of the sentence."""
        return OptionFinder(self.table, self.languages, self.weights, limit).find(self.words)

    def best(self, number: int, limits: Limits, limit: int = 3) -> list[PhraseDerivation]:
        """The n best derivations."""
        graph = StackSearch(self.options(limit), self.languages, self.weights, limits).run()
        return list(islice(BestDerivations(graph), number))


def orders(options: Options, distortion: int) -> Iterator[list[int]]:
    """All sequences of options that translate each word once, within the distortion limit."""
    n = options.num_words
    spans = list(zip(options.begins.tolist(), options.ends.tolist(), strict=True))

    def extend(covered: frozenset[int], last: int, chosen: list[int]) -> Iterator[list[int]]:
        if len(covered) == n:
            yield chosen
            return
        gap = min(set(range(n)) - covered)
        for option, (begin, end) in enumerate(spans):
            if not covered.isdisjoint(range(begin, end)):
                continue
            if distortion >= 0 and (abs(begin - last) > distortion or (begin != gap and end - gap > distortion)):
                continue
            yield from extend(covered | set(range(begin, end)), end, [*chosen, option])

    return extend(frozenset(), 0, [])


def features_of(world: World, options: Options, chosen: list[int]) -> Floats:
    """The features of a derivation, computed from its definition, with the model's own probabilities."""
    features = np.zeros(len(world.weights))
    words: list[int] = []
    last = (0, 0)
    for place, option in enumerate(chosen):
        begin, end, row = int(options.begins[option]), int(options.ends[option]), int(options.rows[option])
        words += options.words[option, : options.lengths[option]].tolist()
        features[4] += 1
        features[6] += row == COPIED
        if row != COPIED:
            features[:4] += world.table.features[row]
        features[DISTORTION] -= abs(begin - last[1])
        turn = 0 if begin == last[1] else 1 if end == last[0] else 2
        if row != COPIED:
            features[BEFORE + turn] += world.table.orientations[row, turn]
        following = chosen[place + 1] if place + 1 < len(chosen) else None
        n = options.num_words
        after = (n, -1) if following is None else (int(options.begins[following]), int(options.ends[following]))
        turn = 0 if after[0] == end else 1 if after[1] == begin else 2
        if row != COPIED:
            features[AFTER + turn] += world.table.orientations[row, 3 + turn]
        last = begin, end
    features[5] = len(words)
    for feature, scorer in zip(LANGUAGES, world.languages, strict=False):
        model, known = scorer.model, words
        if scorer.classes is not None:
            known = [int(scorer.classes[word]) for word in words if scorer.classes[word] != LEFT_OUT]
        contexts = [model.start[None, None]]
        if known:
            contexts.append(model.follow(model.start[None], np.array([known], dtype=np.int64)))
        features[feature] = model.log_prob(np.concatenate(contexts, axis=1)[0], np.array([*known, EOS])).sum()
    return features


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([-1, 0, 1, 2]), st.booleans())
def test_without_pruning_the_search_finds_the_best_of_all_derivations(
    seed: int, distortion: int, has_classes: bool
) -> None:
    world = World(seed, has_classes)
    options = world.options()
    scores = sorted(
        (float(features_of(world, options, chosen) @ world.weights) for chosen in orders(options, distortion)),
        reverse=True,
    )
    found = world.best(len(scores) + 1, Limits(width=0, distortion=distortion))
    assert [each.score for each in found] == pytest.approx(scores, abs=1e-4)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([0, 1, 3]), st.booleans())
def test_the_score_of_a_derivation_is_the_weighted_sum_of_its_features(
    seed: int, width: int, has_classes: bool
) -> None:
    world = World(seed, has_classes)
    for each in world.best(5, Limits(width=width, threshold=2.0 if width else 0.0), limit=0):
        assert each.score == pytest.approx(float(each.features @ world.weights), abs=1e-4)
        covered = sorted(place for step in each.steps for place in range(step.begin, step.end))
        assert covered == list(range(len(world.words)))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 4))
def test_a_wider_stack_never_holds_fewer_hypotheses_and_pruning_respects_its_limits(seed: int, width: int) -> None:
    world = World(seed)
    graph = StackSearch(world.options(0), world.languages, world.weights, Limits(width, 1.0)).run()
    for stack in graph.stacks[1:]:
        totals = stack.best.totals
        assert len(totals) <= width
        assert (np.diff(totals) <= 0).all()
        assert len(totals) == 0 or totals[0] - totals[-1] <= 1.0


def test_hypotheses_that_no_further_step_tells_apart_are_merged_and_all_ways_to_them_are_kept() -> None:
    """Six words in order, as phrases of one or two, written alike whatever the phrases: 13 derivations.

    A hypothesis is known by its last phrase, so each stack has two, and each has the best of its ways first.
    """
    words, weights = list(range(FIRST, FIRST + 6)), np.zeros(len(FEATURES))
    weights[[4, LANGUAGE]] = -1.0, 1.0  # each phrase costs 1
    table = score_phrases(LinkedText.of([(words, words)], [frozenset((n, n) for n in range(6))], 2), NUM_WORDS)
    language = LanguageScorer(language_model([words], 3))
    options = OptionFinder(table, [language], weights, 0).find([(word,) for word in words])
    graph = StackSearch(options, [language], weights, Limits(width=0, distortion=0)).run()
    assert [len(stack.best) for stack in graph.stacks] == [1, 1, 2, 2, 2, 2, 2]
    for size, stack in enumerate(graph.stacks[2:], start=2):
        spans = {(size - 1, size), (size - 2, size)}
        assert {(options.begins[each], options.ends[each]) for each in stack.best.options} == spans
        for begin, end in zip(stack.bounds[:-1], stack.bounds[1:], strict=True):
            assert (np.diff(stack.ways.totals[begin:end]) <= 0).all()
    found = list(BestDerivations(graph))
    assert [len(each.steps) - 1 for each in found] == [3, *[4] * 6, *[5] * 5, 6]
    assert {each.target for each in found} == {tuple(words)}


def test_a_sentence_of_more_words_than_bits_is_translated() -> None:
    world = World(3)
    world.words = world.words[:1] * 130
    [best] = world.best(1, Limits(width=3, distortion=2), limit=1)
    assert sum(step.end - step.begin for step in best.steps) == 130


def test_a_line_of_more_phrases_than_half_the_levels_of_recursion_has_several_derivations() -> None:
    words, weights = list(range(FIRST, FIRST + 6)), np.zeros(len(FEATURES))
    weights[[4, LANGUAGE]] = 1.0  # many short phrases are best
    table = score_phrases(LinkedText.of([(words, words)], [frozenset((n, n) for n in range(6))], 2), NUM_WORDS)
    language = LanguageScorer(language_model([words], 3))
    options = OptionFinder(table, [language], weights, 0).find([(word,) for word in words] * 90)
    graph = StackSearch(options, [language], weights, Limits(width=2, distortion=0)).run()
    found = list(islice(BestDerivations(graph), 3))
    assert [len(each.steps) - 1 for each in found] == [540, 539, 539]


@given(st.integers(0, 1_000), st.integers(1, 9))
@settings(max_examples=30)
def test_the_estimate_of_the_rest_is_the_best_sum_of_adjacent_options(seed: int, num_words: int) -> None:
    rng = np.random.default_rng(seed)
    begins = rng.integers(0, num_words, 2 * num_words)
    ends = np.minimum(begins + rng.integers(1, 4, len(begins)), num_words)
    scores = rng.normal(size=len(begins))
    expected = np.full((num_words + 1, num_words + 1), -np.inf)
    for begin in range(num_words, -1, -1):
        expected[begin, begin] = 0.0
        for first, last, score in zip(begins, ends, scores, strict=True):
            if first == begin:
                expected[begin] = np.maximum(expected[begin], score + expected[last])
    assert future_scores(num_words, begins, ends, scores) == pytest.approx(expected)


def test_only_unknown_words_are_copied() -> None:
    world = World(5)
    world.words = [(FIRST, NUM_WORDS - 1)]
    [best] = world.best(9, Limits())
    assert best.target == (FIRST, NUM_WORDS - 1)
    assert best.steps[0].row == COPIED
    assert best.features[6] == 1


def test_the_language_scorer_agrees_with_the_model() -> None:
    rng = np.random.default_rng(1)
    model = language_model([rng.integers(FIRST, NUM_WORDS, 6).tolist() for _ in range(20)], 4)
    scorer = LanguageScorer(model)
    ids = rng.integers(FIRST, NUM_WORDS, (30, 5))
    expected = model.follow(np.tile(model.start, (30, 1)), ids)[..., 0]
    states = np.full(30, scorer.start)
    for place in range(5):
        words = ids[:, place]
        log_probs, after = scorer.step(states, words)
        assert log_probs == pytest.approx(model.log_prob(states[:, None], words))
        assert after.tolist() == expected[:, place].tolist()
        states = after
    sums, last = scorer.phrases(np.full(30, scorer.start), ids, np.full(30, 5))
    assert last.tolist() == states.tolist()
    assert math.isfinite(float(sums.sum()))
