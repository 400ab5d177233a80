"""Reading of a question and its context: answers, where they begin and end, and the attention between both texts."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from heed.nn.contract import Trace
from heed.tasks.reading import Reading, SpanMarginals, of_kind, spelled_words
from heed.tasks.span.answering import Answerer, best_answers
from heed.tasks.span.words import SplitQuestion
from heed.text.readers.questions import Question
from heed.text.token_words import Word

MOST_ANSWERS = 5
"""Answers of a reading."""


def read(answerer: Answerer, question: Question) -> Reading:
    """A question and its context as a model reads them, with the end of each."""
    split = answerer.encoder.split(question)
    [spans] = answerer.scores([split])
    starts, ends, none = spans.marginals()
    asked = spelled_words(question.question, split.asked)
    words = [*asked, of_kind("end"), *spelled_words(question.context, split.words), of_kind("end")]
    words, places, trace = _traced(answerer, split, words)
    first = len(words) - 1 - len(split.words)
    marginals = SpanMarginals(first, _rounded(starts), _rounded(ends), round(none, 4) if spans.no_answer else None)
    answers = tuple(best_answers(split, spans, MOST_ANSWERS))
    return Reading(tuple(words), places, trace, answers, spans=marginals)


def _traced(answerer: Answerer, split: SplitQuestion, words: list[Word]) -> tuple[list[Word], tuple[slice, ...], Trace]:
    """The words, with the begin that the model reads, their positions, and its attention between them, if any."""
    traced = answerer.traced(split)
    if traced is None or not traced[0].weights:
        return words, (), Trace()
    trace, row, added = traced
    bounds = [added + at for at in (*row["starts"], len(row["src"]), len(row["src"]) + 1)]
    places = [slice(*pair) for pair in pairwise(bounds)]
    if added:
        words, places = [of_kind("begin"), *words], [slice(0, added), *places]
    return words, tuple(places), trace


def _rounded(values: NDArray[np.float64]) -> tuple[float, ...]:
    return tuple(round(value, 4) for value in values.tolist())
