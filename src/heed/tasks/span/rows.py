"""Rows of the validation data, and the questions that are held out for it: a context with all its questions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice

from heed.core.errors import DataError
from heed.core.json_text import parse_json
from heed.data.validation import Row
from heed.tasks import prepare
from heed.tasks.span.data import SpanData
from heed.text.readers.questions import Answer, Question


def row_of(question: Question) -> Row:
    """A question as text: question, context, places of its spans, and its answers as a JSON list."""
    rest = {
        "answers": _pairs(question.answers or ()), "candidates": _pairs(question.candidates), "mark": question.mark,
        "id": question.id, "group": question.group,
    }  # fmt: skip
    return question.question, question.context, json.dumps(rest, ensure_ascii=False), references_in(question)


def references_in(question: Question) -> str:
    """The answers to a question as a JSON list, as metrics read them."""
    return json.dumps(question.texts, ensure_ascii=False)


def question_of(row: Row, number: int = 0) -> Question:
    """The question of a row that `row_of` made. Raises ValueError, TypeError or LookupError for another one."""
    rest = parse_json(row[2])
    answers, candidates = (tuple(Answer(*each) for each in rest[name]) for name in ("answers", "candidates"))
    return Question(number, row[0], row[1], answers, candidates, rest["mark"], rest["id"], rest["group"])


def _pairs(answers: tuple[Answer, ...]) -> list[tuple[str, int | None]]:
    return [(answer.text, answer.start) for answer in answers]


def valid_questions(data: SpanData, seed: int, num_questions: int) -> Iterator[Question]:
    """The validation questions: those of their own file, or of the contexts that are held out."""
    every = iter(data.questions(data.valid_table)) if data.valid_table else _held(data, seed, num_questions, True)
    return islice((each for each in every if _is_usable(each)), data.max_valid)


def require_divided(data: SpanData, num_questions: int, num_valid: int) -> None:
    """Raise DataError if there are no validation questions, or if they would be most of all."""
    advice = "Give separate validation questions (--valid-table)"
    if not data.valid_table and 2 * num_valid > num_questions:
        raise DataError(
            f"the contexts that were held out have {num_valid:,} of the {num_questions:,} questions. {advice}, or "
            "lower data.hold_out."
        )
    if not num_valid:
        raise DataError(f"no context was held out, because there are so few. {advice}, or raise data.hold_out.")


def train_questions(data: SpanData, seed: int, num_questions: int) -> Iterator[Question]:
    """The training questions that have texts."""
    every = iter(data.questions(data.table)) if data.valid_table else _held(data, seed, num_questions, False)
    return (each for each in every if _is_usable(each))


def _held(data: SpanData, seed: int, num_questions: int, held: bool) -> Iterator[Question]:
    number = data.num_held_out
    questions = data.questions(data.table)
    return (q for q in questions if prepare.is_held_out(q.context, num_questions, number, seed) == held)


def _is_usable(question: Question) -> bool:
    return bool(question.question.strip() and question.context.strip())
