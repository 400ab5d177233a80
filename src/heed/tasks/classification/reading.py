"""Inputs of the neural part of a classifier: ids of texts, their sources, and the outputs for them.

Most readers read a text as one row of tokens. Those of documents read its sentences, which the end of a sentence
separates in the row of ids, and of which none has more than `LONGEST_SENTENCE` tokens: a longer one continues as the
next.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from heed.data.batch import Ids, source_from_ids
from heed.decoding.scoring import MAX_READ_ROWS, in_length_order
from heed.models import MODELS
from heed.nn.contract import Source, Trace
from heed.nn.documents import documents_from_ids
from heed.nn.dropout_keys import DropoutKeys
from heed.text.sentences import split_paragraph
from heed.text.tokenizers import Tokenizer
from heed.text.vocabulary import Vocabulary

LONGEST_SENTENCE = 64
"""Tokens of a sentence of a document."""
_PROSE = 25
"""Tokens of a usual sentence."""


@dataclass(frozen=True)
class Encoding:
    """How texts, or pairs of them, become ids and sources."""

    max_tokens: int
    """Tokens of a text; the rest is cut off."""
    as_documents: bool = False
    """Whether the model reads sentences of words."""
    language: str = ""
    """Code of the texts' language, for splitting them into sentences; empty: unknown."""

    @staticmethod
    def of(recipe: Any) -> Encoding:
        """The reading of a recipe's model."""
        as_documents = MODELS[recipe.model.kind].source == "documents"
        return Encoding(recipe.data.max_tokens, as_documents, recipe.data.src_lang)

    def encode(self, texts: Sequence[tuple[str, ...]], tokenizer: Tokenizer) -> list[list[int]]:
        """The ids of each row, with eos between its texts, and between the sentences of documents.

        Each text of a pair is cut, so that all have at most `max_tokens`.
        """
        columns = [self._column(column, tokenizer) for column in zip(*texts, strict=True)]
        each = max(1, (self.max_tokens - len(columns) + 1) // len(columns))
        rows = []
        for parts in zip(*columns, strict=True):
            row: list[int] = []
            for number, part in enumerate(parts):
                row += [*([Vocabulary.eos_id] if number else []), *part[:each]]
            rows.append(row)
        return rows

    def source(self, rows: Sequence[Ids]) -> Source:
        """A source of encoded rows."""
        if self.as_documents:
            return documents_from_ids(rows, Vocabulary.eos_id, Vocabulary.pad_id)
        return source_from_ids(rows, Vocabulary.eos_id, Vocabulary.pad_id)

    def trial(self, num_rows: int, length: int, num_tokens: int) -> list[list[int]]:
        """Random rows for measuring the speed; sentences of documents have about as many tokens as those of prose."""
        ids = torch.randint(Vocabulary.unk_id + 1, num_tokens, (num_rows, length))
        if self.as_documents:
            ids[:, _PROSE::_PROSE] = Vocabulary.eos_id
        rows: list[list[int]] = ids.tolist()
        return rows

    def _column(self, texts: Sequence[str], tokenizer: Tokenizer) -> list[list[int]]:
        if not self.as_documents:
            return tokenizer.encode(list(texts))
        sentences = [[each.text for each in split_paragraph(text, self.language) if each.is_sentence] for text in texts]
        ids = iter(tokenizer.encode([sentence for document in sentences for sentence in document]))
        return [_document([next(ids) for _ in document]) for document in sentences]


def _document(sentences: Sequence[list[int]]) -> list[int]:
    """The ids of sentences with eos between them, and inside those that are too long."""
    ids: list[int] = []
    for sentence in sentences:
        for begin in range(0, len(sentence), LONGEST_SENTENCE):
            ids += [*([Vocabulary.eos_id] if ids else []), *sentence[begin : begin + LONGEST_SENTENCE]]
    return ids


@torch.no_grad()
def neural_outputs(
    model: Any, encoding: Encoding, ids: Sequence[Sequence[int]], device: torch.device
) -> Float[Tensor, "N K"]:
    """An output for each label of each text, in batches by length."""
    lengths = [len(row) + 1 for row in ids]

    def read(rows: Sequence[int]) -> Iterable[Tensor]:
        return outputs_of(model, encoding.source([ids[row] for row in rows]).to(device)).float().cpu()

    return torch.stack(in_length_order(lengths, lengths, read, MAX_READ_ROWS))


def outputs_of(
    model: Any, source: Any, dropout_keys: DropoutKeys | None = None, trace: Trace | None = None
) -> Float[Tensor, "B K"]:
    """The outputs of a reader with a pooling head; the first position is that of [CLS] where the reader has one."""
    mask = source.mask
    if model.head.pooling == "cls":
        features, mask = model.read_begun(source, dropout_keys, trace)[:, :1], mask[:, :1]
    else:
        features = model.read(source, dropout_keys, trace)
    outputs: Tensor = model.head(features, mask, dropout_keys, trace)
    return outputs
