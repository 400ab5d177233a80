"""Labels of a tagging run: its tags and their scheme, characters and marks, in `labels.json` of the run folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from pydantic import NonNegativeInt

from heed.nn.contract import Vocabularies
from heed.nn.crf import Legal
from heed.nn.word_source import FIRST_CHARACTER
from heed.tasks.words import StoredLabels, frequent_characters
from heed.text.readers.conll import TaggedSentence
from heed.text.tag_schemes import OUTSIDE, Scheme, Span, converted, follows, split_tag
from heed.text.tag_schemes import written as tags_of

MAX_MARKS = 200
FIRST_MARK = 2
"""Marks: 0 for none, 1 for any that is not listed."""


class TagLabels(StoredLabels):
    """What the ids of tags, characters and marks stand for."""

    labels: tuple[str, ...]
    """The tags of the model in its own scheme."""
    scheme: Scheme
    """The scheme of the model's tags."""
    written: Scheme
    """The scheme of the files, in which outputs are written."""
    characters: tuple[str, ...] = ()
    """Characters of words, from id 2 on; fewer than these are unknown."""
    marks: tuple[str, ...] = ()
    """Kinds of marks, from id 2 on."""
    num_singletons: NonNegativeInt = 0
    """Words that occur once in training, which are the last ids of the vocabulary."""
    num_columns: NonNegativeInt = 0
    """Columns of the training file."""
    by_mark: bool = False
    """Whether each marked token of a sentence has tags of its own."""

    @cached_property
    def tag_ids(self) -> dict[str, int]:
        """The id of each tag."""
        return {tag: id for id, tag in enumerate(self.labels)}

    @cached_property
    def character_ids(self) -> dict[str, int]:
        """The id of each character."""
        return {character: id for id, character in enumerate(self.characters, start=FIRST_CHARACTER)}

    @cached_property
    def mark_ids(self) -> dict[str, int]:
        """The id of each mark."""
        return {"": 0, **{mark: id for id, mark in enumerate(self.marks, start=FIRST_MARK)}}

    def of_file(self, tags: Sequence[str]) -> list[str]:
        """Tags of a file in the model's scheme."""
        return converted(tags, self.scheme)

    def for_file(self, tags: Sequence[str]) -> list[str]:
        """Tags of the model in the scheme of the files."""
        return converted(tags, self.written) if self.written != self.scheme else list(tags)

    def legal(self) -> Legal:
        """Which tags may begin a sentence, follow each other and end a sentence."""
        return legal_steps(self.labels, self.scheme)


def legal_steps(labels: Sequence[str], scheme: Scheme) -> Legal:
    """Which tags may begin a sentence, follow each other and end a sentence in a scheme."""

    def allowed(pairs: Iterable[tuple[str | None, str | None]]) -> torch.Tensor:
        return torch.tensor([follows(before, tag, scheme) for before, tag in pairs], dtype=torch.bool)

    begin, end = allowed((None, tag) for tag in labels), allowed((tag, None) for tag in labels)
    steps = allowed((before, tag) for before in labels for tag in labels)
    return Legal(begin, steps.reshape(len(labels), len(labels)), end)


@dataclass(frozen=True)
class TagVocabularies(Vocabularies):
    """The sizes of a tagger's vocabularies, with its labels."""

    labels: TagLabels | None = None
    """None for an estimate before the labels are known."""

    @staticmethod
    def of(num_words: int, labels: TagLabels) -> TagVocabularies:
        """The sizes for a vocabulary of this number of pieces."""
        return TagVocabularies(
            num_words, len(labels.labels), num_characters=len(labels.characters) + FIRST_CHARACTER,
            num_marks=len(labels.marks) + 1 if labels.marks else 0, num_singletons=labels.num_singletons, labels=labels,
        )  # fmt: skip


def collect_labels(sentences: Iterable[TaggedSentence], written: Scheme, scheme: Scheme) -> TagLabels:
    """The labels of the training data; O comes first, the other tags in alphabetical order.

    If none of them can be the tag of a sentence of one word, those of spans of one word are added.
    """
    tags: set[str] = set()
    characters: Counter[str] = Counter()
    marks: Counter[str] = Counter()
    for sentence in sentences:
        tags.update(converted(sentence.tags, scheme))
        marks.update(mark for mark in sentence.marks if mark)
        for token in sentence.tokens:
            characters.update(token)
    if not any(follows(None, tag, scheme) and follows(tag, None, scheme) for tag in tags):
        tags.update(tag for _, type in map(split_tag, [*tags]) for tag in tags_of([Span(0, 1, type)], 1, scheme))
    listed = sorted(tags, key=lambda tag: (tag != OUTSIDE, tag))
    kinds = sorted(mark for mark, _ in marks.most_common(MAX_MARKS))
    return TagLabels(
        labels=tuple(listed), scheme=scheme, written=written, characters=frequent_characters(characters),
        marks=tuple(kinds),
    )  # fmt: skip
