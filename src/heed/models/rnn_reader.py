"""Recurrent reader in one direction: the encoder of Sutskever, Vinyals & Le (2014).

A stack of recurrent layers reads a text from its beginning or from its end ("right to left"). What remains of the text
after the last step, the states of all layers, is the thought vector, with which a decoder begins.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal, cast

from jaxtyping import Bool, Float
from pydantic import Field
from torch import Tensor, nn

from heed.core.config import KeyOf
from heed.models.model import ModelConfig, ReaderToEnd
from heed.nn.contract import Vocabularies
from heed.nn.dropout_keys import DropoutKeys, dropout
from heed.nn.embeddings import TokenEmbedding, embedding_weight
from heed.nn.recurrent import CELLS, Cell, States, reversed_positions, unroll_rows


class RecurrentReaderConfig(ModelConfig):
    """Sizes and direction of a recurrent reader."""

    kind: Literal["rnn_reader"] = "rnn_reader"
    """Kind of model: the key in `MODELS`."""
    direction: Literal["forward", "backward"] = "backward"
    """Read each text from its beginning, or from its end ("backward": right to left)."""
    cell: Annotated[str, KeyOf(CELLS)] = "lstm"
    """The recurrent unit (see heed.nn.recurrent)."""
    d_model: int = Field(default=256, ge=1)
    """Size of the vectors of tokens."""
    hidden_size: int = Field(default=256, ge=1)
    """Size of the state of each layer."""
    num_layers: int = Field(default=1, ge=1, le=1000)
    """Number of layers."""
    dropout: float = Field(default=0.2, ge=0, lt=1)
    """Dropout of the vectors of tokens and of the input of each further layer (rounded to 1/256)."""

    def summary(self) -> str:
        order = "right to left" if self.direction == "backward" else "left to right"
        layers = f"{self.num_layers} layer{'s' * (self.num_layers > 1)}"
        return f"a recurrent reader of {layers} ({self.cell.replace('_', ' ')}), {order}, {self.hidden_size} features"


class RecurrentReader(ReaderToEnd):
    """Features of each position from those that were read before it, and a last state."""

    Config = RecurrentReaderConfig
    vectors_name = "embedding.weight"
    papers = "the encoder of sequence to sequence learning (Sutskever et al. 2014)"

    def __init__(self, config: RecurrentReaderConfig, vocabularies: Vocabularies) -> None:
        super().__init__()
        self.config = config
        self.num_features = config.hidden_size
        weight = embedding_weight(vocabularies.src_size, config.d_model)
        self.embedding = TokenEmbedding(weight, config.d_model, "none", config.dropout)
        sizes = [config.d_model] + [config.hidden_size] * (config.num_layers - 1)
        self.layers = nn.ModuleList(CELLS[config.cell](size, config.hidden_size) for size in sizes)
        self.last_sizes = tuple(cell.state_sizes for cell in self._cells)

    @property
    def _cells(self) -> Iterable[Cell]:
        return cast(Iterable[Cell], self.layers)

    def token_vectors(self) -> nn.Parameter:
        return self.embedding.weight

    def read_to_end(
        self, source: Any, dropout_keys: DropoutKeys | None = None
    ) -> tuple[Float[Tensor, "B S D"], tuple[States, ...]]:
        x = self._in_order(self.embedding(source.ids, dropout_keys and dropout_keys.fold(0)), source.mask)
        last = []
        for site, cell in enumerate(self._cells):
            x = dropout(x, self.config.dropout if site else 0.0, dropout_keys, site)
            x, states = unroll_rows(cell, x, source.mask)
            last.append(states)
        return self._in_order(x, source.mask), tuple(last)

    def _in_order(self, x: Float[Tensor, "B S E"], mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B S E"]:
        """Positions in the order of reading, or back from it."""
        if self.config.direction == "forward":
            return x
        return x.take_along_dim(reversed_positions(mask)[..., None], dim=1)
