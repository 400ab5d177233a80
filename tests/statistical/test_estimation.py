"""Estimated probabilities: equal to the definitions and to lmplz's."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statistical.ngram_oracle import BOS, EOS, PAD, UNK, KneserNey, additive, witten_bell
from statistical.ngram_texts import (
    PREDICTABLE,
    VOCAB_SIZE,
    A,
    B,
    C,
    counts_of,
    model_of,
    model_of_words,
    numbered,
    pieces_of,
    texts,
    words_of,
)

from heed.core.errors import DataError, UsageError
from heed.statistical.arpa import read_arpa, write_arpa
from heed.statistical.backoff import BackoffModel
from heed.statistical.estimation import estimate, open_vocabulary, uniform
from heed.statistical.smoothing import SmoothingConfig, absolute_discount, modified_discounts

FIXTURES = Path(__file__).resolve().parent.parent / "fixtures" / "lmplz"

SMOOTHINGS: dict[str, dict[str, Any]] = {
    "kneser-ney": {},
    "kneser-ney, backed off": {"interpolate": False},
    "kneser-ney, unigrams alone": {"interpolate_unigrams": False},
    "kneser-ney, pruned": {"prune": (0, 0, 1)},
    "absolute": {"smoothing": "absolute"},
    "witten-bell": {"smoothing": "witten-bell"},
    "witten-bell, backed off and pruned": {"smoothing": "witten-bell", "interpolate": False, "prune": (0, 1, 2)},
    "additive": {"smoothing": "additive", "additive": 0.3},
    "additive, pruned": {"smoothing": "additive", "additive": 0.3, "prune": (0, 1)},
}
every_smoothing = pytest.mark.parametrize("options", SMOOTHINGS.values(), ids=SMOOTHINGS)

Oracle = Callable[[int, tuple[int, ...]], float]


def histories(length: int) -> list[tuple[int, ...]]:
    """All contexts of up to `length` words; begin of sentence only as the first."""
    words = (UNK, A, B, C, C + 1)
    actual = [rest for n in range(length + 1) for rest in itertools.product(words, repeat=n)]
    return actual + [(BOS, *rest) for rest in actual if len(rest) < length]


def rows(model: BackoffModel, contexts: Sequence[tuple[int, ...]]) -> np.ndarray:
    """The probabilities of all words after each history, [N, V]."""
    nodes = [model.follow(np.array([[0]]), np.array([h]))[0, -1] if h else np.array([0]) for h in contexts]
    return np.exp(model.log_probs(np.array(nodes)))


def expect_rows(model: BackoffModel, oracle: Oracle, length: int) -> None:
    """The model says what the oracle says, after everything that may come."""
    contexts = histories(length)
    expected = [[oracle(word, context) for word in range(VOCAB_SIZE)] for context in contexts]
    np.testing.assert_allclose(rows(model, contexts), expected, rtol=2e-6, atol=1e-9)


# --- the definitions --------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(texts, st.integers(1, 3))
def test_kneser_ney_is_chen_and_goodmans(sentences: list[list[int]], order: int) -> None:
    oracle = KneserNey(sentences, order, VOCAB_SIZE).probability
    expect_rows(model_of(sentences, order, lmplz_quirk=False), oracle, min(order, 2))


@settings(max_examples=25)
@given(texts, st.integers(1, 3))
def test_witten_bell_is_method_c(sentences: list[list[int]], order: int) -> None:
    oracle = functools.partial(witten_bell, sentences, order, VOCAB_SIZE - 2)
    expect_rows(model_of(sentences, order, smoothing="witten-bell"), oracle, min(order, 2))


@settings(max_examples=25)
@given(texts, st.integers(1, 3), st.sampled_from([0.1, 1.0]))
def test_additive_smoothing_adds_to_the_longest_ngrams_alone(
    sentences: list[list[int]], order: int, delta: float
) -> None:
    oracle = functools.partial(additive, sentences, order, VOCAB_SIZE - 2, delta)
    expect_rows(model_of(sentences, order, smoothing="additive", additive=delta), oracle, min(order, 2))


def test_two_sentences_by_hand_with_absolute_discounting() -> None:
    """Pairs: bos a twice; a b, b end, a a, a end once: D = 4 / (4 + 2 · 1)."""
    model = model_of([[A, B], [A, A]], 2, smoothing="absolute")
    unigrams = np.array([0, 0, 2, 0, 3, 1, 0, 0, 0]) + PREDICTABLE
    unigrams = unigrams / unigrams.sum()
    after_a = 2 / 3 * 3 / 3 * unigrams
    after_a[[A, B, EOS]] += (1 - 2 / 3) / 3
    after_bos = 2 / 3 * 1 / 2 * unigrams
    after_bos[A] += (2 - 2 / 3) / 2
    np.testing.assert_allclose(
        rows(model, [(), (A,), (BOS,), (C,)]), [unigrams, after_a, after_bos, unigrams], rtol=1e-6
    )


def test_with_much_text_probabilities_become_relative_frequencies() -> None:
    for options in SMOOTHINGS.values():
        model = model_of([[A, B], [A, A], [A]] * 10_000, 2, **options)
        after_a = rows(model, [(A,)])[0]
        assert after_a[[EOS, B]].tolist() == pytest.approx([2 / 4, 1 / 4], abs=2e-3)


@every_smoothing
@settings(max_examples=25)
@given(texts, st.integers(1, 4))
def test_probabilities_add_up_to_one(options: dict[str, Any], sentences: list[list[int]], order: int) -> None:
    actual = rows(model_of(sentences, order, **options), histories(2))
    np.testing.assert_allclose(actual.sum(1), 1, atol=1e-5)
    assert (actual[:, [PAD, BOS]] == 0).all(), "they are never predicted"


@settings(max_examples=25)
@given(texts, st.integers(2, 3))
def test_backing_off_keeps_the_discounted_share_of_seen_words(sentences: list[list[int]], order: int) -> None:
    """Seen: u(w | h) of the interpolated model, without what shorter n-grams add; unseen: in proportion to these."""
    alone, mixed = (model_of(sentences, order, smoothing="witten-bell", interpolate=way) for way in (False, True))
    [after, shorter] = rows(alone, [(A, B)[-order + 1 :], (A, B)[-order + 2 :] if order > 2 else ()])
    unseen = after[PREDICTABLE] != 0
    interpolated = rows(mixed, [(A, B)[-order + 1 :]])[0]
    seen = np.array([word for word in range(VOCAB_SIZE) if (*(A, B)[-order + 1 :], word) in _seen(sentences, order)])
    others = np.setdiff1d(np.flatnonzero(PREDICTABLE), seen)
    assert unseen.all()
    if len(seen):
        assert (after[seen] <= interpolated[seen] + 1e-7).all()
    ratios = after[others] / shorter[others]
    np.testing.assert_allclose(ratios, ratios[0], rtol=1e-5)


def _seen(sentences: Sequence[Sequence[int]], order: int) -> set[tuple[int, ...]]:
    framed = [(BOS, *sentence, EOS) for sentence in sentences]
    return {line[i : i + order] for line in framed for i in range(len(line) - order + 1)}


def test_a_model_of_no_text_is_uniform() -> None:
    for options in SMOOTHINGS.values():
        for order in (1, 3):
            actual = rows(model_of([], order, **options), [(), (A,), (BOS, A)])
            np.testing.assert_allclose(actual, np.tile(PREDICTABLE / PREDICTABLE.sum(), (3, 1)), rtol=1e-6)
    model = uniform(PREDICTABLE, BOS, EOS)
    np.testing.assert_allclose(rows(model, [()])[0, PREDICTABLE], 1 / (VOCAB_SIZE - 2), rtol=1e-6)


# --- discounts --------------------------------------------------------------------------------------------


def test_discounts_equal_the_formula() -> None:
    counts = np.repeat([1, 2, 3, 4, 9], [10, 5, 3, 2, 7])
    y = 10 / (10 + 2 * 5)
    expected = [0, 1 - 2 * y * 5 / 10, 2 - 3 * y * 3 / 5, 3 - 4 * y * 2 / 3]
    assert modified_discounts(counts).tolist() == pytest.approx(expected)
    assert absolute_discount(counts) == y


@pytest.mark.parametrize(
    "numbers", [[5, 3, 0, 2], [0, 5, 5, 5], [1, 9, 200, 1]], ids=["no n3", "no n1", "out of range"]
)
def test_discounts_that_cannot_be_estimated_have_a_fallback_or_are_an_error(numbers: list[int]) -> None:
    counts = np.repeat([1, 2, 3, 4], numbers)
    assert modified_discounts(counts).tolist() == [0, 0.5, 1, 1.5]
    with pytest.raises(DataError, match=r"1, 2, 3 and 4 times.*discount_fallback = true"):
        modified_discounts(counts, fallback=False)


def test_without_interpolation_no_ngram_loses_its_whole_count() -> None:
    counts = np.array([1] * 9 + [2] * 4 + [3] * 2 + [7])  # none was seen four times: D3 = 3
    assert modified_discounts(counts)[3] == 3
    assert modified_discounts(counts, interpolate=False).tolist() == [0, 0.5, 1, 1.5]


@pytest.mark.parametrize("counts", [[], [1], [2], [3, 3]])
def test_the_absolute_discount_is_one_half_if_it_cannot_be_estimated(counts: list[int]) -> None:
    assert absolute_discount(np.array(counts, dtype=np.int64)) == 0.5


@pytest.mark.parametrize(("prune", "why"), [((1,), "min_frequency"), ((0, 2, 1), "a threshold must not be below")])
def test_invalid_thresholds_are_an_error(prune: tuple[int, ...], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        SmoothingConfig(prune=prune)


def test_the_share_of_pruned_ngrams_goes_to_shorter_ones() -> None:
    sentences = [[A, B], [A, B], [A, C], [B]]
    model = model_of(sentences, 2, prune=(0, 1))
    assert model.num_ngrams == [VOCAB_SIZE, 3]  # bos a, a b, b end
    after_a, without = rows(model, [(A,), ()])
    others = [EOS, UNK, A, C]
    np.testing.assert_allclose(after_a[others] / without[others], after_a[C] / without[C], rtol=1e-5)


# --- lmplz ------------------------------------------------------------------------------------------------

REFERENCES: dict[str, tuple[int, dict[str, Any]]] = {
    "o3": (3, {"discount_fallback": False}),
    "o3-pruned": (3, {"discount_fallback": False, "prune": (0, 0, 1)}),
    "o2-no-unigrams": (2, {"discount_fallback": False, "interpolate_unigrams": False}),
    "o4-fallback": (4, {"prune": (0, 1)}),
}


def table(model: BackoffModel, pieces: Sequence[str]) -> dict[str, tuple[float, float]]:
    """log10 of the probability and the back-off weight of each n-gram."""
    actual: dict[str, tuple[float, float]] = {}
    names = [""]
    bounds = model.level_starts
    for begin, end in itertools.pairwise(bounds[1:]):
        for node in range(begin, end):
            word = pieces[model.words[node - 1]]
            names.append(f"{names[model.parents[node - 1]]} {word}".strip())
            backoff = model.backoffs[node] if node < len(model.backoffs) else 0.0
            actual[names[node]] = (float(model.log_probs_of[node - 1]) / np.log(10), float(backoff) / np.log(10))
    return actual


def expect_equal(path: Path, model: BackoffModel, ids: dict[str, int]) -> None:
    """The model is that of an ARPA file, to 1e-5 in log10."""
    theirs, ours = table(*_read(path)), table(model, pieces_of(ids))
    assert theirs.keys() == ours.keys()
    pairs = np.array([(theirs[ngram], ours[ngram]) for ngram in theirs])
    finite = np.isfinite(pairs).all((1, 2))
    assert np.isneginf(pairs[~finite, :, 0]).all(), "only padding and begin of sentence are impossible"
    np.testing.assert_allclose(pairs[finite, 0], pairs[finite, 1], rtol=0, atol=1e-5)


def _read(path: Path) -> tuple[BackoffModel, Sequence[str]]:
    actual = read_arpa(path)
    return actual.model, actual.vocabulary.pieces


@pytest.mark.parametrize("name", REFERENCES)
def test_estimates_equal_lmplz(name: str) -> None:
    """`lmplz -o 3`, `--prune 0 0 1`, `-o 2 --interpolate_unigrams 0`, `-o 4 --prune 0 1 --discount_fallback`."""
    order, options = REFERENCES[name]
    expect_equal(FIXTURES / f"{name}.arpa.xz", *model_of_words(words_of(FIXTURES / "text"), order, **options))


def test_without_its_quirk_the_discounts_are_not_lmplzs() -> None:
    """The text ends with three times the same words, so that it matters."""
    model, ids = model_of_words(words_of(FIXTURES / "text"), 3, lmplz_quirk=False)
    theirs, ours = table(*_read(FIXTURES / "o3.arpa.xz")), table(model, pieces_of(ids))
    assert max(abs(theirs[ngram][0] - ours[ngram][0]) for ngram in theirs if " " in ngram) > 0.01


@pytest.mark.parametrize(
    ("name", "order", "options"),
    [("o2", 2, {}), ("o3", 3, {}), ("o5", 5, {}), ("o3.noiu", 3, {"interpolate_unigrams": False})],
)
@pytest.mark.slow
def test_the_penn_treebank_is_estimated_as_lmplz_does(
    shared_data: Path, name: str, order: int, options: dict[str, Any]
) -> None:
    lines = words_of(shared_data / "ptb" / "ptb.valid.txt.xz")
    model, ids = model_of_words(lines, order, discount_fallback=False, **options)
    expect_equal(shared_data / "kenlm_reference" / f"ptb.valid.{name}.arpa.xz", model, ids)


# --- vocabularies -----------------------------------------------------------------------------------------


def test_an_open_vocabulary_has_the_seen_words_and_one_for_all_others() -> None:
    lines = [["a", "b"], ["a"]]
    ids = numbered(lines)
    counts = counts_of([[ids[word] for word in line] for line in lines], 2, len(ids) + 6)  # two more that never come
    model = estimate(counts, SmoothingConfig(), open_vocabulary(counts, UNK))
    actual = np.exp(model.log_probs(np.array([[0]])))[0]
    assert actual[[PAD, BOS]].tolist() == actual[-2:].tolist() == [0, 0]
    assert actual[[EOS, UNK, 4, 5]].min() > 0
    assert actual.sum() == pytest.approx(1)


def test_a_fixed_vocabulary_gives_each_of_its_words_a_share() -> None:
    for options in SMOOTHINGS.values():
        actual = rows(model_of([[A, B], [A]], 2, **options), [(), (A,)])
        assert (actual[:, PREDICTABLE] > 0).all()


def test_an_open_model_is_written_and_scored_alike(tmp_path: Path) -> None:
    model, ids = model_of_words([["a", "b"], ["b"]], 3)
    write_arpa(tmp_path / "model.arpa", model, pieces_of(ids))
    expect_equal(tmp_path / "model.arpa", model, ids)
