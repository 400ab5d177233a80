"""Word vectors on test sets: Spearman's correlation and analogies, with known answers."""

from __future__ import annotations

import itertools
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from toy import write_lines

from heed.core.errors import DataError
from heed.evaluation.table import render_table
from heed.evaluation.word_similarity import evaluate_analogies, evaluate_similarity
from heed.metrics.similarity import ranks, spearman
from heed.tasks.embedding import Neighbourhood
from heed.text.normalise import Normaliser

TABLE = {"king": [1, 1, 0], "queen": [1, 0, 1], "man": [0, 1, 0], "woman": [0, 0, 1], "slow": [3, 1, 0.2]}


class Vectors:
    """A predictor with a table of vectors."""

    def __init__(self, table: dict[str, list[float]], name: str = "run") -> None:
        self.table = {word: np.array(vector, dtype=np.float32) for word, vector in table.items()}
        normaliser = Normaliser(lowercase=True)
        recipe = SimpleNamespace(data=SimpleNamespace(normaliser=normaliser, synthetic=False))
        self.run = SimpleNamespace(folder=Path(name), recipe=recipe)
        self.neighbourhood = Neighbourhood([*self.table], np.stack([*self.table.values()]))

    def word_vectors(self, words: list[str]) -> Any:
        return np.stack([self.table.get(word, np.zeros(3, np.float32)) for word in words])


def test_ranks_share_ties_and_the_correlation_is_that_of_ranks() -> None:
    assert ranks(np.array([10.0, 20, 10, 5])).tolist() == [2.5, 4, 2.5, 1]
    for order in itertools.permutations(range(5)):  # without ties: 1 - 6 Σ d² / (n (n² - 1))
        squares = sum((place - other) ** 2 for place, other in enumerate(order))
        assert spearman(np.arange(5.0), np.array(order, float)) == pytest.approx(1 - 6 * squares / 120)
    tied = spearman(np.array([1.0, 2, 2, 4]), np.array([1.0, 2, 3, 3]))
    assert tied == pytest.approx(np.corrcoef([1, 2.5, 2.5, 4], [1, 2, 3.5, 3.5])[0, 1])
    assert np.isnan(spearman(np.ones(3), np.arange(3.0)))


def test_systems_are_scored_on_the_pairs_that_all_of_them_know(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "pairs.txt", ["King\tqueen\t9", "king man 8", "", "man woman 1", "queen woman 7", "man zebra 2"]
    )
    every = Vectors(TABLE)
    fewer = Vectors({word: TABLE[word] for word in ("king", "man", "woman", "queen")}, "b")
    first, second = evaluate_similarity(path, [every, fewer])  # type: ignore[list-item]
    # cosines 1/2, 1/√2, 0, 1/√2 for the judgements 9, 8, 1, 7
    expected = np.corrcoef([4, 3, 1, 2], [2, 3.5, 1, 3.5])[0, 1]
    assert first.scores["spearman"].value == pytest.approx(expected) == second.scores["spearman"].value
    assert first.scores["spearman"].signature.startswith("pairs:4/5|")
    assert second.against_first["spearman"].difference == 0
    assert "5 pairs" in render_table([first, second]) and "leakage" not in render_table([first])


def test_an_analogy_is_right_if_the_nearest_other_word_is_the_answer(tmp_path: Path) -> None:
    path = write_lines(
        tmp_path / "questions.txt",
        [": family", "man king woman queen", "man king woman slow", ": gram1", "king man queen woman", "a b c d"],
    )
    [evaluation] = evaluate_analogies(path, [Vectors(TABLE)])  # type: ignore[list-item]
    values = {name: score.value for name, score in evaluation.scores.items()}
    assert values == {"analogies": pytest.approx(200 / 3), "semantic": 50, "syntactic": 100}
    assert "questions:3/4" in evaluation.scores["analogies"].signature


def test_a_difference_is_tested_on_enough_pairs_that_differ(tmp_path: Path) -> None:
    words = [f"w{i}" for i in range(24)]
    one = Vectors({word: [1, i, 0] for i, word in enumerate(words)})
    other = Vectors({word: [1, (7 * i) % 24, 0] for i, word in enumerate(words)}, "b")

    def p_values(judged: list[int]) -> tuple[float | None, float | None]:
        lines = [f"w0 {word} {value}" for word, value in zip(words[1:], judged, strict=False)]
        found = evaluate_similarity(write_lines(tmp_path / "p", lines), [one, other])  # type: ignore[list-item]
        test = found[1].against_first["spearman"]
        return test.p_bootstrap, test.p_randomisation

    assert p_values([1, 2, 3, 4]) == (None, None)
    p_bootstrap, _ = p_values([0] * 22 + [1])  # a third of the draws has equal judgements only
    assert p_bootstrap is not None and p_bootstrap > 0.01


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["a b"], "line 1: expected two words and a number, got 'a b'"),
        (["a b nan"], "line 1: expected two words and a number, got 'a b nan'"),
        ([""], "has no pairs"),
        (["a b 1"] * 4, "0 of 4"),
    ],
)
def test_wrong_similarity_files_are_refused(tmp_path: Path, lines: list[str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        evaluate_similarity(write_lines(tmp_path / "pairs.txt", lines), [Vectors(TABLE)])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("lines", "message"),
    [(["a b c"], "line 1: expected four words"), ([": x"], "no questions"), (["a b c d"], "none of")],
)
def test_wrong_files_of_analogies_are_refused(tmp_path: Path, lines: list[str], message: str) -> None:
    with pytest.raises(DataError, match=message):
        evaluate_analogies(write_lines(tmp_path / "questions.txt", lines), [Vectors(TABLE)])  # type: ignore[list-item]
