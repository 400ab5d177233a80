"""Preparation of questions: held-out contexts, characters, vocabulary of words, and the token store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from heed.core.progress import watched
from heed.core.run_files import RunFiles
from heed.data.store import write_store
from heed.data.validation import Row as TextRow
from heed.data.validation import write_valid
from heed.nn.word_source import FIRST_CHARACTER, NUM_CASES
from heed.tasks import prepare
from heed.tasks.span.batch import ALL_COLUMNS
from heed.tasks.span.rows import require_divided, row_of, train_questions, valid_questions
from heed.tasks.span.words import MARKS, MAX_QUESTION_WORDS, Cell, PairEncoder, Row, SpanWords, SplitQuestion
from heed.tasks.words import WordEncoder, frequent_characters, looked_up, normalised, num_singletons
from heed.text.normalise import Normaliser
from heed.text.readers.questions import Question
from heed.text.tokenizers import Tokenizer
from heed.text.words import split_words

SIDES = ("src",)
LOST = "the answer is not in the context"
TOO_LONG = "every answer is longer than head.max_words"
UNANSWERED = "without an answer (head.no_answer is false)"
NO_CANDIDATE = "no candidate is in the context, or the answer is none of them"


def prepare_spans(
    recipe: Any, folder: Path, num_questions: int, reuse: Mapping[str, Tokenizer] | None, quiet: bool
) -> prepare.Corpus:
    """Hold out contexts, list the characters, train a tokenizer (or `reuse` one), and encode."""
    data = recipe.data
    valid = [row_of(question) for question in valid_questions(data, recipe.seed, num_questions)]
    require_divided(data, num_questions, len(valid))
    write_valid(folder, valid)

    def questions(title: str) -> Iterator[Question]:
        return watched(train_questions(data, recipe.seed, num_questions), title, "questions", quiet)

    def lines() -> Iterator[TextRow]:
        for text in _distinct_texts(questions("reading for the tokenizer")):
            yield (" ".join(looked_up(normalised(word.text, data), data) for word in split_words(text)),)

    tokenizers = reuse or prepare.train_tokenizers(recipe.tokenizer, SIDES, lines, num_questions, folder, quiet=quiet)
    tokenizer = tokenizers["src"]
    has_own_words = recipe.tokenizer.kind == "word" and not reuse
    labels = SpanWords(
        characters=_characters(questions("reading characters")),
        num_singletons=num_singletons(tokenizer, lines()) if has_own_words else 0,
        cut_at_marks=False,
    )
    labels.write(RunFiles(folder))
    words = WordEncoder(data, tokenizer, labels)
    encoder = PairEncoder(words, data.max_tokens, data.overlap, recipe.model.max_positions)
    seen, dropped = prepare.SeenRows(folder), Counter[str]()
    rows = encoded(questions("encoding"), encoder, recipe.head, dropped, seen)
    files = prepare.fingerprints(data, "table")
    store = _write_store(folder, rows, encoder, recipe, files)
    prepare.require_trainable(store)
    return prepare.finish(data, "table", seen, len(store), len(valid), dropped, files)


def _distinct_texts(questions: Iterable[Question]) -> Iterator[str]:
    """Every question, and every context once if its questions follow each other."""
    before = None
    for question in questions:
        if question.context != before:
            yield question.context
        before = question.context
        yield question.question


def _characters(questions: Iterable[Question]) -> tuple[str, ...]:
    counts = Counter[str]()
    for text in _distinct_texts(questions):
        counts.update("".join(text.split()))
    return frequent_characters(counts)


def encoded(
    questions: Iterable[Question], encoder: PairEncoder, head: Any, dropped: Counter[str], seen: prepare.SeenRows
) -> Iterator[tuple[list[int], ...]]:
    """The columns of each question, in each window of its context that has an answer, or shows that there is none."""
    normaliser = encoder.words.data.normaliser
    for chunk in prepare.chunks(questions, 256):
        split = [encoder.split(question) for question in chunk]
        for each, rows in zip(split, encoder.windows(split), strict=True):
            of_question = list(_training_rows(each, rows, head, dropped))
            if of_question:
                seen.add((seen_text(each.question, normaliser),))
            for row in of_question:
                yield tuple(row[name] for name in ALL_COLUMNS)


def seen_text(question: Question, normaliser: Normaliser) -> str:
    """A question with its context, both normalised, as they are looked for in test sets."""
    return f"{normaliser.apply(question.question)}\t{normaliser.apply(question.context)}"


def _training_rows(
    split: SplitQuestion, rows: list[tuple[int, Row]], head: Any, dropped: Counter[str]
) -> Iterator[Row]:
    """The windows that can be trained on; why a question has none is counted."""
    answers = split.question.answers or ()
    cells = split.cells(answers)
    short = [cell for cell in cells if cell[1] < head.max_words]
    candidates = split.cells(split.question.candidates)
    if answers and not cells:
        dropped[LOST] += 1
    elif answers and not short:
        dropped[TOO_LONG] += 1
    elif not answers and not head.no_answer:
        dropped[UNANSWERED] += 1
    elif split.question.candidates and (not candidates or not {*short} <= {*candidates}):
        dropped[NO_CANDIDATE] += 1
    else:
        for begin, row in rows:
            window = with_spans(split, begin, row, short, head.max_words)
            if window and (window["answers"] or head.no_answer):
                yield window


def with_spans(split: SplitQuestion, begin: int, row: Row, answers: list[Cell], max_words: int) -> Row | None:
    """A window with the answers and candidates inside it; None if the candidates are all outside."""
    asked = row["asked"][0]
    end = begin + len(row["starts"]) - asked
    first = asked - begin

    def inside(cells: Iterable[Cell]) -> list[int]:
        return [
            value for at, further in cells if begin <= at and at + further < end and further < max_words
            for value in (at + first, further)
        ]  # fmt: skip

    candidates = inside(split.cells(split.question.candidates))
    if split.question.candidates and not candidates:
        return None
    return {**row, "answers": inside(answers), "candidates": candidates}


def _write_store(
    folder: Path, rows: Iterable[tuple[list[int], ...]], encoder: PairEncoder, recipe: Any, files: Mapping[str, Any]
) -> Any:
    words, labels = encoder.words, encoder.words.labels
    length = 2 * (recipe.data.max_tokens + MAX_QUESTION_WORDS + 2) * 50  # a word has at most 40 characters
    sizes = {
        "src": len(words.tokenizer.vocabulary), "starts": length, "chars": len(labels.characters) + FIRST_CHARACTER,
        "cases": NUM_CASES, "marks": len(MARKS), "asked": length, "answers": length, "candidates": length,
    }  # fmt: skip
    fingerprint: dict[str, Any] = {"files": {name: dict(file) for name, file in files.items()}}
    fingerprint |= prepare.vocabulary_digests({"src": words.tokenizer})
    return write_store(folder / "data" / "train", [*sizes], rows, [*sizes.values()], fingerprint)
