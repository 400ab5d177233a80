"""Sentence pairs as numbers, in blocks of pairs with equal lengths.

Words are numbered from 2: 0 is the empty word (NULL), from which target words without a source word come, and 1 is any
word that the training text does not have. A block is a rectangle, so every model computes on whole arrays of pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import overload

import numpy as np

from heed.statistical.predictor import Bools, Ints, starts

NULL, UNKNOWN, FIRST = 0, 1, 2
"""The empty word, unknown words, and the first number of a word."""
MAX_CELLS = 1 << 17
"""Cells (target word, source word) of a block; as many fit into a processor's cache."""
MAX_WORDS = 1000
"""Words on a side of a pair. The cells of a longer one, which is rarely a sentence, would fill the memory."""

Pair = tuple[Sequence[int], Sequence[int]]
"""Source and target words of a pair of sentences, by number."""
Links = frozenset[tuple[int, int]]
"""(source, target) positions of linked words, counted from 0."""


class Words:
    """The different words of a text, numbered in order of first appearance."""

    def __init__(self, words: Iterable[str] = (), lowercase: bool = False) -> None:
        """`lowercase`: words that differ in case only are one."""
        fold = str.lower if lowercase else str
        distinct = dict.fromkeys(map(fold, dict.fromkeys(words)))
        self.numbers: dict[str, int] = {word: FIRST + place for place, word in enumerate(distinct)}
        self.written: dict[str, int] = _Written(self.numbers, fold)
        """The number of each word as it is written in a text; `UNKNOWN` for others."""

    def __len__(self) -> int:
        """The number of words, with the empty and the unknown one."""
        return FIRST + len(self.numbers)

    def __iter__(self) -> Iterator[str]:
        return iter(self.numbers)

    @classmethod
    def of(cls, sentences: Iterable[Sequence[str]], lowercase: bool = False) -> Words:
        """The words of tokenised sentences."""
        return cls(chain.from_iterable(sentences), lowercase)


class _Written(dict[str, int]):
    """Numbers of words as they are written, which are found once."""

    def __init__(self, numbers: Mapping[str, int], fold: Callable[[str], str]) -> None:
        super().__init__()
        self.numbers, self.fold = numbers, fold

    def __missing__(self, word: str) -> int:
        number = self[word] = self.numbers.get(self.fold(word), UNKNOWN)
        return number


class Sentences:
    """Sentences of numbered words, one after another."""

    def __init__(self, ids: Ints, lengths: Ints) -> None:
        self.ids = ids
        self.lengths = lengths
        self.starts = starts(lengths)

    @classmethod
    def of(cls, sentences: Sequence[Sequence[str]], words: Words) -> Sentences:
        """Tokenised sentences; words that `words` does not have are unknown."""
        lengths = np.fromiter(map(len, sentences), np.int64, len(sentences))
        ids = map(words.written.__getitem__, chain.from_iterable(sentences))
        return cls(np.fromiter(ids, np.int64, int(lengths.sum())), lengths)

    def __len__(self) -> int:
        return len(self.lengths)

    def row(self, index: int) -> list[int]:
        """The words of one sentence."""
        row: list[int] = self.ids[self.starts[index] : self.starts[index + 1]].tolist()
        return row

    def rectangle(self, rows: Ints, length: int) -> Ints:
        """The words of sentences of equal length, [B, length]."""
        return np.asarray(self.ids[self.starts[rows][:, None] + np.arange(length)])


@dataclass(frozen=True, eq=False)
class Block:
    """B pairs, all with I source and J target words."""

    rows: Ints
    """[B]: their numbers in the corpus."""
    src: Ints
    """[B, I]."""
    tgt: Ints
    """[B, J]."""

    @property
    def shape(self) -> tuple[int, int]:
        """I and J."""
        return self.src.shape[1], self.tgt.shape[1]

    @property
    def num_cells(self) -> int:
        """Pairs of a target word and a source word or the empty word."""
        return int(self.tgt.size * (self.src.shape[1] + 1))


class SentencePairs(Sequence[Pair]):
    """A corpus of sentence pairs. Pairs with an empty side or one of more than `MAX_WORDS` are left out.

    They add nothing to the tables, and have no links and no likelihood.
    """

    def __init__(
        self, src: Sentences, tgt: Sentences, src_size: int, tgt_size: int, words: tuple[Words, Words] | None = None
    ) -> None:
        if len(src) != len(tgt):
            raise ValueError(f"{len(src)} source sentences, but {len(tgt)} target sentences")
        self.src, self.tgt = src, tgt
        self.src_size, self.tgt_size = src_size, tgt_size
        self.words = words
        """The words of both sides; None if their spelling is not known or means nothing."""

    @classmethod
    def of(
        cls, sources: Sequence[Sequence[str]], targets: Sequence[Sequence[str]], src_words: Words, tgt_words: Words,
        spelled: bool = True,
    ) -> SentencePairs:  # fmt: skip
        """Pairs of tokenised sentences. `spelled`: whether the spelling of words means anything.

        Raises ValueError for different numbers of sentences.
        """
        src, tgt = Sentences.of(sources, src_words), Sentences.of(targets, tgt_words)
        return cls(src, tgt, len(src_words), len(tgt_words), (src_words, tgt_words) if spelled else None)

    @classmethod
    def of_ids(cls, pairs: Iterable[Pair]) -> SentencePairs:
        """Pairs of numbered words, which begin with `FIRST`."""
        listed = [(list(source), list(target)) for source, target in pairs]
        sides = [
            Sentences(
                np.fromiter(chain.from_iterable(side), np.int64),
                np.array([len(sentence) for sentence in side], dtype=np.int64),
            )
            for side in zip(*listed, strict=True)
        ]
        sizes = [max(FIRST, int(side.ids.max(initial=0)) + 1) for side in sides]
        return cls(sides[0], sides[1], sizes[0], sizes[1])

    def __len__(self) -> int:
        return len(self.src)

    @overload
    def __getitem__(self, index: int) -> Pair: ...
    @overload
    def __getitem__(self, index: slice) -> list[Pair]: ...
    def __getitem__(self, index: int | slice) -> Pair | list[Pair]:
        if isinstance(index, slice):
            return [self[row] for row in range(len(self))[index]]
        row = range(len(self))[index]
        return self.src.row(row), self.tgt.row(row)

    @cached_property
    def turned(self) -> SentencePairs:
        """The same pairs, in the same blocks, with source and target exchanged."""
        words = None if self.words is None else (self.words[1], self.words[0])
        turned = SentencePairs(self.tgt, self.src, self.tgt_size, self.src_size, words)
        turned.spans = self.spans
        return turned

    @property
    def num_targets(self) -> int:
        """Target words that a model explains."""
        return int(self.tgt.lengths[self._used].sum())

    @property
    def _used(self) -> Bools:
        """Whether each pair is used."""
        lengths = np.stack([self.src.lengths, self.tgt.lengths])
        return np.asarray(((lengths > 0) & (lengths <= MAX_WORDS)).all(axis=0))

    @cached_property
    def spans(self) -> list[Ints]:
        """The rows of each block: pairs of equal lengths, as many as `MAX_CELLS` allows."""
        num_src, num_tgt = self.src.lengths, self.tgt.lengths
        order = np.lexsort((num_src, num_tgt))
        order = order[self._used[order]]
        changes = (np.diff(num_src[order]) != 0) | (np.diff(num_tgt[order]) != 0)
        spans = []
        for same in np.split(order, np.flatnonzero(changes) + 1) if len(order) else ():
            size = max(1, MAX_CELLS // int((num_src[same[0]] + 1) * num_tgt[same[0]]))
            spans += [same[begin : begin + size] for begin in range(0, len(same), size)]
        return spans

    @cached_property
    def shapes(self) -> list[tuple[int, int]]:
        """The different lengths (I, J) of pairs."""
        firsts = [int(rows[0]) for rows in self.spans]
        return list(dict.fromkeys((int(self.src.lengths[row]), int(self.tgt.lengths[row])) for row in firsts))

    def blocks(self) -> Iterator[Block]:
        """All pairs that are used."""
        for rows in self.spans:
            yield Block(
                rows,
                self.src.rectangle(rows, int(self.src.lengths[rows[0]])),
                self.tgt.rectangle(rows, int(self.tgt.lengths[rows[0]])),
            )
