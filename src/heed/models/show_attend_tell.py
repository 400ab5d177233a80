"""Image captioning with attention (Xu et al. 2015, "Show, Attend and Tell").

A convolutional encoder gives an annotation vector a_i for each patch of the image. With E y the embedding of a word,
and W, L and f learned:

    e_ti = vᵀ tanh(W_a a_i + W_h h_{t-1}),  α_t = softmax(e_t)                                   (section 3.1.2)
    soft: z_t = β_t Σ_i α_ti a_i,  hard: z_t = β_t a_{s_t}, s_t ~ α_t,  β_t = σ(f_β(h_{t-1}))      (4.1, 4.2, 4.2.1)
    h_t = LSTM([E y_{t-1}; z_t], h_{t-1}),  c_0 = tanh(f_c(mean a)),  h_0 = tanh(f_h(mean a))     (3.1.2)
    p(y_t) ∝ exp(L_o (E y_{t-1} + L_h h_t + L_z z_t))                                             (3.1.2)

Hard attention samples a place in training; with probability ½, a caption uses the expectation Σ_i α_ti a_i instead
(section 4.1). In use, it attends to the most probable place. The encoder is trained from scratch with the rest, whereas
the paper's was trained for object recognition.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from heed.models.model import GenerativeModel, ModelConfig
from heed.nn.attention import AdditiveAttention
from heed.nn.caption_head import AttentionTerms, CaptionHead
from heed.nn.contract import Trace, Vocabularies
from heed.nn.dropout_keys import DropoutKeys, dropout
from heed.nn.embeddings import embedding_weight
from heed.nn.heads import LinearHead
from heed.nn.images import ImageEncoder, ImageSource
from heed.nn.recurrent import LSTMCell
from heed.nn.states import Memory, RowState

_Size = Annotated[int, Field(ge=1)]
Channels = tuple[_Size, _Size, _Size]
_PLACES, _EXPECTED = 2, 3
"""Dropout sites of the random choices of hard attention."""


class ShowAttendTellConfig(ModelConfig):
    """Sizes and choices of a captioning model with attention."""

    kind: Literal["show_attend_tell"] = "show_attend_tell"
    """Kind of model: the key in `MODELS`."""
    attention: Literal["soft", "hard"] = "soft"
    """Attend to the mean of all places, or to one place (trained by REINFORCE)."""
    channels: Channels = (32, 64, 128)
    """Features of the three stages of the image encoder; each halves the resolution."""
    num_blocks: int = Field(default=1, ge=0, le=100)
    """Residual blocks of each stage."""
    d_model: int = Field(default=128, ge=1)
    """Size of the embeddings and of the output layer's input (D)."""
    hidden_size: int = Field(default=256, ge=1)
    """Size of the LSTM's state."""
    attention_size: int = Field(default=128, ge=1)
    """Size of the hidden layer inside the attention."""
    dropout: float = Field(default=0.3, ge=0, lt=1)
    """Dropout of annotations, embeddings and the output layer's input (rounded to 1/256)."""
    doubly_stochastic: float = Field(default=1.0, ge=0)
    """λ of the doubly stochastic term, which asks that every place be attended to."""
    reward: float = Field(default=1.0, ge=0)
    """Hard attention: weight of the REINFORCE term."""
    entropy: float = Field(default=0.002, ge=0)
    """Hard attention: weight of the entropy of the places."""

    def summary(self) -> str:
        return (
            f"a convolutional image encoder with {', '.join(map(str, self.channels))} channels, and an LSTM of "
            f"{self.hidden_size} features with {self.attention} attention"
        )


@dataclass(frozen=True)
class CaptionState(RowState):
    """The decoder's h and c, with the keys and values of the annotations."""

    memory: Memory
    hidden: Float[Tensor, "R N"]
    cell: Float[Tensor, "R N"]
    length: int
    dropout_keys: DropoutKeys | None = None


class ShowAttendTell(GenerativeModel):
    """P(w_t | w_<t, image) by an LSTM that attends to the image before each step."""

    Config = ShowAttendTellConfig
    needs_source = True
    source = "images"
    compares_losses = True
    papers = "captioning with attention (Xu et al. 2015)"

    def __init__(self, config: ShowAttendTellConfig, vocabularies: Vocabularies) -> None:
        super().__init__()
        self.config = config
        size, hidden = config.channels[-1], config.hidden_size
        self.encoder = ImageEncoder(config.channels, config.num_blocks, config.dropout)
        self.embedding = embedding_weight(vocabularies.tgt_size, config.d_model)
        self.initial = nn.Linear(size, 2 * hidden)
        self.attention = AdditiveAttention(hidden, size, config.attention_size)
        self.gate = nn.Linear(hidden, 1)
        self.cell = LSTMCell(config.d_model + size, hidden, forget_bias=1.0)
        self.from_hidden = nn.Linear(hidden, config.d_model)
        self.from_context = nn.Linear(size, config.d_model, bias=False)
        out = embedding_weight(vocabularies.tgt_size, config.d_model)
        self.is_hard = config.attention == "hard"
        terms = AttentionTerms(config.doubly_stochastic, config.reward, config.entropy)
        self.head = CaptionHead(LinearHead(out, vocabularies.pad_id), config.d_model, terms, self.is_hard)

    def start(
        self,
        source: ImageSource | None,
        rows_per_source: int = 1,
        reserve: int | None = None,
        dropout_keys: DropoutKeys | None = None,
    ) -> CaptionState:
        """Encode the images; h_0 and c_0 are computed from the mean annotation."""
        if source is None:
            raise ValueError("a captioning model needs images")
        annotations = self.encoder.read(source, dropout_keys and dropout_keys.fold(1))
        initial = torch.tanh(self.initial(annotations.mean(1))).repeat_interleave(rows_per_source, dim=0)
        hidden, cell = initial.chunk(2, dim=-1)
        memory = Memory((self.attention.project(annotations),), source.mask, rows_per_source)
        row_keys = dropout_keys and dropout_keys.fold(2).repeat(rows_per_source)
        return CaptionState(memory, hidden, cell.to(torch.promote_types(cell.dtype, torch.float32)), 0, row_keys)

    def advance(
        self, ids: Int[Tensor, "B T"], state: CaptionState, trace: Trace | None = None
    ) -> tuple[Float[Tensor, "B T D"], CaptionState]:
        keys = state.dropout_keys
        embedded = nn.functional.embedding(ids, self.embedding) * self.config.d_model**0.5
        embedded = dropout(embedded, self.config.dropout, keys, 0, state.length)
        hidden, cell = state.hidden, state.cell
        steps = []
        for t, vectors in enumerate(embedded.unbind(1)):
            context, attended = self._attend(hidden, state, t, trace)
            hidden, cell = self.cell(self.cell.input(torch.cat((vectors, context), dim=-1)), (hidden, cell))
            steps.append((hidden, context, attended))
        hiddens, contexts, attended = (torch.stack(parts, dim=1) for parts in zip(*steps, strict=True))
        features = embedded + self.from_hidden(hiddens) + self.from_context(contexts)
        features = dropout(features, self.config.dropout, keys, 1, state.length)
        if keys is not None:  # a training pass: the head's loss has terms of attention
            features = torch.cat((features, attended.to(features.dtype)), dim=-1)
        return features, CaptionState(state.memory, hidden, cell, state.length + ids.shape[1], keys)

    def _attend(
        self, hidden: Float[Tensor, "R N"], state: CaptionState, t: int, trace: Trace | None
    ) -> tuple[Float[Tensor, "R C"], Float[Tensor, "R A"]]:
        """z_t, and what the head needs to know about the attention: α_t, and for hard attention two numbers."""
        keys, values = state.memory.layers[0]
        weights = self.attention.weights(hidden[:, None], keys, state.memory.attention_mask())  # [B, W, S]
        by_row = weights.flatten(0, 1)
        if trace is not None:
            trace.record("decoder.cross", by_row[:, None, None])
        chosen, attended = self._place(by_row, state, t) if self.is_hard else (by_row, by_row)
        context = (chosen.view_as(weights) @ values[:, 0]).flatten(0, 1)
        return torch.sigmoid(self.gate(hidden)) * context, attended

    def _place(
        self, weights: Float[Tensor, "R S"], state: CaptionState, t: int
    ) -> tuple[Float[Tensor, "R S"], Float[Tensor, "R A"]]:
        """The attended place as a one-hot vector (or the expectation); α_t, log p(s_t) and the entropy of s_t."""
        if state.dropout_keys is None:
            return _one_hot(weights.argmax(-1), weights), weights
        random = state.dropout_keys.uniform(1, _PLACES, state.length + t)
        place = (weights.double().cumsum(-1) < random).sum(-1).clamp(max=weights.shape[-1] - 1)
        is_expected = state.dropout_keys.uniform(1, _EXPECTED) < 0.5  # of the whole caption
        log_weights = weights.clamp(min=torch.finfo(weights.dtype).tiny).log()
        log_place = log_weights.gather(-1, place[:, None]).masked_fill(is_expected, 0.0)
        entropy = -(weights * log_weights).sum(-1, keepdim=True)
        chosen = torch.where(is_expected, weights, _one_hot(place, weights))
        return chosen, torch.cat((weights, log_place, entropy), dim=-1)


def _one_hot(places: Int[Tensor, " R"], weights: Float[Tensor, "R S"]) -> Float[Tensor, "R S"]:
    return nn.functional.one_hot(places, weights.shape[-1]).to(weights.dtype)
