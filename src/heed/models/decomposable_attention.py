"""Reader of two texts that compares their words: decomposable attention (Parikh et al. 2016), without recurrence.

The source is a text, an end of sentence, and another text. With unit vectors x of E features and x̄ = √E W x:

    attend      e_ij = F(x̄_i) · F(x̄_j),  y_i = Σ_j softmax_j(e_ij) x̄_j over the other text  (equations 1 and 2)
    compare     v_i = G([x̄_i; y_i; x̄_i - y_i; x̄_i ⊙ y_i; m_i])                              (equation 3)
    aggregate   the maximum of v over each text                                             (equation 4, with a maximum)

F and G are networks of two layers with ReLU. The difference and the product are those of Chen et al. 2017 ("Enhanced
LSTM for natural language inference", equations 14 and 15). The matches m_i say whether the token is in the other text
too (Chen et al. 2017, "Reading Wikipedia to answer open-domain questions", section 3.2), and the cosines of the two
most similar vectors there.

The features of the first text's positions are in the first half, those of the second one's in the second half, and all
others are 0: as none is negative, the maximum over all positions is that of each text.
"""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from pydantic import Field
from torch import Tensor, nn

from heed.models.model import ModelConfig, ReaderModel
from heed.nn.characters import vectors
from heed.nn.contract import TokenSource, Trace, Vocabularies, recorder_of
from heed.nn.dropout_keys import DropoutKeys, dropout
from heed.nn.two_texts import Sides

NUM_MATCHES = 3
"""Whether a token is in the other text, and the two greatest cosines with vectors there."""


class DecomposableAttentionConfig(ModelConfig):
    """Sizes of a reader that compares two texts."""

    kind: Literal["decomposable_attention"] = "decomposable_attention"
    """Kind of model: the key in `MODELS`."""
    d_model: int = Field(default=100, ge=1)
    """Size of the vectors of tokens."""
    hidden_size: int = Field(default=200, ge=1)
    """Features of all layers."""
    dropout: float = Field(default=0.3, ge=0, lt=1)
    """Dropout of the input of each layer (rounded to 1/256)."""

    def summary(self) -> str:
        return f"decomposable attention between two texts, with {self.hidden_size} features"


class DecomposableAttention(ReaderModel):
    """Features of each position from its token and from what it is compared with in the other text."""

    Config = DecomposableAttentionConfig
    papers = "decomposable attention (Parikh et al. 2016)"

    def __init__(self, config: DecomposableAttentionConfig, vocabularies: Vocabularies) -> None:
        super().__init__()
        self.config = config
        self.eos_id, self.unk_id = vocabularies.eos_id, vocabularies.unk_id
        size = config.hidden_size
        self.num_features = 2 * size
        self.embedding = vectors(vocabularies.src_size, config.d_model)
        self.project = nn.Linear(config.d_model, size, bias=False)
        self.attend = nn.ModuleList([nn.Linear(size, size), nn.Linear(size, size)])
        self.compare = nn.ModuleList([nn.Linear(4 * size + NUM_MATCHES, size), nn.Linear(size, size)])

    def read(
        self, source: TokenSource, dropout_keys: DropoutKeys | None = None, trace: Trace | None = None
    ) -> Float[Tensor, "B S D"]:
        """Comparisons of the first text in the first half of the features, and of the second one in the other half."""
        sides = self._sides(source)
        x = F.normalize(F.embedding(source.ids, self.embedding), dim=-1)
        scaled = x * self.config.d_model**0.5
        projected: Tensor = self.project(dropout(scaled, self.config.dropout, dropout_keys, 0))
        keys = self._network(self.attend, projected, dropout_keys, 1)
        recorder = recorder_of(trace, "alignment.self")
        aligned = sides.exchange(keys, projected, lambda a, b: a @ b.transpose(1, 2), recorder)
        compared = torch.cat((projected, aligned, projected - aligned, projected * aligned), -1)
        compared = torch.cat((compared, self._matches(source, x, sides).to(x.dtype)), -1)
        features = self._network(self.compare, compared, dropout_keys, 3)
        return torch.cat((features * sides.first[..., None], features * sides.second[..., None]), -1)

    def _sides(self, source: TokenSource) -> Sides:
        """The positions of both texts, without ends of sentence."""
        return Sides.of(source.ids, source.mask & (source.ids != self.eos_id), self.eos_id)

    def _network(
        self, layers: nn.ModuleList, x: Float[Tensor, "B S I"], dropout_keys: DropoutKeys | None, site: int
    ) -> Float[Tensor, "B S H"]:
        """Two layers with ReLU."""
        for index, layer in enumerate(layers):
            x = layer(dropout(x, self.config.dropout, dropout_keys, site + index)).relu()
        return x

    def _matches(self, source: TokenSource, x: Float[Tensor, "B S E"], sides: Sides) -> Float[Tensor, "B S M"]:
        """Whether each token is in the other text, and the two greatest cosines with vectors there, or 0 if these are
        negative; no gradient.
        """
        ids, across = source.ids, sides.across()
        same: Bool[Tensor, "B S S"] = (ids[:, :, None] == ids[:, None]) & across & (ids != self.unk_id)[:, None]
        cosines = (x @ x.transpose(1, 2)).detach().masked_fill(~across, 0.0)
        cosines = F.pad(cosines, (0, 2))  # of texts with fewer than two tokens
        return torch.cat((same.any(2, keepdim=True).to(x.dtype), cosines.topk(2).values), -1)
