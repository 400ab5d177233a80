"""Words of a question and its context: their ids, what they have in common, and spans between them.

A row is the question, an end of sentence, and the context. The mark of a word is the exact-match feature of Chen et al.
(2017, section 3.2): whether a word of the context is in the question, in any case of letters, or begins like one; the
word that the question is about and the candidates are marked too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pydantic import NonNegativeInt

from heed.nn.contract import Vocabularies
from heed.nn.word_source import CHARACTER_PAD, FIRST_CHARACTER
from heed.tasks.words import COLUMNS, StoredLabels, WordEncoder, Words
from heed.text.readers.questions import Answer, Question
from heed.text.vocabulary import Vocabulary
from heed.text.words import Word, split_words

MARKS = ("", "other", "question", "found", "alike", "same", "mark", "candidate", "named")
"""Marks: none, and after one that is not used: of the question a word, and one that the context has; of the context a
word that begins like one of the question, and one that is in it; the word that is asked about; candidates, and their
words elsewhere."""
ALIKE = 5
"""Letters at the beginning that words share to be alike."""
MAX_QUESTION_WORDS = 100
"""Words of a question that are read."""
Cell = tuple[int, int]
"""A span: its first word, counted within the context, and the number of further words."""


class SpanWords(StoredLabels):
    """What the ids of characters stand for, and the words that occur once; `labels.json` of a run folder."""

    characters: tuple[str, ...] = ()
    """Characters of words, from id 2 on; fewer than these are unknown."""
    num_singletons: NonNegativeInt = 0
    """Words that occur once in training, which are the last ids of the vocabulary."""
    cut_at_marks: bool = True
    """Whether the marks after a letter are words of their own, as in runs of versions that did not write this."""

    @cached_property
    def character_ids(self) -> Mapping[str, int]:
        """The id of each character."""
        return {character: id for id, character in enumerate(self.characters, start=FIRST_CHARACTER)}

    @property
    def mark_ids(self) -> Mapping[str, int]:
        """The id of each mark."""
        return {mark: id for id, mark in enumerate(MARKS)}

    def vocabularies(self, num_pieces: int) -> Vocabularies:
        """The sizes of a model's vocabularies."""
        return Vocabularies(
            num_pieces, 2, num_characters=len(self.characters) + FIRST_CHARACTER, num_marks=len(MARKS) - 1,
            num_singletons=self.num_singletons,
        )  # fmt: skip


@dataclass(frozen=True)
class SplitQuestion:
    """A question with its words and those of its context."""

    question: Question
    asked: Sequence[Word]
    words: Sequence[Word]

    @staticmethod
    def of(question: Question, cut_at_marks: bool = False) -> SplitQuestion:
        """The words, with their places in the text. `cut_at_marks`: see `split_words`."""
        asked = split_words(question.question, cut_at_marks)[:MAX_QUESTION_WORDS]
        return SplitQuestion(question, asked, split_words(question.context, cut_at_marks))

    def cell(self, answer: Answer) -> Cell | None:
        """The fewest words that contain an answer; None if it is not in the context, or has no words."""
        found = answer.found_in(self.question.context)
        if found is None or found.start is None:
            return None
        end = found.start + len(found.text)
        inside = [at for at, word in enumerate(self.words) if word.end > found.start and word.start < end]
        return (inside[0], inside[-1] - inside[0]) if inside else None

    def cells(self, answers: Iterable[Answer]) -> list[Cell]:
        """The cells of the answers that are in the context."""
        return [cell for answer in answers if (cell := self.cell(answer)) is not None]

    def text(self, cell: Cell) -> tuple[int, int]:
        """The first character of a span in the context, and the one after its last."""
        return self.words[cell[0]].start, self.words[sum(cell)].end

    @cached_property
    def marks(self) -> tuple[list[str], list[str]]:
        """The marks of the words of the question, and of those of the context."""
        asked, words = [_key(word) for word in self.asked], [_key(word) for word in self.words]
        same, alike = {*asked} & {*words}, {word[:ALIKE] for word in asked if len(word) >= ALIKE}
        of_asked = ["found" if word in same else "question" for word in asked]
        of_words = ["same" if word in same else "alike" if word[:ALIKE] in alike else "" for word in words]
        chosen = self.cells(self.question.candidates)
        named = {words[at] for first, further in chosen for at in range(first, first + further + 1)}
        of_words = ["named" if word in named else mark for word, mark in zip(words, of_words, strict=True)]
        for first, further in chosen:
            of_words[first : first + further + 1] = ["candidate"] * (further + 1)
        if (mark := self.question.mark) is not None:
            of_words = ["mark" if w.start <= mark < w.end else m for w, m in zip(self.words, of_words, strict=True)]
        return of_asked, of_words


def _key(word: Word) -> str:
    return word.text.casefold()


Row = dict[str, Any]
"""The columns of the token store for a window of a context, by name."""


class PairEncoder:
    """Turns questions with their contexts into columns of the token store, for training and in use.

    Windows have at most `max_tokens` tokens of a context, and fewer where the reader has not so many positions. A
    question is cut where it would take more than half of them.
    """

    def __init__(
        self, words: WordEncoder[SpanWords], max_tokens: int, overlap: int, max_positions: int | None = None
    ) -> None:
        """`max_positions`: see `ModelConfig.max_positions`."""
        self.words = words
        self.max_tokens, self.overlap = max_tokens, overlap
        self.most = None if max_positions is None else max(2, max_positions - 2)
        """Tokens of a question and a window together, without the end of each."""

    def split(self, question: Question) -> SplitQuestion:
        """A question with its words, as the run cuts texts."""
        return SplitQuestion.of(question, self.words.labels.cut_at_marks)

    def windows(self, questions: Sequence[SplitQuestion]) -> list[list[tuple[int, Row]]]:
        """The windows of each context: its first word, and its columns together with the question."""
        asked = self._asked(questions)
        context = self.words.columns([_words(each.words, each.marks[1]) for each in questions])
        rows = []
        for number in range(len(questions)):
            of_question = {name: asked[name][number] for name in COLUMNS}
            of_context = {name: context[name][number] for name in COLUMNS}
            spelled = _split(of_context["chars"])
            size = len(of_context["src"])
            ends = [*of_context["starts"][1:], size] if of_context["starts"] else []
            left = self.max_tokens if self.most is None else min(self.max_tokens, self.most - len(of_question["src"]))
            overlap = self.overlap if left == self.max_tokens else min(self.overlap, left // 2)
            parts = windows(ends, left, overlap)
            rows.append([(begin, _joined(of_question, _part(of_context, spelled, begin, end))) for begin, end in parts])
        return rows

    def _asked(self, questions: Sequence[SplitQuestion]) -> dict[str, list[list[int]]]:
        """The columns of the questions, cut after the words that fit."""
        columns = self.words.columns([_words(each.asked, each.marks[0]) for each in questions])
        if self.most is None:
            return columns
        half = self.most // 2
        for number, ids in enumerate(columns["src"]):
            if len(ids) > half:
                of_question = {name: columns[name][number] for name in COLUMNS}
                fit = sum(end <= half for end in [*of_question["starts"][1:], len(ids)])
                for name, values in _part(of_question, _split(of_question["chars"]), 0, fit).items():
                    columns[name][number] = values
        return columns


def _words(words: Sequence[Word], marks: Sequence[str]) -> Words:
    return Words([word.text for word in words], marks)


def windows(ends: Sequence[int], most: int, overlap: int) -> list[tuple[int, int]]:
    """Windows of words with at most `most` pieces that cover a context; neighbours share about `overlap` pieces.

    `ends` is where each word ends, in pieces. A longer word is a window of its own.
    """
    result: list[tuple[int, int]] = []
    begin, before = 0, 0
    while not result or result[-1][1] < len(ends):
        end = begin
        while end < len(ends) and (end == begin or ends[end] - before <= most):
            end += 1
        result.append((begin, end))
        if end == len(ends):
            break
        shared = next(at for at in range(begin + 1, end + 1) if at == end or ends[end - 1] - ends[at - 1] <= overlap)
        begin, before = shared, ends[shared - 1]
    return result


def _part(
    columns: Mapping[str, Sequence[int]], spelled: Sequence[Sequence[int]], begin: int, end: int
) -> dict[str, list[int]]:
    """The columns of the words from `begin` to `end`; `spelled` has the characters of each word."""
    starts = columns["starts"]
    first = starts[begin] if begin < len(starts) else 0
    last = starts[end] if end < len(starts) else len(columns["src"])
    return {
        "src": list(columns["src"][first:last]), "starts": [at - first for at in starts[begin:end]],
        "chars": [id for word in spelled[begin:end] for id in word], "cases": list(columns["cases"][begin:end]),
        "marks": list(columns["marks"][begin:end]),
    }  # fmt: skip


def _split(characters: Sequence[int]) -> list[list[int]]:
    """The characters of each word, with the separator after it."""
    words: list[list[int]] = [[]]
    for id in characters:
        words[-1].append(id)
        if id == CHARACTER_PAD:
            words.append([])
    return words[:-1]


def _joined(asked: Mapping[str, list[int]], context: Mapping[str, list[int]]) -> Row:
    """A question, an end of sentence and a context; `asked` has the number of words before the context."""
    first = len(asked["src"])
    return {
        "src": [*asked["src"], Vocabulary.eos_id, *context["src"]],
        "starts": [*asked["starts"], first, *(first + 1 + at for at in context["starts"])],
        "chars": [*asked["chars"], CHARACTER_PAD, *context["chars"]],
        "cases": [*asked["cases"], 0, *context["cases"]],
        "marks": [*asked["marks"], 0, *context["marks"]],
        "asked": [len(asked["starts"]) + 1],
    }  # fmt: skip
