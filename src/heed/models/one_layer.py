"""Transformer with one hidden layer, exactly as in section 4 of Kakade's notes on attention.

    x ← xE + P;  V = xW_V, Q = xW_Q, K = xW_K;  h = softmax(QKᵀ / √d_hidden) V;
    O = ReLU(ReLU(hW_1) W_2);  Ô = OEᵀ;  P(X_{T+1} = j) = softmax(Ô_T)_j

One head, no bias, no residual connection, no normalisation; P is sinusoidal; E is both embedding and output. The notes
give x as d_embedding x T, but with E of m x d_embedding it is T x d_embedding.

The notes predict from the last position of a window of T tokens, or, with an upper triangle masked, at every position
of it. With one layer both give the same distribution at a window's last token, since its query sees the whole window in
both. So `predicts` matters for texts longer than `max_len` = T: with "last", a window that ends at each token moves
along the text; with "every", windows are those of `models/limited_context.py`, each evaluated once for all its tokens.

Dropout, which the notes call critical, is applied to the embedded tokens, to h and to O; 0 is the notes' formula.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from pydantic import Field, model_validator
from torch import Tensor, nn

from heed.models.limited_context import ContextState, LimitedContext
from heed.models.model import ModelConfig
from heed.nn.contract import Trace, Vocabularies, recorder_of
from heed.nn.dropout_keys import DropoutKeys, dropout
from heed.nn.embeddings import embedding_weight, interleaved
from heed.nn.heads import LinearHead
from heed.nn.scaled_dot_product import attention_weights, causal_context
from heed.nn.states import AppendKV, KeyValueCache, RowPositions

WINDOW_ELEMENTS = 1 << 23
"""Elements of the embedded windows that are computed at once."""


class OneLayerConfig(ModelConfig):
    """Sizes of the Transformer with one hidden layer."""

    kind: Literal["one_layer"] = "one_layer"
    """Kind of model: the key in `MODELS`."""
    d_model: int = Field(default=256, ge=2)
    """Size of the embeddings: d_embedding in the notes."""
    hidden_size: int = Field(default=256, ge=1)
    """Size of queries, keys and values: d_hidden."""
    d_ff: int = Field(default=1024, ge=1)
    """Size of the layer between the last two matrices: d_1."""
    max_len: int = Field(default=128, ge=2)
    """Tokens in a window: T."""
    predicts: Literal["every", "last"] = "every"
    """Predict at every position of a window (masked), or only at its last, which evaluates a window for each token."""
    dropout: float = Field(default=0.1, ge=0, lt=1)
    """Dropout of the embedded tokens, of h and of O (rounded to 1/256)."""

    @model_validator(mode="after")
    def _check(self) -> OneLayerConfig:
        if self.d_model % 2:
            raise ValueError(f"d_model must be even for sinusoidal positions, got {self.d_model}")
        return self

    def summary(self) -> str:
        return (
            f"a Transformer with one hidden layer and one head: embeddings of {self.d_model} features, queries, keys "
            f"and values of {self.hidden_size}, {self.d_ff:,} before the output, {self.max_len} positions"
        )


class OneLayer(LimitedContext):
    """P(w_t | w_<t) by one self-attention and two matrices."""

    Config = OneLayerConfig
    papers = "self-attention (Vaswani et al. 2017)"

    positions: Tensor

    def __init__(self, config: OneLayerConfig, vocabularies: Vocabularies) -> None:
        super().__init__(config.max_len)
        self.config = config
        self.embedding = embedding_weight(vocabularies.tgt_size, config.d_model)
        self.register_buffer("positions", interleaved(config.max_len, config.d_model), persistent=False)
        self.query = nn.Linear(config.d_model, config.hidden_size, bias=False)
        self.key = nn.Linear(config.d_model, config.hidden_size, bias=False)
        self.value = nn.Linear(config.d_model, config.hidden_size, bias=False)
        self.expand = nn.Linear(config.hidden_size, config.d_ff, bias=False)
        self.contract = nn.Linear(config.d_ff, config.d_model, bias=False)
        self.head = LinearHead(self.embedding, vocabularies.pad_id, bias=False)

    def advance(
        self, ids: Int[Tensor, "B T"], state: ContextState, trace: Trace | None = None
    ) -> tuple[Float[Tensor, "B T D"], ContextState]:
        if self.config.predicts == "every":
            return super().advance(ids, state, trace)
        past, first = state.columns.length, state.columns.first
        seen = torch.cat((state.ids, ids), dim=1)
        dropout_keys = state.dropout_keys and state.dropout_keys.shifted(state.num_left)
        embedded = self._embedded(seen, dropout_keys, 0)
        ends = torch.arange(past, seen.shape[1], device=ids.device).expand(len(ids), -1)  # [B, T]
        begins = (ends - self.max_len + 1).clamp(min=0 if first is None else first[:, None])
        at_once = max(1, WINDOW_ELEMENTS // (max(1, len(ids)) * self.max_len * self.config.d_model))
        spans = zip(torch.split(begins, at_once, dim=1), torch.split(ends, at_once, dim=1), strict=True)
        h = torch.cat([self._of_windows(embedded, *span) for span in spans], dim=1)
        after = replace(state, ids=seen, columns=RowPositions(seen.shape[1], first))
        features = self._output(h, dropout_keys, past)
        return features, after.without_first(max(0, seen.shape[1] - self.max_len))

    def _of_windows(
        self, embedded: Float[Tensor, "B S D"], begins: Int[Tensor, "B T"], ends: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T N"]:
        """h of the last token of each window `begins … ends` of the embedded tokens."""
        rows = torch.arange(len(embedded), device=embedded.device)[:, None]
        columns = begins[..., None] + torch.arange(self.max_len, device=embedded.device)  # [B, T, max_len]
        real = columns <= ends[..., None]
        x = embedded[rows[..., None], columns.minimum(ends[..., None])] + self.positions
        last = embedded[rows, ends] + self.positions[ends - begins]
        weights = attention_weights(self.query(last)[..., None, :], self.key(x), real[..., None, :])
        h: Tensor = (weights @ self.value(x))[..., 0, :]
        return h

    def empty_caches(self, num_rows: int, capacity: int, like: Tensor) -> Iterable[KeyValueCache]:
        """One cache if every position predicts; moving windows are computed without a cache."""
        if self.config.predicts == "every":
            yield KeyValueCache.empty(num_rows, 1, (self.config.hidden_size, self.config.hidden_size), capacity, like)

    def compute(
        self, ids: Int[Tensor, "B T"], columns: RowPositions, caches: Sequence[AppendKV],
        dropout_keys: DropoutKeys | None, trace: Trace | None,
    ) -> Float[Tensor, "B T D"]:  # fmt: skip
        """O at every position, from itself and the positions before it."""
        num_tokens, recorder = ids.shape[1], recorder_of(trace, "decoder.self")
        x = self._embedded(ids, dropout_keys, columns.length)
        x = x + self.positions[columns.positions(num_tokens, ids.device)]
        keys, values = caches[0](self.key(x)[:, None], self.value(x)[:, None])
        mask = columns.causal_mask(num_tokens, ids.device)
        h = causal_context(self.query(x)[:, None], keys, values, columns, mask, None, recorder)
        return self._output(h[:, 0], dropout_keys, columns.length)

    def _embedded(
        self, ids: Int[Tensor, "B T"], dropout_keys: DropoutKeys | None, offset: int
    ) -> Float[Tensor, "B T D"]:
        return dropout(F.embedding(ids, self.embedding), self.config.dropout, dropout_keys, 0, offset)

    def _output(
        self, h: Float[Tensor, "B T N"], dropout_keys: DropoutKeys | None, offset: int
    ) -> Float[Tensor, "B T D"]:
        """O = ReLU(ReLU(hW_1) W_2)."""
        h = dropout(h, self.config.dropout, dropout_keys, 1, offset)
        output = F.relu(self.contract(F.relu(self.expand(h))))
        return dropout(output, self.config.dropout, dropout_keys, 2, offset)
