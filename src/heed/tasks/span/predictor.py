"""Predictor of extractive answers: answers to questions about texts, with their places and probabilities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from heed.core.errors import UsageError
from heed.core.json_text import parse_json
from heed.tasks.predictor import Prediction, Predictor
from heed.tasks.span.answering import Answerer, SpanPrediction
from heed.tasks.span.evaluation import analyse, evaluate_table
from heed.tasks.span.words import PairEncoder, SpanWords
from heed.tasks.words import WordEncoder
from heed.text.readers.questions import Question, questions_of


class SpanPredictor(Predictor):
    """A trained run that answers questions about texts."""

    abilities = frozenset({"predict", "answer"})

    @cached_property
    def answerer(self) -> Answerer:
        """The model with its encoding of words."""
        data: Any = self.run.recipe.data
        words = WordEncoder(data, self.run.tokenizers["src"], SpanWords.read(self.run.files))
        return Answerer(self.run.model, PairEncoder(words, data.max_tokens, data.overlap), self.run.device)

    def answer(self, questions: Sequence[Question], top: int = 1) -> list[list[SpanPrediction]]:
        """The `top` most probable answers to each question, the best first."""
        return self.answerer.answers(questions, top)

    def predict(self, inputs: Sequence[str], top: int = 1) -> list[list[Prediction]]:
        """Answer lines of a question, a tab and its context, or of JSON objects with `question` and `context`."""
        answers: Any = self.answer([question_in(line, number) for number, line in enumerate(inputs, start=1)], top)
        return list(answers)

    def warm_up(self) -> None:
        self.predict(["1\t1"])

    def evaluate(self, table: Path) -> Any:
        """Score the run on a table of questions."""
        return evaluate_table(self, table)

    def analyse(self, quiet: bool = False) -> Mapping[str, Any]:
        return analyse(self)

    def commands(self, name: str) -> Sequence[str]:
        return [
            f"heed predict {name} < questions.tsv > answers.txt     # a question, a tab and its context on each line",
            f"heed evaluate {name} --table test.jsonl",
        ]

    def facts(self) -> Mapping[str, Any]:
        head: Any = self.run.recipe.head
        return {"longest answer": f"{head.max_words} words", "no answer": "possible" if head.no_answer else "never"}


def question_in(line: str, number: int) -> Question:
    """The question of a line. Raises UsageError or DataError for a line that has none."""
    if line.lstrip().startswith("{"):
        try:
            record = parse_json(line)
        except ValueError as error:
            raise UsageError(f"line {number} begins like a JSON object, but is none: {line[:80]!r}.") from error
        return next(questions_of(record, number, f"line {number}", needs_answers=False))
    question, tab, context = line.partition("\t")
    if not tab or "\t" in context:
        raise UsageError(
            f"expected a question, a tab and its context, or a JSON object with both, got {line.count(chr(9))} tabs: "
            f"{line[:80]!r}."
        )
    return Question(number, question, context)
