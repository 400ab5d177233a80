"""Inspection of the answer to a text: labels with probabilities, and what the answer rests on."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from heed.core.errors import UsageError
from heed.tasks.predictor import Explanation, Prediction, Predictor

MAX_DOCUMENT = 100_000
"""Maximum characters of a text."""


@dataclass(frozen=True)
class AnswerInspection:
    """Everything that is shown of the answer to a text."""

    answers: tuple[Prediction, ...]
    """The most probable first."""
    explanation: Explanation
    task: Literal["answer"] = "answer"

    def to_json(self) -> dict[str, Any]:
        """The fields as a JSON object."""
        return asdict(self)


def inspect_answer(predictor: Predictor, text: str, nbest: int) -> AnswerInspection:
    """Answer a text, and explain the answer. Raises UsageError for a text that is blank or too long."""
    if not text.strip():
        raise UsageError("the text is empty.")
    if len(text) > MAX_DOCUMENT:
        raise UsageError(f"the text has {len(text):,} characters; the limit is {MAX_DOCUMENT:,}.")
    [answers] = predictor.predict([text], nbest)
    return AnswerInspection(tuple(answers), predictor.explain(text))
