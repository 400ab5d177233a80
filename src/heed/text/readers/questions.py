"""Reader of questions about texts, with their answers in the text: tables, JSON Lines and the layouts of SQuAD and GAP.

A table has the columns `question`, `context`, `answer` and `start` (the answer's first character, counted from 0); an
empty answer is none. A JSON object may instead hold `answers`, a list of such answers, and `candidates`, the spans
among which the answer is chosen. SQuAD's objects hold a context with its questions in `qas`; GAP's tables a pronoun
with two names. The usual other names of columns are understood.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heed.core.errors import DataError, UsageError
from heed.core.json_text import parse_json
from heed.text.archives import open_bytes, plain_name, shown_name
from heed.text.readers.columns import listed
from heed.text.readers.corpus import CorpusFiles, format_of
from heed.text.readers.lines import Errors
from heed.text.readers.named import read_named
from heed.text.readers.records import JSON_KINDS, jsonl_records, parquet_records

Record = Mapping[str, Any]

QUESTION = ("question", "query")
CONTEXT = ("context", "passage", "paragraph", "text")
ANSWER = ("answer", "answers", "answer_text")
START = ("start", "answer_start", "answer start")
MARK = ("mark", "mark_start")
FEMININE, MASCULINE = ("she", "her", "hers", "herself"), ("he", "him", "his", "himself")


@dataclass(frozen=True)
class Answer:
    """A text that should be in the context from character `start` on (None: not given)."""

    text: str
    start: int | None = None

    def found_in(self, context: str) -> Answer | None:
        """The answer where it really is: at `start`, or else at its nearest occurrence; None if it does not occur."""
        start = self.start or 0
        if context.startswith(self.text, start) and start >= 0:
            return Answer(self.text, start)
        places = occurrences(context, self.text)
        return Answer(self.text, min(places, key=lambda at: abs(at - start))) if places else None


@dataclass(frozen=True)
class Question:
    """A question about a context."""

    number: int
    """The line or record that it is from, counted from 1."""
    question: str
    context: str
    answers: tuple[Answer, ...] | None = None
    """All answers that were given to it; none if it has no answer; None if the file does not say."""
    candidates: tuple[Answer, ...] = ()
    """The spans among which the answer is; empty: any span."""
    mark: int | None = None
    """The character of the context at which the word begins that the question is about."""
    id: str = ""
    group: str = ""
    """Part of the data whose scores are also shown alone."""

    @property
    def texts(self) -> list[str]:
        """The answers as text."""
        return [answer.text for answer in self.answers or ()]


@dataclass(frozen=True)
class QuestionTable:
    """A file of questions."""

    path: str | Path
    errors: Errors = "strict"
    needs_answers: bool = True

    def __iter__(self) -> Iterator[Question]:
        """The questions in order, one record in memory at a time.

        Raises MissingInputError for a file that cannot be read, DataError for a malformed one or one without
        the columns, and UsageError for an unknown format.
        """
        num_questions = 0
        for place, number, record in _records(self.path, self.errors):
            for question in questions_of(record, number, place, self.needs_answers):
                num_questions += 1
                yield question
        if not num_questions:
            raise DataError(f"{shown_name(self.path)}: no questions.")


def occurrences(context: str, text: str) -> list[int]:
    """The places of a text in a context, which may overlap; none of an empty text."""
    places: list[int] = []
    at = context.find(text) if text else -1
    while at >= 0:
        places.append(at)
        at = context.find(text, at + 1)
    return places


def _records(path: str | Path, errors: Errors) -> Iterator[tuple[str, int, Record]]:
    """The records of a file with their place and number."""
    name, format = shown_name(path), format_of(Path(path))
    if Path(plain_name(path)).suffix.lower() == ".json":
        for number, record in enumerate(_paragraphs(path), start=1):
            yield f"{name}, paragraph {number}", number, record
    elif format in ("jsonl", "parquet"):
        CorpusFiles(pairs=path)  # refuses compressed Parquet
        records = jsonl_records(path, errors) if format == "jsonl" else parquet_records(path)
        for number, record in records:
            yield f"{name}:{number}", number, record
    elif format in ("tsv", "csv"):
        for number, row in read_named(path, errors):
            yield f"{name}:{number}", number, row
    else:
        raise UsageError(f"{name}: give a table of questions, a .jsonl, .json (SQuAD), .csv, .tsv or .parquet file.")


def _paragraphs(path: str | Path) -> Iterator[Record]:
    """The paragraphs of SQuAD's own file, one JSON object with `data`. Raises DataError for anything else."""
    name = shown_name(path)
    try:
        with open_bytes(path) as file:
            articles = parse_json(file.read())["data"]
        for article in articles:
            yield from article["paragraphs"]
    except (ValueError, TypeError, LookupError) as error:
        raise DataError(
            f'{name}: not in SQuAD\'s format, {{"data": [{{"paragraphs": [...]}}]}}. If each line is a JSON object, '
            "the name must end in .jsonl."
        ) from error


def questions_of(record: Record, number: int, place: str, needs_answers: bool = True) -> Iterator[Question]:
    """The questions of a record in any layout. Raises DataError for a malformed one, or one without the columns."""
    if not isinstance(record, Mapping):
        raise DataError(f"{place}: got {_kind(record)}; a paragraph is a JSON object.")
    folded = {str(name).strip().casefold(): value for name, value in record.items()}
    if "pronoun-offset" in folded:
        yield _of_gap(folded, number, place, needs_answers)
    elif "qas" in folded:
        context = _text(folded, CONTEXT, place)
        if not isinstance(folded["qas"], list):
            raise DataError(f"{place}: 'qas' is {_kind(folded['qas'])}; it must be a list of questions.")
        for qa in folded["qas"]:
            if not isinstance(qa, Mapping):
                raise DataError(f"{place}: a question is {_kind(qa)}; it must be an object.")
            yield _flat({**qa, "context": context}, number, place, needs_answers)
    else:
        yield _flat(folded, number, place, needs_answers)


def _flat(record: Record, number: int, place: str, needs_answers: bool) -> Question:
    answers = _answers(record, place)
    if answers is None and needs_answers:
        raise DataError(f"{place} has no column called answer or answers, but {listed(list(record))}.")
    return Question(
        number, _text(record, QUESTION, place), _text(record, CONTEXT, place), answers,
        tuple(_answer(each, place) for each in _list(record.get("candidates"), "candidates", place)),
        _number(next((record[name] for name in MARK if name in record), None), "mark", place),
        _name(record, "id"), _name(record, "group"),
    )  # fmt: skip


def _name(record: Record, column: str) -> str:
    value = record.get(column)
    return "" if value is None else str(value)


def _answers(record: Record, place: str) -> tuple[Answer, ...] | None:
    """The answers of a record; None without a column of them."""
    names = [name for name in ANSWER if name in record]
    name = next(filter(lambda each: _is_filled(record[each]), names), names[0] if names else None)
    if name is None:
        return () if record.get("is_impossible") is True else None
    if record.get("is_impossible") is True:
        return ()
    value, start = record[name], next((record[each] for each in START if _is_filled(record.get(each))), None)
    if name == "answers" and isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        value = _parsed(value, name, place)
    if isinstance(value, Mapping):
        value = _in_columns(value, place)
    if isinstance(value, list):
        return tuple(answer for each in value if (answer := _answer(each, place)).text.strip())
    if not _is_filled(value):
        return ()
    if not isinstance(value, str):
        raise DataError(f"{place}: the answer is {_kind(value)}; it must be a string.")
    return (Answer(_whole(value, name, place), _number(start, "start", place)),)


def _is_filled(value: Any) -> bool:
    return value is not None and not (isinstance(value, str) and not value.strip())


def _in_columns(value: Mapping[str, Any], place: str) -> list[Any]:
    """The answers in columns of texts and starts, as some collections have them; an object may also be one answer."""
    if isinstance(value.get("text"), str):
        return [value]
    texts = _list(value.get("text"), "text", place)
    starts = _list(value.get("answer_start") or value.get("start"), "answer_start", place) or [None] * len(texts)
    if len(starts) != len(texts):
        raise DataError(f"{place}: the answers have {len(texts)} texts and {len(starts)} starts; each text needs one.")
    return [{"text": text, "start": at} for text, at in zip(texts, starts, strict=True)]


def _answer(value: Any, place: str) -> Answer:
    """An answer in a list: a text, or an object with `text` and `start`."""
    if isinstance(value, str):
        return Answer(_whole(value, "answer", place))
    if not isinstance(value, Mapping) or not isinstance(value.get("text"), str):
        raise DataError(f'{place}: an answer is {_kind(value)}; it must be a string, or {{"text": ..., "start": ...}}.')
    start = next((value[name] for name in START if name in value), None)
    return Answer(_whole(value["text"], "answer", place), _number(start, "start", place))


def _list(value: Any, name: str, place: str) -> Sequence[Any]:
    value = _parsed(value, name, place) if isinstance(value, str) and value.strip() else value
    if value is None or value == "":
        return ()
    if not isinstance(value, list):
        raise DataError(f"{place}: {name!r} is {_kind(value)}; it must be a list.")
    return value


def _parsed(text: str, name: str, place: str) -> Any:
    try:
        return parse_json(text)
    except ValueError as error:
        raise DataError(f"{place}: {name!r} is not JSON; it must be a list.") from error


def _of_gap(record: Record, number: int, place: str, needs_answers: bool) -> Question:
    """A row of GAP (Webster et al. 2018): the answer is name A, name B, or neither; without answers, it is unknown."""
    try:
        pronoun, context = str(record["pronoun"]), str(record["text"])
        candidates = tuple(Answer(str(record[name]), _whole_number(record[f"{name}-offset"])) for name in "ab")
        mark = _whole_number(record["pronoun-offset"])
        answers = None
        if needs_answers or "a-coref" in record:
            means = [str(record[f"{name}-coref"]).upper() == "TRUE" for name in "ab"]
            answers = tuple(name for name, is_meant in zip(candidates, means, strict=True) if is_meant)
    except (LookupError, ValueError, TypeError, OverflowError) as error:
        raise DataError(f"{place}: not a row of GAP: {error} is missing or not a number.") from error
    folded = pronoun.casefold()
    group = "feminine" if folded in FEMININE else "masculine" if folded in MASCULINE else ""
    return Question(number, pronoun, context, answers, candidates, mark, _name(record, "id"), group)


def _text(record: Record, names: Sequence[str], place: str) -> str:
    """The text of the first of these columns."""
    name = next((name for name in names if name in record), None)
    if name is None:
        raise DataError(f"{place} has no column called {' or '.join(names)}, but {listed(list(record))}.")
    if not isinstance(record[name], str):
        raise DataError(f"{place}: {name!r} is {_kind(record[name])}; it must be a string.")
    return _whole(record[name], name, place)


def _whole(text: str, name: str, place: str) -> str:
    """A text without halves of characters, which JSON can write."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise DataError(f"{place}: {name!r} contains half a character, \\u{ord(text[error.start]):04x}.") from error
    return text


def _number(value: Any, name: str, place: str) -> int | None:
    """A place in a text; None if it is not given, or SQuAD's -1 for no answer."""
    if value is None or value == "" or (isinstance(value, float) and value != value):
        return None
    try:
        number = int(value) if not isinstance(value, float | str) else _whole_number(value)
    except (ValueError, TypeError, OverflowError) as error:
        raise DataError(f"{place}: {name!r} is {value!r}; it must be a whole number, counted from 0.") from error
    return number if number >= 0 else None


def _whole_number(value: Any) -> int:
    """A whole number, also as tables with gaps write them: 2.0. Raises ValueError."""
    try:
        return int(str(value))
    except ValueError:
        number = float(value)
        if not number.is_integer():
            raise
        return int(number)


def _kind(value: object) -> str:
    return JSON_KINDS.get(type(value).__name__, f"a {type(value).__name__}")
