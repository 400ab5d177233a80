"""Neural n-gram model (Bengio et al. 2003): the next word from the vectors of the n - 1 words before it.

x = [C(w_{t-1}); …; C(w_{t-n+1})], h = tanh(d + H x), and softmax(b + U h + W x) (section 2, equation 1), where W is
optional. Words before the beginning are begin of sentence. With n = 3 this is the trigram that Kakade's notes name as
the example of overfitting; dropout here, and weight decay and early stopping in training, reduce it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from heed.models.model import LanguageModel, ModelConfig
from heed.nn.contract import Trace, Vocabularies
from heed.nn.dropout_keys import DropoutKeys, dropout
from heed.nn.embeddings import uniform_weight
from heed.nn.heads import LinearHead
from heed.nn.states import RowState


class FeedForwardConfig(ModelConfig):
    """Sizes of a neural n-gram model."""

    kind: Literal["feed_forward"] = "feed_forward"
    """Kind of model: the key in `MODELS`."""
    order: int = Field(default=3, ge=2, le=100)
    """Number of words of an n-gram (n), including the predicted one."""
    d_model: int = Field(default=100, ge=1)
    """Size of the embeddings."""
    hidden_size: int = Field(default=200, ge=1)
    """Size of the hidden layer."""
    direct: bool = False
    """Also connect the words' vectors directly to the output (W)."""
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """Dropout of the words' vectors and of the hidden layer (rounded to 1/256)."""

    def summary(self) -> str:
        return (
            f"a neural {self.order}-gram model with {self.hidden_size} hidden features and embeddings of {self.d_model}"
        )


@dataclass(frozen=True)
class FeedForwardState(RowState):
    """The vectors of the last n - 2 words, and the number of words read."""

    vectors: Float[Tensor, "B N E"]
    length: int
    dropout_keys: DropoutKeys | None = None


class FeedForward(LanguageModel):
    """P(w_t | w_{t-n+1} … w_{t-1}) by a network of one hidden layer."""

    Config = FeedForwardConfig
    reads = "stream"
    papers = "the neural n-gram model (Bengio et al. 2003)"

    def __init__(self, config: FeedForwardConfig, vocabularies: Vocabularies) -> None:
        super().__init__()
        self.config = config
        self.bos_id = vocabularies.bos_id
        context = (config.order - 1) * config.d_model
        self.embedding = uniform_weight(vocabularies.tgt_size, config.d_model, 0.1)
        self.hidden = nn.Linear(context, config.hidden_size)
        size = config.hidden_size + context * config.direct
        self.head = LinearHead(uniform_weight(vocabularies.tgt_size, size, size**-0.5), vocabularies.pad_id)

    def initial_state(self, num_rows: int, reserve: int | None, dropout_keys: DropoutKeys | None) -> FeedForwardState:
        """Rows that have read nothing but begin of sentence."""
        beginning = self.embedding[self.bos_id].expand(num_rows, self.config.order - 2, -1)
        return FeedForwardState(beginning, 0, dropout_keys)

    def advance(
        self, ids: Int[Tensor, "B T"], state: FeedForwardState, trace: Trace | None = None
    ) -> tuple[Float[Tensor, "B T D"], FeedForwardState]:
        """Hidden layer for the next word after each of the given ones; with `direct`, followed by x."""
        rate, dropout_keys, offset = self.config.dropout, state.dropout_keys, state.length
        new = dropout(nn.functional.embedding(ids, self.embedding), rate, dropout_keys, 0, offset)
        vectors = torch.cat((state.vectors, new), dim=1)
        length = ids.shape[1]
        newest_first = [vectors[:, back : back + length] for back in range(self.config.order - 2, -1, -1)]
        context = torch.cat(newest_first, dim=-1)  # [B, T, (n - 1) E]
        hidden = dropout(torch.tanh(self.hidden(context)), rate, dropout_keys, 1, offset)
        features = torch.cat((hidden, context), dim=-1) if self.config.direct else hidden
        return features, FeedForwardState(vectors[:, length:], offset + length, dropout_keys)
