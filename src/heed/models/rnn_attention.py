"""Recurrent encoder-decoder with additive attention (Bahdanau, Cho & Bengio 2015, "RNNsearch").

A bidirectional GRU reads the source; a GRU decoder s_i = GRU(s_{i-1}, [e(y_{i-1}); c_i]) attends with its
previous state, e_ij = vᵀ tanh(W s_{i-1} + U h_j), before each step. Differs from the paper: PyTorch's GRU (reset
after the recurrent product), a tanh layer over [s_i; c_i; e(y_{i-1})] instead of maxout, dropout.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from heed.models.model import GenerativeModel, ModelConfig
from heed.nn.attention import AdditiveAttention
from heed.nn.contract import TokenSource, Trace, Vocabularies, recorder_of
from heed.nn.dropout_keys import DropoutKeys, dropout
from heed.nn.heads import LinearHead
from heed.nn.recurrent import Bidirectional, GRUCell
from heed.nn.states import Memory, RowState


class RecurrentAttentionConfig(ModelConfig):
    """Sizes of a recurrent encoder-decoder with additive attention."""

    kind: Literal["rnn_attention"] = "rnn_attention"
    """Kind of model: the key in `MODELS`."""
    d_model: int = Field(default=256, ge=1)
    """Size of the embeddings and of the output layer's input (D)."""
    hidden_size: int = Field(default=256, ge=1)
    """Size of each GRU's state."""
    attention_size: int = Field(default=256, ge=1)
    """Size of the hidden layer inside the attention."""
    dropout: float = Field(default=0.2, ge=0, lt=1)
    """Dropout of the embeddings and of the output layer's input (rounded to 1/256)."""
    tie: Literal["all", "target", "none"] = "all"
    """Share weights: source and target embedding and output ("all"), target embedding and output, or nothing."""

    def summary(self) -> str:
        return (
            f"a recurrent encoder-decoder with additive attention: GRUs of {self.hidden_size} features, embeddings of "
            f"{self.d_model}"
        )


@dataclass(frozen=True)
class RecurrentState(RowState):
    """The decoder's hidden state, with the keys and values of the source."""

    memory: Memory
    hidden: Float[Tensor, "R N"]
    length: int
    dropout_keys: DropoutKeys | None = None


class RecurrentAttention(GenerativeModel):
    """P(w_t | w_<t, source) by a GRU that attends to the source before each step."""

    Config = RecurrentAttentionConfig
    needs_source = True
    papers = "attention over a recurrent encoder (Bahdanau et al. 2015)"

    def __init__(self, config: RecurrentAttentionConfig, vocabularies: Vocabularies) -> None:
        super().__init__()
        if config.tie == "all":
            vocabularies.require_equal_sizes()
        self.config = config
        d_model, hidden = config.d_model, config.hidden_size

        def weight(size: int) -> nn.Parameter:
            rows = torch.empty(size, d_model)
            return nn.Parameter(rows if rows.is_meta else rows.normal_().mul_(d_model**-0.5))

        self.embedding = weight(vocabularies.tgt_size)
        self.src_embedding = self.embedding if config.tie == "all" else weight(vocabularies.src_size)
        self.encoder = Bidirectional(GRUCell, d_model, hidden)
        self.initial = nn.Linear(hidden, hidden)
        self.attention = AdditiveAttention(hidden, 2 * hidden, config.attention_size)
        self.cell = GRUCell(d_model + 2 * hidden, hidden)
        self.readout = nn.Linear(hidden + 2 * hidden + d_model, d_model)
        out_weight = weight(vocabularies.tgt_size) if config.tie == "none" else self.embedding
        self.head = LinearHead(out_weight, vocabularies.pad_id)

    def _embed(self, weight: Tensor, ids: Tensor, dropout_keys: DropoutKeys | None, offset: int = 0) -> Tensor:
        vectors = nn.functional.embedding(ids, weight) * self.config.d_model**0.5
        return dropout(vectors, self.config.dropout, dropout_keys, 0, offset)

    def start(
        self,
        source: TokenSource | None,
        rows_per_source: int = 1,
        reserve: int | None = None,
        dropout_keys: DropoutKeys | None = None,
    ) -> RecurrentState:
        """Encode the source in both directions; s_0 = tanh(W · the last right-to-left state)."""
        if source is None:
            raise ValueError("a translation model needs a source")
        embedded = self._embed(self.src_embedding, source.ids, dropout_keys and dropout_keys.fold(1))
        encoded, last = self.encoder(embedded, source.mask)
        memory = Memory((self.attention.project(encoded),), source.mask, rows_per_source)
        hidden = torch.tanh(self.initial(last)).repeat_interleave(rows_per_source, dim=0)
        row_keys = dropout_keys and dropout_keys.fold(2).repeat(rows_per_source)
        return RecurrentState(memory, hidden, 0, row_keys)

    def advance(
        self, ids: Int[Tensor, "B T"], state: RecurrentState, trace: Trace | None = None
    ) -> tuple[Float[Tensor, "B T D"], RecurrentState]:
        memory, recorder = state.memory.layers[0], recorder_of(trace, "decoder.cross")
        mask = state.memory.attention_mask()
        embedded = self._embed(self.embedding, ids, state.dropout_keys, state.length)
        hidden, states, contexts = state.hidden, [], []
        for t in range(ids.shape[1]):
            context = self.attention(hidden[:, None], memory, mask, trace=recorder)[:, 0]
            [hidden] = self.cell(self.cell.input(torch.cat((embedded[:, t], context), dim=-1)), (hidden,))
            states.append(hidden)
            contexts.append(context)
        together = torch.cat((torch.stack(states, 1), torch.stack(contexts, 1), embedded), dim=-1)
        features = torch.tanh(self.readout(together))
        features = dropout(features, self.config.dropout, state.dropout_keys, 1, state.length)
        return features, RecurrentState(state.memory, hidden, state.length + ids.shape[1], state.dropout_keys)
