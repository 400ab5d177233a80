"""Hierarchical attention network (Yang et al. 2016, "Hierarchical attention networks for document classification").

A bidirectional GRU reads the words of each sentence. The sentence is the mean of its states, weighted by attention to
each word; a second bidirectional GRU reads the sentences (section 2.2, equations 5 to 7). Its states are the features
of the sentences, which the pooling head with attention turns into the document (equations 8 to 10). The cell is
PyTorch's GRU: as equations 1 to 4, with 1 - z for z and a further bias inside the reset.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from pydantic import Field
from torch import Tensor, nn

from heed.models.model import ModelConfig, ReaderModel
from heed.nn.contract import Trace, Vocabularies
from heed.nn.documents import DocumentSource
from heed.nn.dropout_keys import DropoutKeys, dropout
from heed.nn.pooling import attention_weights
from heed.nn.recurrent import Bidirectional, GRUCell

WORDS = "words"
"""Name of the traced attention over the words of each sentence [B, 1, S, W]."""
_GROUPS = 4
"""Groups of sentences of about the same length, which are read one after another with little padding."""


class HierarchicalAttentionConfig(ModelConfig):
    """Sizes of the two recurrent readers; the defaults are the paper's (section 3.3)."""

    kind: Literal["hierarchical_attention"] = "hierarchical_attention"
    """Kind of model: the key in `MODELS`."""
    d_model: int = Field(default=200, ge=1)
    """Size of the vectors of words."""
    hidden_size: int = Field(default=50, ge=1)
    """Size of the state in each direction, for words and for sentences."""
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """Dropout of the words' and the sentences' vectors."""

    def summary(self) -> str:
        return f"a hierarchical attention network with {2 * self.hidden_size} features of words and of sentences"


class HierarchicalAttention(ReaderModel):
    """States of a document's sentences, each of which is read word by word."""

    Config = HierarchicalAttentionConfig
    source = "documents"
    papers: ClassVar[str] = "the hierarchical attention network (Yang et al. 2016)"

    def __init__(self, config: HierarchicalAttentionConfig, vocabularies: Vocabularies) -> None:
        super().__init__()
        self.config = config
        self.num_features = size = 2 * config.hidden_size
        self.embedding = nn.Parameter(0.1 * torch.randn(vocabularies.src_size, config.d_model))
        self.words = Bidirectional(GRUCell, config.d_model, config.hidden_size)
        self.hidden = nn.Linear(size, size)
        self.query = nn.Parameter(torch.randn(size) / size**0.5)
        self.sentences = Bidirectional(GRUCell, size, config.hidden_size)

    def read(
        self, source: DocumentSource, dropout_keys: DropoutKeys | None = None, trace: Trace | None = None
    ) -> Float[Tensor, "B S D"]:
        """The states of both directions at each sentence."""
        keys = dropout_keys and dropout_keys.select(source.row_of).numbered(source.number_of)
        vectors, weights = self._sentences(source.ids, source.tokens, keys)
        if trace is not None:
            trace.record(WORDS, source.by_row(weights)[:, None])
        x = dropout(source.by_row(vectors), self.config.dropout, dropout_keys, 1)
        states: Tensor = self.sentences(x, source.mask)[0]
        return states

    def _sentences(
        self, ids: Int[Tensor, "N W"], tokens: Bool[Tensor, "N W"], keys: DropoutKeys | None
    ) -> tuple[Float[Tensor, "N D"], Float[Tensor, "N W"]]:
        """The vector of each sentence, and the attention to its words."""
        lengths = tokens.sum(1)
        order = lengths.argsort(stable=True)
        vectors, weights = [], []
        for rows in order.tensor_split(min(_GROUPS, len(order))):
            longest = int(lengths[rows].max())
            inside = tokens[rows, :longest]
            x = F.embedding(ids[rows, :longest], self.embedding)
            states, _ = self.words(dropout(x, self.config.dropout, keys and keys.select(rows), 0), inside)
            share = attention_weights(self.hidden, self.query, states, inside)
            vectors.append((share[..., None] * states.masked_fill(~inside[..., None], 0)).sum(1))
            weights.append(F.pad(share, (0, ids.shape[1] - longest)))
        back = order.argsort()
        return torch.cat(vectors)[back], torch.cat(weights)[back]
