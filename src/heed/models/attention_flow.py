"""Reader of two texts by attention between them: a question and its context (Seo et al. 2017; Chen et al. 2017).

The source is a text, an end of sentence, and another text. Each position attends to the other text, twice: to its input
vectors, as the aligned question embedding of Chen et al. (section 3.2),

    α_ij = softmax_j(ReLU(V x_i) · ReLU(V x_j)),    y_i = Σ_j α_ij x_j,

and after a bidirectional LSTM over [x; y], to its states h by the similarity of Seo et al. (equation 1),

    β_ij = softmax_j(u · h_i + v · h_j + w · (h_i ⊙ h_j)),    c_i = Σ_j β_ij h_j.

Further bidirectional layers read ReLU(W [h; c; h ⊙ c; q]), where q is the mean of the first text's states, weighted by
attention (Chen et al., section 3.2: question encoding). The question is read in the same way.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from heed.models.bilstm import BiLstm, BiLstmConfig
from heed.models.model import ModelConfig
from heed.nn.contract import Trace, Vocabularies, recorder_of
from heed.nn.dropout_keys import DropoutKeys
from heed.nn.recurrent import Bidirectional
from heed.nn.two_texts import Sides, attend

ALIGNED_SITE, FLOW_SITE = 20, 21
"""Dropout sites apart from those of the layers."""


class AttentionFlowConfig(BiLstmConfig):
    """Sizes of a reader of two texts."""

    kind: Literal["attention_flow"] = "attention_flow"  # type: ignore[assignment]
    """Kind of model: the key in `MODELS`."""
    num_layers: int = Field(default=1, ge=1)
    """Layers after the attention, each in both directions; there is one before it."""

    def summary(self) -> str:
        return f"attention between two texts, with {super().summary()}"


class AttentionFlow(BiLstm):
    """Features of each position from both texts."""

    Config: ClassVar[type[ModelConfig]] = AttentionFlowConfig
    papers = "bidirectional attention flow (Seo et al. 2017), aligned question embedding (Chen et al. 2017)"

    def __init__(self, config: Any, vocabularies: Vocabularies) -> None:
        super().__init__(config, vocabularies)
        self.eos_id = vocabularies.eos_id

    def _add_layers(self, num_inputs: int) -> None:
        config, size = self.config, self.num_features
        self.alignment = nn.Linear(num_inputs, config.hidden_size)
        self.first = Bidirectional(self.cell, 2 * num_inputs, config.hidden_size)
        self.similarity = nn.ParameterDict({"weight": nn.Linear(size, 3, bias=False).weight})  # u, v and w: no layer
        self.summary = nn.Linear(size, 1)
        self.flow = nn.Linear(4 * size, size)
        self.layers = nn.ModuleList(
            Bidirectional(self.cell, size, config.hidden_size) for _ in range(config.num_layers)
        )

    def read(
        self, source: Any, dropout_keys: DropoutKeys | None = None, trace: Trace | None = None
    ) -> Float[Tensor, "B S D"]:
        """The states of both directions at each position of both texts."""
        sides = Sides.of(source.ids, source.mask, self.eos_id)
        x = self._drop(self._embed(source, dropout_keys), dropout_keys, 0)
        keys = torch.relu(self.alignment(x))
        aligned = sides.exchange(keys, x, lambda a, b: a @ b.transpose(1, 2), recorder_of(trace, "alignment.self"))
        h, _ = self.first(torch.cat((x, aligned), -1), source.mask)
        h = self._drop(h, dropout_keys, ALIGNED_SITE)
        c = sides.exchange(h, h, self._similarities, recorder_of(trace, "flow.self"))
        asked = attend(self.summary(h).transpose(1, 2), sides.first[:, None]) @ h
        x = torch.relu(self.flow(torch.cat((h, c, h * c, asked.expand_as(h)), -1)))
        x = self._drop(x, dropout_keys, FLOW_SITE)
        for site, layer in enumerate(self.layers, start=1):
            x, _ = layer(x, source.mask)
            x = self._drop(x, dropout_keys, site)
        return x

    def _similarities(self, a: Float[Tensor, "B T D"], b: Float[Tensor, "B S D"]) -> Float[Tensor, "B T S"]:
        """u · a_i + v · b_j + w · (a_i ⊙ b_j)."""
        weight: Tensor = self.similarity["weight"]
        u, v, w = weight.unbind(0)
        return (a @ u)[:, :, None] + (b @ v)[:, None] + (a * w) @ b.transpose(1, 2)
