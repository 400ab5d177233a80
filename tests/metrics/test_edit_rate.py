"""Translation edit rate: edits and shifts equal those of sacreBLEU."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from noisy_systems import corpus
from sacrebleu.metrics import TER, lib_ter

from heed.metrics import edit_rate
from heed.metrics.edit_rate import FastTer, translation_edit_rate
from heed.metrics.translation import Ter

Words = list[str]

LIMITS = {
    "LONGEST_RUN": "_MAX_SHIFT_SIZE",
    "FARTHEST": "_MAX_SHIFT_DIST",
    "BEAM": "_BEAM_WIDTH",
    "MOST_SHIFTS": "_MAX_SHIFT_CANDIDATES",
}


def same_as_sacrebleu(hypothesis: Words, reference: Words) -> bool:
    expected = lib_ter.translation_edit_rate(hypothesis, reference)
    actual = translation_edit_rate(hypothesis, reference)
    assert actual == expected, f"{actual}, not {expected}: {' '.join(hypothesis)} ||| {' '.join(reference)}"
    return True


def draw(random: np.random.Generator, num_words: int, vocabulary: int) -> Words:
    return [str(number) for number in random.integers(vocabulary, size=num_words)]


def disturbed(random: np.random.Generator, words: Words, vocabulary: int, moves: int, noise: float) -> Words:
    """Some runs of the words elsewhere, and a share of the words replaced, dropped or doubled."""
    words = list(words)
    for _ in range(moves):
        begin, end = sorted(random.integers(len(words) + 1, size=2))
        run = words[begin : min(end, begin + 12)]
        del words[begin : begin + len(run)]
        place = random.integers(len(words) + 1)
        words[place:place] = run
    changes: list[Callable[[str], Words]] = [
        lambda _: draw(random, 1, vocabulary),
        lambda _: [],
        lambda word: [word] * 2,
    ]
    return [
        new
        for word in words
        for new in (changes[random.choice(3, p=[0.6, 0.2, 0.2])](word) if random.random() < noise else [word])
    ]


# Known answers


@pytest.mark.parametrize(
    ("hypothesis", "reference", "edits"),
    [
        ("", "", 0),
        ("a b", "", 2),
        ("", "a b c", 3),
        ("a b c", "a b c", 0),
        ("c a b", "a b c", 1),  # a shift
        ("a x c", "a b c d", 2),  # a substitution and an insertion
        ("d e a b c x", "a b c d e", 2),  # a shift and a deletion
    ],
)
def test_edits_of_short_texts(hypothesis: str, reference: str, edits: int) -> None:
    words = hypothesis.split(), reference.split()
    assert translation_edit_rate(*words) == (edits, len(words[1]))
    assert same_as_sacrebleu(*words)


# sacreBLEU as the oracle


@pytest.mark.parametrize(
    ("longest", "num_pairs"), [(6, 400), (12, 150), (25, 20), pytest.param(60, 8, marks=pytest.mark.slow)]
)
def test_unrelated_texts_have_the_edits_of_sacrebleu(longest: int, num_pairs: int) -> None:
    random = np.random.default_rng(longest)
    for _ in range(num_pairs):
        vocabulary = random.choice([1, 2, 3, 5, 10, 100])
        sides = [draw(random, random.integers(longest + 1), vocabulary) for _ in range(2)]
        assert same_as_sacrebleu(*sides)


@pytest.mark.parametrize(("longest", "num_pairs"), [(12, 120), (25, 12), pytest.param(60, 5, marks=pytest.mark.slow)])
def test_moved_and_changed_texts_have_the_edits_of_sacrebleu(longest: int, num_pairs: int) -> None:
    random = np.random.default_rng(longest)
    for _ in range(num_pairs):
        vocabulary = random.choice([3, 10, 100])
        reference = draw(random, random.integers(longest + 1), vocabulary)
        hypothesis = disturbed(random, reference, vocabulary, random.integers(4), random.choice([0, 0.1, 0.3]))
        assert same_as_sacrebleu(hypothesis, reference)
        assert same_as_sacrebleu(reference, hypothesis)


def test_narrow_limits_bind_as_in_sacrebleu(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(1)
    for _ in range(120):
        for name, of_sacrebleu in LIMITS.items():
            limit = int(random.choice([10, 40, 1000] if name == "MOST_SHIFTS" else [2, 3, 5]))
            monkeypatch.setattr(edit_rate, name, limit)
            monkeypatch.setattr(lib_ter, of_sacrebleu, limit)
        vocabulary = random.choice([2, 4, 8])
        reference = draw(random, random.integers(1, 16), vocabulary)
        assert same_as_sacrebleu(disturbed(random, reference, vocabulary, 2, 0.3), reference)
        assert same_as_sacrebleu(draw(random, random.integers(1, 16), vocabulary), reference)


NUMBERS = [str(number) for number in range(90)]
BOUND = {
    "LONGEST_RUN": (NUMBERS[12:24] + NUMBERS[:12] + NUMBERS[24:30], NUMBERS[:30]),
    "FARTHEST": (NUMBERS[5:70] + NUMBERS[:5], NUMBERS[:70]),
    "BEAM": (NUMBERS[28:60] + ["x"] * 28, NUMBERS[:60]),
    "MOST_SHIFTS": (list("abcdabea") * 5, list("cdaabaeb") * 5),
}


@pytest.mark.parametrize("name", LIMITS)
def test_each_limit_binds_where_it_does_in_sacrebleu(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pair = BOUND[name]
    assert same_as_sacrebleu(*pair)
    edits, _ = translation_edit_rate(*pair)
    monkeypatch.setattr(edit_rate, name, 100_000)
    assert translation_edit_rate(*pair)[0] < edits


@pytest.mark.parametrize("lengths", [(1, 200), (200, 1), (3, 200), (200, 3), (7, 400), (2, 101)])
def test_texts_of_very_different_lengths_have_the_edits_of_sacrebleu(lengths: tuple[int, int]) -> None:
    random = np.random.default_rng(lengths)
    for vocabulary in (2, 50, 300):
        assert same_as_sacrebleu(*(draw(random, length, vocabulary) for length in lengths))


def test_a_long_text_has_the_edits_of_sacrebleu() -> None:
    random = np.random.default_rng(0)
    reference = draw(random, 80, 300)
    assert same_as_sacrebleu(disturbed(random, reference, 300, 2, 0.2), reference)


# The metric


@pytest.mark.parametrize(
    ("language", "tokenised", "options"),
    [
        (None, False, {}),
        ("de", True, {}),
        ("zh", False, {"normalized": True, "asian_support": True}),
        ("zh", True, {}),
    ],
)
def test_statistics_and_signature_are_those_of_sacrebleu(
    language: str | None, tokenised: bool, options: dict[str, bool]
) -> None:
    references, hypotheses, _ = corpus()
    if language == "zh":
        references, hypotheses = [[f"{line} 我们今天去公园。" for line in lines] for lines in (references, hypotheses)]
        hypotheses = [line.replace("今天去", "去今天的") for line in hypotheses]
    oracle = TER(**options)
    expected = oracle._extract_corpus_statistics(hypotheses, [references])
    actual = Ter(language, tokenised).statistics(hypotheses, references)
    assert actual.rows.tolist() == expected
    assert actual.score().signature == oracle.get_signature().format()


def test_several_references_count_as_in_sacrebleu() -> None:
    references, first, second = corpus()
    streams = [first, [line if number % 3 else None for number, line in enumerate(second)]]
    actual, expected = FastTer(), TER()
    for scorer in (actual, expected):
        scorer.statistics = scorer._extract_corpus_statistics(references, streams)
    assert actual.statistics == expected.statistics
    assert actual.get_signature().format() == expected.get_signature().format()
