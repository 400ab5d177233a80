"""Recurrent language model (Mikolov et al. 2010): an embedding, a stack of recurrent layers and a softmax.

P(w_t | w_<t) = softmax(W h_t + b), h_t from any cell of `heed.nn.recurrent`. The additions of published recipes
are options: dropout between layers (Zaremba, Sutskever & Vinyals 2014), variational dropout (Gal & Ghahramani 2016),
tied weights (Press & Wolf 2017; Inan et al. 2017), residual connections between layers, and those of AWD-LSTM (Merity,
Keskar & Socher 2018): embedding dropout, DropConnect on the recurrent weights, activation regularisation. AWD-LSTM's
optimiser is a setting of the training.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Literal, cast

import torch
from jaxtyping import Float, Int
from pydantic import Field, model_validator
from torch import Tensor, nn

from heed.core.config import KeyOf
from heed.models.model import LanguageModel, ModelConfig
from heed.nn.adaptive_softmax import AdaptiveHead
from heed.nn.contract import Head, Trace, Vocabularies
from heed.nn.dropout_keys import DropoutKeys
from heed.nn.embeddings import uniform_weight
from heed.nn.heads import LinearHead, PenalisedHead
from heed.nn.recurrent import CELLS, Cell, States, unroll
from heed.nn.states import RowState


class RecurrentConfig(ModelConfig):
    """Sizes and regularisation of a recurrent language model."""

    kind: Literal["rnn"] = "rnn"
    """Kind of model: the key in `MODELS`."""
    cell: Annotated[str, KeyOf(CELLS)] = "lstm"
    """The recurrent unit (see heed.nn.recurrent)."""
    d_model: int = Field(default=256, ge=1)
    """Size of the embeddings; with tied weights also that of the last layer."""
    hidden_size: int = Field(default=512, ge=1)
    """Size of the layers' states (with tied weights: of all layers but the last)."""
    num_layers: int = Field(default=2, ge=1, le=1000)
    """Number of recurrent layers."""
    residual: bool = False
    """Add each layer's input to its output; hidden_size and d_model must be equal."""
    tie: bool = True
    """Share one weight between embedding and output."""
    output_bias: bool = True
    """Add a bias for each word in the output layer; an adaptive softmax has none."""
    cutoffs: tuple[int, ...] = ()
    """Adaptive softmax for large vocabularies: ends of the shortlist and of each cluster but the last; empty: none."""
    dropout: float = Field(default=0.2, ge=0, lt=1)
    """Dropout of the last layer's output (all dropout is rounded to 1/256)."""
    input_dropout: float | None = Field(default=None, ge=0, lt=1)
    """Dropout of the embedded tokens; by default that of `dropout`."""
    layer_dropout: float | None = Field(default=None, ge=0, lt=1)
    """Dropout between layers; by default that of `dropout`."""
    variational: bool = False
    """Variational dropout: the three above drop the same features at all positions of a segment."""
    embedding_dropout: float = Field(default=0.0, ge=0, lt=1)
    """Share of words whose whole embedding is dropped in an update."""
    recurrent_dropout: float = Field(default=0.0, ge=0, lt=1)
    """DropConnect: share of the recurrent weights that are dropped in an update."""
    activation_penalty: float = Field(default=0.0, ge=0)
    """α of activation regularisation (AR)."""
    change_penalty: float = Field(default=0.0, ge=0)
    """β of temporal activation regularisation (TAR)."""
    embedding_bound: float = Field(default=0.5, gt=0)
    """Embeddings are initialised uniformly in ± this."""
    layer_bound: float | None = Field(default=None, gt=0)
    """Weights of the layers, and of an untied output, are initialised uniformly in ± this; by default 1/√size."""
    forget_bias: float = 0.0
    """Added to the initial bias of the gate that keeps the old state, in cells that have one."""

    @model_validator(mode="after")
    def _check(self) -> RecurrentConfig:
        if self.residual and self.hidden_size != self.d_model:
            raise ValueError(
                f"model.residual adds inputs and outputs of layers, so hidden_size must equal d_model: got "
                f"{self.hidden_size} and {self.d_model}"
            )
        if self.cutoffs and self.tie:
            raise ValueError(
                "an adaptive softmax (model.cutoffs) cannot be tied to the embedding: set model.tie = false"
            )
        return self

    @property
    def layer_sizes(self) -> list[int]:
        """The size of each layer's state."""
        last = self.d_model if self.tie else self.hidden_size
        return [self.hidden_size] * (self.num_layers - 1) + [last]

    def summary(self) -> str:
        return (
            f"a recurrent language model of {self.num_layers} layers ({self.cell.replace('_', ' ')}), "
            f"{self.hidden_size} features each, and embeddings of {self.d_model}"
        )


@dataclass(frozen=True)
class RecurrentState(RowState):
    """The state of each layer, and the number of tokens read."""

    layers: tuple[States, ...]
    length: int
    dropout_keys: DropoutKeys | None = None


class Recurrent(LanguageModel):
    """P(w_t | w_<t) by a stack of recurrent layers."""

    Config = RecurrentConfig
    reads = "stream"
    papers = "the recurrent language model (Mikolov et al. 2010; Zaremba et al. 2014; Merity et al. 2018)"

    def __init__(self, config: RecurrentConfig, vocabularies: Vocabularies) -> None:
        super().__init__()
        self.config = config
        self.penalised = bool(config.activation_penalty or config.change_penalty)
        self.embedding = uniform_weight(vocabularies.tgt_size, config.d_model, config.embedding_bound)
        sizes = config.layer_sizes
        self.layers = nn.ModuleList(
            CELLS[config.cell](input_size, size, config.layer_bound, config.forget_bias)
            for input_size, size in zip([config.d_model, *sizes], sizes, strict=False)
        )
        self.head = self._head(vocabularies, sizes[-1])

    def _head(self, vocabularies: Vocabularies, size: int) -> Head:
        config, vocab_size = self.config, vocabularies.tgt_size
        head: Head
        if config.cutoffs:
            head = AdaptiveHead(size, vocab_size, config.cutoffs)
        else:
            weight = (
                self.embedding if config.tie else uniform_weight(vocab_size, size, config.layer_bound or size**-0.5)
            )
            head = LinearHead(weight, vocabularies.pad_id, config.output_bias)
        if self.penalised:
            return PenalisedHead(head, size, config.activation_penalty, config.change_penalty)
        return head

    @property
    def _cells(self) -> Iterable[Cell]:
        return cast(Iterable[Cell], self.layers)

    def initial_state(self, num_rows: int, reserve: int | None, dropout_keys: DropoutKeys | None) -> RecurrentState:
        """Rows that have read nothing."""
        return RecurrentState(tuple(cell.zeros(num_rows) for cell in self._cells), 0, dropout_keys)

    def advance(
        self, ids: Int[Tensor, "B T"], state: RecurrentState, trace: Trace | None = None
    ) -> tuple[Float[Tensor, "B T D"], RecurrentState]:
        """Features of the next token after each of the given ones; see `PenalisedHead` for those of training."""
        outputs, plain, layers = self._layers(ids, state)
        features, dropout_keys = outputs[-1].transpose(0, 1), state.dropout_keys
        if dropout_keys is not None and self.penalised:
            features = torch.cat((features, plain.transpose(0, 1)), dim=-1)
        return features, RecurrentState(tuple(layers), state.length + ids.shape[1], dropout_keys)

    def hidden_layers(
        self, ids: Int[Tensor, "B T"], dropout_keys: DropoutKeys | None = None
    ) -> list[Float[Tensor, "B T D"]]:
        """The embeddings, and the output of each layer after each token, from the beginning of a text."""
        outputs, _, _ = self._layers(ids, self.initial_state(len(ids), None, dropout_keys))
        return [output.transpose(0, 1) for output in outputs]

    def _layers(
        self, ids: Int[Tensor, "B T"], state: RecurrentState
    ) -> tuple[list[Float[Tensor, "T B _"]], Float[Tensor, "T B D"], list[States]]:
        """The outputs of all layers, after the embeddings; that of the last one without dropout; and the states."""
        config, dropout_keys = self.config, state.dropout_keys
        x = plain = self._dropped(self._embed(ids.t(), dropout_keys), config.input_dropout, state, site=0)  # [T, B, D]
        outputs, layers = [x], []
        for number, (cell, states) in enumerate(zip(self._cells, state.layers, strict=True)):
            inner = dropout_keys and dropout_keys.fold(number)
            plain, states = unroll(cell, x, states, config.recurrent_dropout, inner)
            layers.append(states)
            is_last = number + 1 == len(self.layers)
            out = self._dropped(plain, config.dropout if is_last else config.layer_dropout, state, site=number + 1)
            x = x + out if config.residual else out
            outputs.append(x)
        return outputs, plain, layers

    def _embed(self, ids: Int[Tensor, "T B"], dropout_keys: DropoutKeys | None) -> Float[Tensor, "T B D"]:
        """Vectors of words; embedding dropout sets some words to zero in the whole batch (Gal & Ghahramani 2016)."""
        vectors = nn.functional.embedding(ids, self.embedding)
        if dropout_keys is None or not self.config.embedding_dropout:
            return vectors
        kept = dropout_keys.weights(vectors.new_ones(len(self.embedding)), self.config.embedding_dropout, site=1000)
        return vectors * kept[ids][..., None]

    def _dropped(
        self, x: Float[Tensor, "T B D"], probability: float | None, state: RecurrentState, site: int
    ) -> Float[Tensor, "T B D"]:
        """Dropout of a layer's output, with one mask for all positions if variational."""
        dropout_keys, probability = state.dropout_keys, self.config.dropout if probability is None else probability
        if dropout_keys is None or not probability:
            return x
        rows_first = x.transpose(0, 1)
        if self.config.variational:
            return dropout_keys.locked(rows_first, probability, site).transpose(0, 1)
        return dropout_keys.dropout(rows_first, probability, site, state.length).transpose(0, 1)
