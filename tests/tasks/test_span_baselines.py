"""Answers without a model: the sliding window against its definition, and the nearest candidate."""

from __future__ import annotations

import itertools
import math
from collections import Counter

import pytest

from heed.tasks.span import baselines
from heed.tasks.span.baselines import FUNCTION_WORDS, baseline_answer, baseline_name, sliding_window
from heed.tasks.span.words import SplitQuestion
from heed.text.readers.questions import Answer, Question

CONTEXT = "The river Amazon was seen by Orellana in 1542. In 1600 the big river was seen again. Nobody lives there."
QUESTION = Question(1, "Who saw the Amazon, the big river seen in 1542?", CONTEXT)


def written_out(words: list[str], asked: set[str], answer: set[str]) -> float:
    """Algorithms 1 and 2 of Richardson et al. (2013)."""
    counts, target = Counter(words), asked | answer
    size = min(len(target), len(words))
    window = max(
        sum(math.log(1 + 1 / counts[word]) for word in words[j : j + size] if word in target)
        for j in range(len(words) - size + 1)
    )
    of_question = (asked & {*words}) - FUNCTION_WORDS
    of_answer = answer - asked - FUNCTION_WORDS
    pairs = itertools.product(range(len(words)), repeat=2)
    between = [abs(i - j) for i, j in pairs if words[i] in of_question and words[j] in of_answer]
    return window - (min(1.0, min(between) / (len(words) - 1)) if between else 1.0)


def test_a_candidate_is_scored_as_defined() -> None:
    split = SplitQuestion.of(QUESTION)
    words = [word.text.casefold() for word in split.words]
    asked = {word.text.casefold() for word in split.asked}
    for first, further in ((1, 0), (2, 0), (6, 0), (8, 0), (11, 0), (20, 1)):
        answer = {*words[first : first + further + 1]}
        expected = written_out(words, asked, answer)
        assert baselines._score(split, (first, further)) == pytest.approx(expected), words[first]


def test_the_answer_is_in_the_sentence_that_shares_most_with_the_question() -> None:
    assert baseline_answer(QUESTION) == "Orellana"
    cell = sliding_window(SplitQuestion.of(QUESTION))
    assert cell is not None and SplitQuestion.of(QUESTION).text(cell) == (29, 37)


def test_a_context_without_content_words_has_no_answer() -> None:
    assert baseline_answer(Question(1, "Who?", "It is. ")) == ""
    assert baseline_answer(Question(1, "Who?", "")) == ""


def test_the_nearest_candidate_is_counted_from_its_nearer_end() -> None:
    text = "Ann Lee met Eve when she slept. Bo saw it."
    names = tuple(Answer(name, text.index(name)) for name in ("Ann Lee", "Eve", "Bo"))
    question = Question(1, "she", text, (), names, text.index("she"))
    assert baseline_answer(question) == "Eve"
    assert baseline_answer(Question(1, "it", text, (), names[::2], text.index("it"))) == "Bo"
    assert baseline_name([question]) == "nearest candidate"
    assert baseline_name([question, QUESTION]) == "sliding window"


def test_candidates_without_a_mark_are_scored_by_the_window() -> None:
    names = (Answer("lives", CONTEXT.index("lives")), Answer("Orellana", CONTEXT.index("Orellana")))
    assert baseline_answer(Question(1, QUESTION.question, CONTEXT, (), names)) == "Orellana"
