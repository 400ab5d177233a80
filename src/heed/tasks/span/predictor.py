"""Predictor of extractive answers: answers to questions about texts, with their places and probabilities."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from heed.core.errors import UsageError
from heed.core.json_text import parse_json
from heed.tasks.arguments import one_text, require_top, several, several_texts
from heed.tasks.predictor import Prediction, Predictor
from heed.tasks.prepare import chunks
from heed.tasks.reading import Reading
from heed.tasks.span.answering import Answerer, SpanPrediction
from heed.tasks.span.evaluation import analyse, evaluate_baseline, evaluate_table
from heed.tasks.span.reading import read
from heed.tasks.span.words import PairEncoder, SpanWords
from heed.tasks.words import WordEncoder
from heed.text.readers.corpus import format_of
from heed.text.readers.labelled import cells_of
from heed.text.readers.lines import Errors
from heed.text.readers.questions import Question, QuestionTable, questions_of


class SpanPredictor(Predictor):
    """A trained run that answers questions about texts."""

    abilities = frozenset({"predict", "extract", "read"})

    @cached_property
    def answerer(self) -> Answerer:
        """The model with its encoding of words."""
        data: Any = self.run.recipe.data
        words = WordEncoder(data, self.run.tokenizers["src"], SpanWords.read(self.run.files))
        encoder = PairEncoder(words, data.max_tokens, data.overlap, self.run.recipe.model.max_positions)
        return Answerer(self.run.model, encoder, self.run.device)

    def extract(self, questions: Question | Iterable[Question], top: int = 1) -> list[list[SpanPrediction]]:
        """The `top` most probable answers to each question, the best first. A single question is one of one."""
        require_top(top)
        given = [questions] if isinstance(questions, Question) else several(questions)
        if wrong := [each for each in given if not isinstance(each, Question)][:1]:
            raise UsageError(
                f"extract takes heed.text.readers.questions.Question objects, got {type(wrong[0]).__name__}: predict "
                "takes lines of text."
            )
        return self.answerer.answers(given, top)

    def predict(self, inputs: Sequence[str], top: int = 1) -> list[list[Prediction]]:
        """Answer lines of a question, a tab and its context, or of JSON objects with `question` and `context`."""
        questions = [question_in(line, number) for number, line in enumerate(several_texts(inputs), start=1)]
        answers: Any = self.extract(questions, top)
        return list(answers)

    def read(self, text: str) -> Reading:
        """A line of a question, a tab and its context, or a JSON object: where answers begin and end, and attention."""
        return read(self.answerer, question_in(one_text(text), 1))

    def warm_up(self) -> None:
        self.predict(["1\t1"])

    def predict_table(
        self, table: Path, top: int = 1, probabilities: bool = False, errors: Errors = "strict"
    ) -> Iterator[str]:
        """The id or number of each question of a table, the question and its answers, as CSV (a TSV stays one).

        An answer is followed by its first character in the context and, if asked, its probability.
        """
        require_top(top)
        separator = "\t" if format_of(table) == "tsv" else ","
        width = 2 + probabilities
        heads = ["id", "question"]
        for name in ("answer", *(f"answer{number}" for number in range(2, top + 1))):
            heads += [name, f"{name} start", f"{name} probability"][:width]
        yield cells_of(heads, separator)
        for chunk in chunks(QuestionTable(table, errors, needs_answers=False), 256):
            for question, answers in zip(chunk, self.extract(chunk, top), strict=True):
                cells = [question.id or str(question.number), question.question]
                for each in answers:
                    start = "" if each.start is None else str(each.start)
                    cells += [each.text, start, f"{each.probability:.4f}"][:width]
                yield cells_of([*cells, *[""] * (len(heads) - len(cells))], separator)

    def evaluate(self, table: Path, errors: Errors = "strict") -> Any:
        """Score the run on a table of questions."""
        return evaluate_table(self, table, self.run.recipe.data.errors_in_test(errors))

    def baselines(self, table: Path, errors: Errors = "strict") -> Sequence[Any]:
        """The sliding window, or the nearest candidate."""
        return [evaluate_baseline(table, self.run.recipe.data.errors_in_test(errors))]

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
            raise UsageError(f"line {number} begins with {{, but is not a JSON object: {line[:80]!r}.") from error
        questions = [*questions_of(record, number, f"line {number}", needs_answers=False)]
        if len(questions) != 1:
            raise UsageError(f'line {number} has {len(questions)} questions in "qas"; give one question on each line.')
        return questions[0]
    question, tab, context = line.partition("\t")
    if not tab or "\t" in context:
        raise UsageError(
            f"expected a question, a tab and its context, or a JSON object with both, got {line.count(chr(9))} tabs: "
            f"{line[:80]!r}."
        )
    return Question(number, question, context)
