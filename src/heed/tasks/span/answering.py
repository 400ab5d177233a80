"""Answers of a trained model: the best spans of a context, which is read in windows if it is long.

A span that is in several windows has the highest of its scores in them. The answer is the best of all spans of the
whole context, and probabilities are a softmax over all of them. If there may be no answer, scores are relative to that
of having none in the same window (Devlin et al. 2019, section 4.3); otherwise they are compared as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from heed.decoding.scoring import MAX_READ_ROWS, in_length_order
from heed.nn.contract import Trace
from heed.tasks.predictor import Prediction
from heed.tasks.span.batch import ALL_COLUMNS, pair_source
from heed.tasks.span.prepare import with_spans
from heed.tasks.span.words import Cell, PairEncoder, Row, SplitQuestion
from heed.tasks.words import COLUMNS, word_source
from heed.text.readers.questions import Question

AT_ONCE = 256
"""Questions whose scores are in memory together."""
NONE: Cell = (-1, 0)
"""No answer, as a span."""


@dataclass(frozen=True)
class SpanPrediction(Prediction):
    """An answer, with its place in the context; no answer is empty, and has no place."""

    start: int | None = None
    """The first character in the context, counted from 0."""
    end: int | None = None
    """The character after the last one."""


class Answerer:
    """Answers questions with a model."""

    def __init__(self, model: Any, encoder: PairEncoder, device: torch.device) -> None:
        self.model = model
        self.encoder = encoder
        self.device = device

    def answers(self, questions: Sequence[Question], top: int = 1) -> list[list[SpanPrediction]]:
        """The `top` most probable answers to each question, the best first."""
        result: list[list[SpanPrediction]] = []
        for begin in range(0, len(questions), AT_ONCE):
            split = [self.encoder.split(question) for question in questions[begin : begin + AT_ONCE]]
            result += [best_answers(each, scores, top) for each, scores in zip(split, self.scores(split), strict=True)]
        return result

    def scores(self, questions: Sequence[SplitQuestion]) -> list[Spans]:
        """The scores of all spans of each context."""
        length = self.model.head.max_words
        rows = [
            (number, begin, window)
            for number, windows in enumerate(self.encoder.windows(questions))
            for begin, row in windows
            if (window := with_spans(questions[number], begin, row, [], length)) is not None
        ]
        found = [Spans.empty(len(each.words), length, self.model.head.no_answer) for each in questions]
        lengths = [len(row["src"]) + 1 for _, _, row in rows]
        read = in_length_order(lengths, lengths, lambda some: self._read([rows[at][2] for at in some]), MAX_READ_ROWS)
        for (number, begin, row), (spans, none) in zip(rows, read, strict=True):
            found[number].add(begin, spans[row["asked"][0] : len(row["starts"])], float(none))
        return found

    @torch.no_grad()
    def traced(self, question: SplitQuestion) -> tuple[Trace, Row, int] | None:
        """The attention over a question and its context, the columns of their words, and the positions before them.

        None for a context that is read in several windows, or has no words.
        """
        [windows] = self.encoder.windows([question])
        if len(windows) > 1 or not question.words:
            return None
        [(_, row)], trace = windows, Trace()
        self.model.read(word_source({name: [row[name]] for name in COLUMNS}).to(self.device), trace=trace)
        return trace, row, int(self.model.reader.num_added)

    @torch.no_grad()
    def _read(self, rows: Sequence[Row]) -> Iterator[tuple[NDArray[np.float64], np.float64]]:
        """The scores of the spans of each row [W, L], and that of no answer."""
        source = pair_source({name: [row[name] for row in rows] for name in ALL_COLUMNS}).to(self.device)
        features = source.words.of_words(self.model.read(source.words))
        head = self.model.head
        scores = head(features, source.context, source.grid(head.max_words))
        return zip(scores.spans.double().cpu().numpy(), scores.none.double().cpu().numpy(), strict=True)


@dataclass
class Spans:
    """The scores of all spans of a context, the highest of each over the windows that were added."""

    scores: NDArray[np.float64]
    """[W words, L]; -∞ for whatever is not a span of a window."""
    no_answer: bool

    @staticmethod
    def empty(num_words: int, length: int, no_answer: bool) -> Spans:
        """The scores before any window."""
        return Spans(np.full((num_words, length), -np.inf), no_answer)

    def add(self, begin: int, scores: NDArray[np.float64], none: float) -> None:
        """Add the window of the words from `begin` on."""
        part = self.scores[begin : begin + len(scores)]
        np.maximum(part, scores - (none if self.no_answer else 0.0), out=part)

    def best(self, number: int) -> list[tuple[Cell, float]]:
        """The most probable spans with their probabilities, the first of equal ones first; `NONE` is no answer."""
        flat = np.append(self.scores.ravel(), self._none)
        order = np.argsort(-flat, kind="stable")[:number] if number > 1 else [int(flat.argmax())]
        total = np.logaddexp.reduce(flat)
        length = self.scores.shape[1]
        cells = [NONE if at == len(flat) - 1 else divmod(int(at), length) for at in order if np.isfinite(flat[at])]
        return [
            (cell, float(np.exp(flat[at] - total)))
            for cell, at in zip(cells, (at for at in order if np.isfinite(flat[at])), strict=True)
        ]

    def marginals(self) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
        """The probability that the answer begins with each word [W], that it ends with each [W], and of no answer."""
        total = np.logaddexp.reduce(np.append(self.scores.ravel(), self._none))
        probabilities = np.exp(self.scores - total)
        ends = np.zeros(len(probabilities))
        for further, column in enumerate(probabilities.T[: len(ends)]):
            ends[further:] += column[: len(ends) - further]
        return probabilities.sum(1), ends, float(np.exp(self._none - total))

    @property
    def _none(self) -> float:
        """The score of no answer."""
        return 0.0 if self.no_answer or not np.isfinite(self.scores).any() else -np.inf


def best_answers(split: SplitQuestion, spans: Spans, top: int) -> list[SpanPrediction]:
    """The `top` most probable answers to a question, the best first."""
    return [_prediction(split, cell, probability) for cell, probability in spans.best(top)]


def _prediction(split: SplitQuestion, cell: Cell, probability: float) -> SpanPrediction:
    if cell == NONE:
        return SpanPrediction("", probability)
    start, end = split.text(cell)
    prediction = SpanPrediction(split.question.context[start:end], probability, start, end)
    return _as_candidate(split, cell, prediction) if split.question.candidates else prediction


def _as_candidate(split: SplitQuestion, cell: Cell, prediction: SpanPrediction) -> SpanPrediction:
    """The candidate in these words, which may begin or end inside one."""
    for candidate in split.question.candidates:
        found = candidate.found_in(split.question.context)
        if found is not None and found.start is not None and split.cell(candidate) == cell:
            return replace(prediction, text=found.text, start=found.start, end=found.start + len(found.text))
    return prediction
