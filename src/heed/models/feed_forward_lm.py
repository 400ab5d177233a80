"""The neural n-gram model: the next word from the vectors of the n - 1 words before it (Bengio et al. 2003).

x = [C(w_{t-1}); …; C(w_{t-n+1})], h = tanh(d + H x), and softmax(b + U h + W x) (section 2, equation 1), where W is
optional. In the place of words before the beginning stands begin of sentence. With n = 3 this is the trigram that
Kakade's notes name as the example of overfitting: dropout here, and weight decay and early stopping in training, are
what can be done about it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from heed.models.model import GenerativeModel, ModelConfig
from heed.nn.contract import Source, Trace, Vocabularies
from heed.nn.dropout_keys import DropoutKeys, dropout
from heed.nn.heads import LinearHead


class FeedForwardConfig(ModelConfig):
    """Sizes of a neural n-gram model."""

    kind: Literal["feed_forward"] = "feed_forward"
    """Which model this is."""
    order: int = Field(default=3, ge=2, le=100)
    """Words of an n-gram (n), the predicted one among them."""
    d_model: int = Field(default=100, ge=1)
    """Size of the embeddings."""
    hidden_size: int = Field(default=200, ge=1)
    """Size of the hidden layer."""
    direct: bool = False
    """Also connect the words' vectors with the output directly (W)."""
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """Dropout of the words' vectors and of the hidden layer (rounded to 1/256)."""

    def summary(self) -> str:
        """The model in a phrase, for reports."""
        return (
            f"a neural {self.order}-gram model with {self.hidden_size} hidden features and embeddings of {self.d_model}"
        )


@dataclass(frozen=True)
class FeedForwardState:
    """The vectors of the last n - 2 words, and how many words were read."""

    vectors: Float[Tensor, "B N E"]
    length: int
    dropout_keys: DropoutKeys | None = None

    def select(self, rows: Int[Tensor, " R"]) -> FeedForwardState:
        """The given rows in the given order."""
        return FeedForwardState(self.vectors[rows], self.length, self.dropout_keys and self.dropout_keys.select(rows))

    def join(self, other: FeedForwardState) -> FeedForwardState:
        """These rows, then those of `other`."""
        dropout_keys = self.dropout_keys and other.dropout_keys and self.dropout_keys.join(other.dropout_keys)
        return FeedForwardState(torch.cat((self.vectors, other.vectors)), max(self.length, other.length), dropout_keys)

    def detach(self) -> FeedForwardState:
        """The same values, cut off from the graph."""
        return replace(self, vectors=self.vectors.detach())


class FeedForward(GenerativeModel):
    """P(w_t | w_{t-n+1} … w_{t-1}) by a network of one hidden layer."""

    Config = FeedForwardConfig
    reads = "stream"
    papers = "the neural n-gram model (Bengio et al. 2003)"

    def __init__(self, config: FeedForwardConfig, vocabularies: Vocabularies) -> None:
        super().__init__()
        self.config = config
        self.bos_id = vocabularies.bos_id
        context = (config.order - 1) * config.d_model
        self.embedding = nn.Parameter(torch.empty(vocabularies.tgt_size, config.d_model).uniform_(-0.1, 0.1))
        self.hidden = nn.Linear(context, config.hidden_size)
        size = config.hidden_size + context * config.direct
        weight = nn.Parameter(torch.empty(vocabularies.tgt_size, size).uniform_(-(size**-0.5), size**-0.5))
        self.head = LinearHead(weight, vocabularies.pad_id)

    def start(
        self,
        source: Source | None,
        rows_per_source: int = 1,
        reserve: int | None = None,
        dropout_keys: DropoutKeys | None = None,
    ) -> FeedForwardState:
        """Rows that have read nothing but the beginning; a source tells nothing to this model."""
        if source is not None:
            dropout_keys = dropout_keys and dropout_keys.repeat(rows_per_source)
            rows_per_source *= len(source)
        beginning = self.embedding[self.bos_id].expand(rows_per_source, self.config.order - 2, -1)
        return FeedForwardState(beginning, 0, dropout_keys)

    def advance(
        self, ids: Int[Tensor, "B T"], state: FeedForwardState, trace: Trace | None = None
    ) -> tuple[Float[Tensor, "B T D"], FeedForwardState]:
        """The hidden layer's values for the next word after each of the given ones, with `direct` also x."""
        rate, dropout_keys, offset = self.config.dropout, state.dropout_keys, state.length
        new = dropout(nn.functional.embedding(ids, self.embedding), rate, dropout_keys, 0, offset)
        vectors = torch.cat((state.vectors, new), dim=1)
        length = ids.shape[1]
        newest_first = [vectors[:, back : back + length] for back in range(self.config.order - 2, -1, -1)]
        context = torch.cat(newest_first, dim=-1)  # [B, T, (n - 1) E]
        hidden = dropout(torch.tanh(self.hidden(context)), rate, dropout_keys, 1, offset)
        features = torch.cat((hidden, context), dim=-1) if self.config.direct else hidden
        return features, FeedForwardState(vectors[:, length:], offset + length, dropout_keys)
