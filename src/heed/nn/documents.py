"""Documents as a source: sentences of tokens, each sentence a position.

In the token store a document is one row of ids with the end of sentence between its sentences. A batch holds the
sentences of all documents one after another, so that a document of few sentences costs no padding.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence


@dataclass(frozen=True)
class DocumentSource:
    """Rows of sentences; padding is at the end of a row, and at the end of each sentence."""

    ids: Int[Tensor, "N W"]
    """The tokens of each sentence: those of the first row, then those of the second, ..."""
    tokens: Bool[Tensor, "N W"]
    """True = a real token; each sentence has at least one."""
    mask: Bool[Tensor, "S_rows S"]
    """True = a sentence."""

    def __len__(self) -> int:
        return self.mask.shape[0]

    @property
    def computed(self) -> Bool[Tensor, "N W"]:
        """The tokens, by which the work of a batch is measured."""
        return self.tokens

    @property
    def row_of(self) -> Int[Tensor, " N"]:
        """The row of each sentence."""
        return self.mask.nonzero()[:, 0]

    @property
    def number_of(self) -> Int[Tensor, " N"]:
        """The number of each sentence in its row, from 0."""
        return self.mask.nonzero()[:, 1]

    def by_row(self, values: Float[Tensor, "N ..."]) -> Float[Tensor, "S_rows S ..."]:
        """A value of each sentence in its row and place; 0 for padding."""
        laid_out = values.new_zeros(*self.mask.shape, *values.shape[1:])
        laid_out[self.mask] = values
        return laid_out

    def part(self, rows: slice) -> DocumentSource:
        """Some of the rows, without sentences and columns that are all padding."""
        kept = torch.zeros(len(self), dtype=torch.bool, device=self.mask.device)
        kept[rows] = True
        sentences = kept[self.row_of]
        tokens, mask = self.tokens[sentences], self.mask[rows]
        longest, most = int(tokens.sum(1).max()), int(mask.sum(1).max())
        return DocumentSource(self.ids[sentences, :longest], tokens[:, :longest], mask[:, :most])

    def repeat(self, times: int) -> DocumentSource:
        """All rows, repeated `times` times in sequence."""
        return DocumentSource(*(each.repeat(times, 1) for each in (self.ids, self.tokens, self.mask)))

    def to(self, device: torch.device) -> DocumentSource:
        """The same source on another device."""
        return DocumentSource(self.ids.to(device), self.tokens.to(device), self.mask.to(device))

    def key(self, row: int) -> Hashable:
        """The ids of each sentence of a row, without padding."""
        sentences = (self.row_of == row).nonzero()[:, 0].tolist()
        return tuple(tuple(self.ids[at][self.tokens[at]].tolist()) for at in sentences)


def documents_from_ids(rows: Sequence[Iterable[int]], eos_id: int, pad_id: int) -> DocumentSource:
    """Documents of rows of ids, in which `eos_id` separates sentences; one without tokens is a sentence of `eos_id`."""
    documents = [list(sentences_of(row, eos_id)) or [[eos_id]] for row in rows]
    sentences = [torch.tensor(sentence) for document in documents for sentence in document]
    lengths = torch.tensor([len(sentence) for sentence in sentences])
    ids = pad_sequence(sentences, batch_first=True, padding_value=pad_id)
    counts = torch.tensor([len(document) for document in documents])
    return DocumentSource(
        ids, torch.arange(ids.shape[1]) < lengths[:, None], torch.arange(int(counts.max())) < counts[:, None]
    )


def sentences_of(row: Iterable[int], eos_id: int) -> Iterator[list[int]]:
    """The sentences of a row of ids, without empty ones."""
    sentence: list[int] = []
    for token in [*row, eos_id]:
        if token != eos_id:
            sentence.append(int(token))
        elif sentence:
            yield sentence
            sentence = []
