"""Tagging of a stream of lines: CoNLL files, to which a column of tags is added, and plain text, one sentence a line.

Lines that are not tokens (comments, multiword tokens, `-DOCSTART-`) and all other columns are kept. A sentence is
answered when its end has been read.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import dropwhile

from heed.core.progress import message
from heed.tasks.predictor import AnswerOptions
from heed.tasks.tagging.prediction import TagPrediction, prediction_of
from heed.tasks.tagging.tagger import Tagger, Tagging
from heed.tasks.words import Words
from heed.text.readers.conll import MARKED, Columns, Layout, fields_of, find_layout, mark_of, ragged
from heed.text.words import Word, joined_words, split_words

NAME = "standard input"
NOTHING = "_"
"""In the place of a tag that there is not."""


@dataclass(frozen=True)
class Request:
    """A sentence of the stream, and the line that it was or the rows in which it is written."""

    words: Sequence[Word]
    line: str
    sentences: Sequence[Words]
    """Several, if each marked token has a tagging of its own."""
    rows: Sequence[tuple[str, bool]] = ()
    """For CoNLL: each line, and whether it is a token."""


Item = str | Request
"""A line that is copied, or a sentence."""


def answered(
    groups: Iterable[Sequence[str]], tagger: Tagger, columns: Columns, options: AnswerOptions
) -> Iterator[list[str]]:
    """The lines of output for each group of lines of input."""
    stream: Stream | None = None
    waiting: list[str] = []
    for group in groups:
        new = [*waiting[-1:], *group]
        waiting += group
        if stream is None:
            if _is_unclear(new, options):
                continue
            stream = _opened(waiting, tagger, columns, options)
        lines, waiting = waiting, []
        yield _answers(stream.read(lines), stream, tagger, options)
    if stream is None and any(line.strip() for line in waiting):
        stream = _opened(waiting, tagger, columns, options)
    if stream is None:
        yield [] if options.json else waiting
    else:
        yield _answers([*stream.read(waiting), *stream.end()], stream, tagger, options)


def _is_unclear(lines: Sequence[str], options: AnswerOptions) -> bool:
    """Whether these first lines are blank, or one word each that may be rows of a sentence or sentences by themselves.

    Rows are not answered before the blank line after them, so nobody waits longer for their tags.
    """
    begun = [*dropwhile(lambda line: not line.strip(), lines)]
    return not begun or (options.input == "auto" and all(len(_columns_of(line)) == 1 for line in begun))


def _columns_of(line: str) -> list[str]:
    """The columns of a line, if it is a row. Other white space than blanks and tabs is part of a token."""
    return fields_of(line, has_tabs="\t" in line.strip())


def _answers(items: Sequence[Item], stream: Stream, tagger: Tagger, options: AnswerOptions) -> list[str]:
    """The lines of output for the items of the stream, whose sentences are tagged together."""
    sentences = [sentence for item in items if isinstance(item, Request) for sentence in item.sentences]
    taggings = iter(tagger.taggings(sentences, options.top))
    lines: list[str] = []
    for item in items:
        if isinstance(item, str):
            lines += [] if options.json else [item]
            continue
        found = [next(taggings) for _ in item.sentences]
        lines += _records(item, found) if options.json else stream.written(item, found)
    return lines


def _records(request: Request, found: Sequence[Sequence[Tagging]]) -> Iterator[str]:
    """A JSON object for each tagging of the sentence by its own mark."""
    for sentence, taggings in zip(request.sentences, found, strict=True):
        predictions = [prediction_of(request.line, request.words, tagging) for tagging in taggings]
        record = {"input": request.line, "tokens": [word.text for word in request.words]}
        marked = [index for index, mark in enumerate(sentence.marks) if mark]
        yield json.dumps(
            {**record, **({"marked": marked} if marked else {}), "predictions": [*map(_fields, predictions)]},
            ensure_ascii=False,
        )


def _fields(prediction: TagPrediction) -> dict[str, object]:
    entities = [asdict(entity) for entity in prediction.entities]
    return {"text": prediction.text, "probability": prediction.probability, "entities": entities}


class Stream(ABC):
    """Lines that become sentences, and taggings that become lines."""

    def __init__(self, options: AnswerOptions) -> None:
        self.options = options

    @abstractmethod
    def read(self, lines: Sequence[str]) -> list[Item]:
        """The sentences that end in these lines, and the lines between them."""

    def end(self) -> list[Item]:
        """The last sentence, if it has not ended."""
        return []

    @abstractmethod
    def written(self, request: Request, found: Sequence[Sequence[Tagging]]) -> list[str]:
        """The lines of a sentence with its tags: the best taggings for each of its marks."""

    def _cells(self, found: Sequence[Sequence[Tagging]], index: int) -> list[str]:
        """The added columns of a token, with underscores where a short sentence has fewer taggings than were asked."""
        cells = []
        for taggings in found:
            for tagging in taggings:
                cells += [tagging.tags[index], f"{tagging.probabilities[index]:.4f}"][: self._width]
            cells += [NOTHING] * (self._width * (self.options.top - len(taggings)))
        return cells

    @property
    def _width(self) -> int:
        """The number of columns of a tagging."""
        return 1 + self.options.probabilities


class TextStream(Stream):
    """A sentence on each line; the output has a token with its tag on each line, and a blank line after a sentence."""

    def read(self, lines: Sequence[str]) -> list[Item]:
        items: list[Item] = []
        for line in lines:
            words = split_words(line)
            items.append(
                Request(words, line, [Words([word.text for word in words])]) if words else Request([], line, [])
            )
        return items

    def written(self, request: Request, found: Sequence[Sequence[Tagging]]) -> list[str]:
        rows = ["\t".join([word.text, *self._cells(found, at)]) for at, word in enumerate(request.words)]
        return [*rows, ""]


class ConllStream(Stream):
    """Rows of tokens; the tags become further columns."""

    def __init__(self, layout: Layout, by_mark: bool, options: AnswerOptions) -> None:
        super().__init__(options)
        self.layout = layout
        self.by_mark = by_mark
        self._rows: list[tuple[str, bool]] = []
        """The lines of the sentence so far, and whether each is a token."""
        self._fields: list[list[str]] = []
        self._number = 0

    def read(self, lines: Sequence[str]) -> list[Item]:
        items: list[Item] = []
        for line in lines:
            self._number += 1
            kind = self.layout.kind(line, inside=bool(self._rows))
            if kind in ("row", "no token"):
                self._add(line, kind == "row")
            else:
                items += [*(self.end() if kind in ("blank", "document") else ()), line]
        return items

    def _add(self, line: str, is_token: bool) -> None:
        self._rows.append((line, is_token))
        if not is_token:
            return
        fields = self.layout.fields(line)
        number = len(self._fields[0]) if self._fields else self.layout.num_columns
        if len(fields) != number and (self._fields or not self.by_mark):
            raise ragged(f"{NAME}:{self._number}", fields, number)
        self._fields.append(fields)

    def end(self) -> list[Item]:
        if not self._fields:
            lines: list[Item] = [line for line, _ in self._rows]
            self._rows = []
            return lines
        tokens = [fields[self.layout.token] for fields in self._fields]
        marks = [] if self.layout.mark is None else [mark_of(fields[self.layout.mark]) for fields in self._fields]
        request = Request(joined_words(tokens), " ".join(tokens), self._sentences(tokens, marks), self._rows)
        self._rows, self._fields = [], []
        return [request]

    def _sentences(self, tokens: Sequence[str], marks: Sequence[str]) -> list[Words]:
        if not self.by_mark:
            return [Words(tokens, marks)]
        marked = [index for index, mark in enumerate(marks) if mark]
        return [Words(tokens, [MARKED * (at == index) for at in range(len(tokens))]) for index in marked]

    def written(self, request: Request, found: Sequence[Sequence[Tagging]]) -> list[str]:
        between = "\t" if self.layout.has_tabs else " "
        lines, number = [], 0
        num_cells = len(found) * self.options.top * self._width
        for line, is_token in request.rows:
            cells = self._cells(found, number) if is_token else [NOTHING] * num_cells
            number += is_token
            lines.append(between.join([line.rstrip(), *cells]))
        return lines


def _opened(lines: Sequence[str], tagger: Tagger, columns: Columns, options: AnswerOptions) -> Stream:
    """The stream of the kind that was asked for, or that the first lines look like."""
    if options.input == "text" or (options.input == "auto" and not _looks_like_rows(lines, tagger)):
        if options.input == "auto":
            message("reading one sentence per line (--input-as conll reads one token per line)", options.quiet)
        return TextStream(options)
    width = max(len(_columns_of(line)) for line in lines)
    token = columns.token if width > 1 else 1
    mark = columns.mark if width > 1 else None
    layout = find_layout(lines, Columns(token, None, mark), NAME, needs_tags=False)
    return ConllStream(layout, tagger.labels.by_mark, options)


def _looks_like_rows(lines: Sequence[str], tagger: Tagger) -> bool:
    """Whether the first lines are rows of tokens: one word each, tabs, or the columns of the training data."""
    rows = [line for line in lines if line.strip() and not line.startswith("#")] or [*lines]
    if any(line.startswith("-DOCSTART-") or "\t" in line.strip() for line in lines):
        return True
    first = [*_until_blank(rows)]
    sizes = {len(_columns_of(line)) for line in first}
    if len(sizes) != 1:
        return False
    [size] = sizes
    if size == 1:
        return any(len(line.split()) == 1 for line in first)  # "Non !" with a no-break space is rather a sentence
    known = {*tagger.labels.labels, *tagger.labels.for_file(tagger.labels.labels)}
    has_tags = size == tagger.labels.num_columns and all(_columns_of(line)[-1] in known for line in first)
    return has_tags or (len(first) > 1 and size == tagger.labels.num_columns - 1)


def _until_blank(lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        if not line.strip():
            return
        yield line
