"""Word vectors on test sets: correlation with human judgements of similarity, and analogies.

Several runs are scored on the pairs or questions whose words all of them know, so that their scores are comparable.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heed.core.errors import DataError
from heed.evaluation.evaluation import INTERVALS, Evaluation
from heed.evaluation.test_set import HeldOut
from heed.metrics.metric import Score
from heed.metrics.significance import (
    FEWEST_ROWS,
    SEED,
    Comparison,
    compare,
    interval,
    resampled_totals,
    shifted_p_value,
    values,
)
from heed.metrics.similarity import resampled_spearman, spearman, spearman_interval
from heed.tasks.embedding import Floats, unit
from heed.tasks.predictor import Predictor
from heed.text.readers import Errors, read_text

SYNTACTIC = "gram"
"""Beginning of the names of syntactic sections (Mikolov et al. 2013)."""
_QUESTIONS_AT_ONCE = 1024


# --- similarity ---------------------------------------------------------------------------------------------


def evaluate_similarity(path: Path, predictors: Sequence[Predictor], errors: Errors = "strict") -> list[Evaluation]:
    """Spearman's correlation of cosines with the judgements of a file: two words and a number a line.

    Raises DataError for another format, and if fewer than three pairs are known.
    """
    pairs = [(words, judged) for words, judged in _read_judgements(path, errors)]
    cosines = np.stack([_cosines(predictor, [words for words, _ in pairs]) for predictor in predictors])
    known = np.isfinite(cosines).all(axis=0)
    if known.sum() < 3:
        raise DataError(
            f"{path}: {_names(predictors)} know the words of only {known.sum()} of {len(pairs):,} pairs; at least 3 "
            "are needed."
        )
    judged, cosines = np.array([value for _, value in pairs])[known], cosines[:, known]
    draws = resampled_spearman(judged, cosines, INTERVALS)
    signature = f"pairs:{known.sum()}/{len(pairs)}|bs:{INTERVALS}|seed:{SEED}"
    values = [spearman(judged, each) for each in cosines]
    test = HeldOut((path.name,), [(" ".join(words),) for words, _ in pairs], unit="pair")
    return [
        Evaluation(
            predictor.run.folder.name, test, predictor.run,
            {"spearman": Score("Spearman", values[i], signature, *spearman_interval(draws[:, i]))},
            how={"vectors": "cosine"}, num_rows=int(known.sum()),
            against_first={"spearman": _compared(values, draws, i, len(judged))} if i else {},
        )
        for i, predictor in enumerate(predictors)
    ]  # fmt: skip


def _read_judgements(path: Path, errors: Errors) -> list[tuple[tuple[str, str], float]]:
    rows = []
    for number, line in enumerate(read_text(path, errors), start=1):
        fields = line.split()
        try:
            first, second, judged = fields
            rows.append(((first, second), _finite(judged)))
        except ValueError as error:
            if fields:
                raise DataError(f"{path}, line {number}: expected two words and a number, got {line!r:.80}.") from error
    if not rows:
        raise DataError(f"{path} has no pairs of words.")
    return rows


def _finite(text: str) -> float:
    """The number. Raises ValueError for anything else, such as nan."""
    if not math.isfinite(value := float(text)):
        raise ValueError(text)
    return value


def _cosines(predictor: Predictor, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
    """The cosine of each pair; NaN if a word is unknown."""
    places, vectors = _unit_vectors(predictor, [word for pair in pairs for word in pair])
    first, second = (vectors[[places[pair[side]] for pair in pairs]] for side in (0, 1))
    known = first.any(axis=1) & second.any(axis=1)
    return np.where(known, (first * second).sum(axis=1, dtype=np.float64), np.nan)


def _unit_vectors(predictor: Predictor, words: Sequence[str]) -> tuple[Mapping[str, int], Floats]:
    """The place of each distinct word, and the vectors of length 1; zeros for unknown words."""
    normaliser = predictor.run.recipe.data.normaliser
    distinct = [*dict.fromkeys(words)]
    vectors = unit(predictor.word_vectors([normaliser.apply(word) for word in distinct]))
    return {word: place for place, word in enumerate(distinct)}, vectors


def _compared(values: Sequence[float], draws: NDArray[np.float64], place: int, num_pairs: int) -> Comparison:
    """The test against the first system; cosines of two systems are on different scales, so none are exchanged.

    A draw of equal judgements has no correlation and is left out.
    """
    difference, differences = values[place] - values[0], draws[:, place] - draws[:, 0]
    differences = differences[np.isfinite(differences)]
    is_tested = num_pairs >= FEWEST_ROWS and len(differences) > 0 and np.isfinite(difference)
    return Comparison(difference, shifted_p_value(differences, difference) if is_tested else None, None)


# --- analogies ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Answers:
    """Which questions a system answers right."""

    rows: NDArray[np.float64]
    """[Q, 2]: right, and 1."""

    def value(self, totals: NDArray[np.float64]) -> float:
        """The percentage of right answers."""
        return float(100 * totals[0] / totals[1]) if totals[1] else float("nan")

    def score(self, name: str, asked: int) -> Score:
        """The score with its interval; `asked`: number of all questions."""
        low = high = None
        if len(self.rows) > 1:
            low, high = interval(values(self, resampled_totals(self.rows, INTERVALS)))
        signature = f"3CosAdd|questions:{len(self.rows)}/{asked}|bs:{INTERVALS}|seed:{SEED}"
        return Score(name, self.value(self.rows.sum(axis=0)), signature, low, high)


def evaluate_analogies(path: Path, predictors: Sequence[Predictor], errors: Errors = "strict") -> list[Evaluation]:
    """The share of analogies that are completed by the nearest word of the vocabulary (3CosAdd; Mikolov et al. 2013).

    The file has sections of questions: `: family`, then lines such as `king queen man woman`. Raises DataError for
    another format, and if no question is known.
    """
    questions, sections = _read_analogies(path, errors)
    knows = [_known(predictor, questions) for predictor in predictors]
    known = np.logical_and.reduce(knows)
    if not known.any():
        raise DataError(f"{path}: {_names(predictors)} know the words of none of the {len(questions):,} questions.")
    asked = [question for question, is_known in zip(questions, known, strict=True) if is_known]
    test = HeldOut((path.name,), [(" ".join(question),) for question in questions], unit="question")
    parts = {"analogies": np.ones(len(questions), bool), "semantic": ~sections, "syntactic": sections}
    parts = {name: part for name, part in parts.items() if (part & known).any()}
    evaluations: list[Evaluation] = []
    answers: list[dict[str, Answers]] = []
    for predictor in predictors:
        right = _answered(predictor, asked)
        rows = np.stack([right, np.ones(len(right))], axis=1).astype(np.float64)
        answers.append({name: Answers(rows[part[known]]) for name, part in parts.items()})
        scores = {name: each.score(name, int(parts[name].sum())) for name, each in answers[-1].items()}
        tests = {name: compare(answers[0][name], each) for name, each in answers[-1].items() if len(each.rows) > 1}
        against = tests if evaluations else {}
        evaluations.append(
            Evaluation(
                predictor.run.folder.name, test, predictor.run, scores, {"vectors": "3CosAdd"}, against_first=against,
                num_rows=len(asked),
            )
        )  # fmt: skip
    return evaluations


def _read_analogies(path: Path, errors: Errors) -> tuple[list[tuple[str, ...]], NDArray[np.bool_]]:
    """The questions, and whether each is in a syntactic section."""
    questions: list[tuple[str, ...]] = []
    syntactic: list[bool] = []
    in_syntactic = False
    for number, line in enumerate(read_text(path, errors), start=1):
        if line.startswith(":"):
            in_syntactic = line[1:].strip().startswith(SYNTACTIC)
        elif words := tuple(line.split()):
            if len(words) != 4:
                raise DataError(f"{path}, line {number}: expected four words, got {line!r:.80}.")
            questions.append(words)
            syntactic.append(in_syntactic)
    if not questions:
        raise DataError(f"{path} has no questions.")
    return questions, np.array(syntactic)


def _normalised(predictor: Predictor, questions: Sequence[Sequence[str]]) -> list[list[str]]:
    normaliser = predictor.run.recipe.data.normaliser
    return [[normaliser.apply(word) for word in question] for question in questions]


def _known(predictor: Predictor, questions: Sequence[Sequence[str]]) -> NDArray[np.bool_]:
    """Whether all words of each question are in the vocabulary."""
    places = predictor.neighbourhood.places
    return np.array([all(word in places for word in words) for words in _normalised(predictor, questions)])


def _answered(predictor: Predictor, questions: Sequence[Sequence[str]]) -> NDArray[np.bool_]:
    """Whether b - a + c is nearest to d, apart from a, b and c, for each question a b c d."""
    hood = predictor.neighbourhood
    words = _normalised(predictor, questions)
    places = np.array([[hood.places[word] for word in question] for question in words])
    right = np.zeros(len(places), dtype=bool)
    for begin in range(0, len(places), _QUESTIONS_AT_ONCE):
        a, b, c, d = places[begin : begin + _QUESTIONS_AT_ONCE].T
        cosines = (hood.unit[b] - hood.unit[a] + hood.unit[c]) @ hood.unit.T
        for given in (a, b, c):
            cosines[np.arange(len(given)), given] = -np.inf
        right[begin : begin + _QUESTIONS_AT_ONCE] = cosines.argmax(axis=1) == d
    return right


def _names(predictors: Sequence[Predictor]) -> str:
    return " and ".join(str(predictor.run.folder) for predictor in predictors)
