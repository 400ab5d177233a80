"""Convolutional reader of sentences (Kim 2014, "Convolutional neural networks for sentence classification").

The features of a position are the outputs of filters over the windows of 3, 4 and 5 tokens that begin there, after a
ReLU (equation 2). A head that takes the maximum over positions, with dropout and a linear layer, makes it the
paper's CNN-rand. Tokens beyond the text are zeros.
"""

from __future__ import annotations

from typing import Annotated, Literal

import torch
import torch.nn.functional as F
from jaxtyping import Float
from pydantic import Field
from torch import Tensor, nn

from heed.models.model import ModelConfig, ReaderModel
from heed.nn.contract import TokenSource, Trace, Vocabularies
from heed.nn.dropout_keys import DropoutKeys, dropout


class CnnConfig(ModelConfig):
    """Filters over windows of tokens (Kim 2014)."""

    kind: Literal["cnn"] = "cnn"
    """Kind of model: the key in `MODELS`."""
    d_model: int = Field(default=128, ge=1)
    """Features of a token's vector."""
    widths: tuple[Annotated[int, Field(ge=1)], ...] = Field(default=(3, 4, 5), min_length=1)
    """Tokens of the windows."""
    num_filters: int = Field(default=100, ge=1)
    """Filters for each width."""
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """Dropout of the tokens' vectors."""

    def summary(self) -> str:
        windows = ", ".join(map(str, self.widths))
        return f"a convolutional reader with {self.num_filters} filters over each of {windows} tokens"


class Cnn(ReaderModel):
    """Features c_i = ReLU(w · x_{i:i+h-1} + b) for every filter."""

    Config = CnnConfig
    papers = "the convolutional sentence classifier (Kim 2014)"

    def __init__(self, config: CnnConfig, vocabularies: Vocabularies) -> None:
        super().__init__()
        self.config = config
        self.num_features = config.num_filters * len(config.widths)
        self.embedding = nn.Parameter(torch.empty(vocabularies.src_size, config.d_model).uniform_(-0.25, 0.25))
        self.filters = nn.ModuleList(nn.Linear(width * config.d_model, config.num_filters) for width in config.widths)

    def read(
        self, source: TokenSource, dropout_keys: DropoutKeys | None = None, trace: Trace | None = None
    ) -> Float[Tensor, "B S D"]:
        """Features of the windows that begin at each position; those that reach beyond the text see zeros there."""
        vectors = dropout(F.embedding(source.ids, self.embedding), self.config.dropout, dropout_keys, 0)
        vectors = (vectors * source.mask[..., None]).transpose(1, 2)
        filters = zip(self.filters, self.config.widths, strict=True)
        outputs = [self._convolved(vectors, linear, width) for linear, width in filters]
        return torch.cat(outputs, 1).relu().transpose(1, 2)

    def _convolved(self, vectors: Tensor, linear: nn.Module, width: int) -> Tensor:
        padded = F.pad(vectors, (0, width - 1))
        if not isinstance(linear, nn.Linear):  # a packed one
            windows: Tensor = linear(padded.unfold(2, width, 1).permute(0, 2, 3, 1).flatten(2))
            return windows.transpose(1, 2)
        kernel = linear.weight.view(-1, width, self.config.d_model).transpose(1, 2)
        return F.conv1d(padded, kernel, linear.bias)
