"""The recurrent language model: an embedding, a stack of recurrent layers, a softmax (Mikolov et al. 2010).

P(w_t | w_<t) = softmax(W h_t + b), h_t from any cell of `heed.nn.recurrent`. What the published recipes add are
options: dropout between layers (Zaremba, Sutskever & Vinyals 2014), variational dropout (Gal & Ghahramani 2016), tied
weights (Press & Wolf 2017; Inan et al. 2017), residual connections between layers, and all of AWD-LSTM (Merity,
Keskar & Socher 2018): embedding dropout, DropConnect on the recurrent weights, activation regularisation. Its
optimiser is the recipe's business.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated, Literal, cast

import torch
from jaxtyping import Float, Int
from pydantic import Field, model_validator
from torch import Tensor, nn

from heed.core.config import KeyOf
from heed.models.model import GenerativeModel, ModelConfig
from heed.nn.activation_penalty import PenalisedHead, side_by_side
from heed.nn.adaptive_softmax import AdaptiveHead
from heed.nn.contract import Head, Source, Trace, Vocabularies
from heed.nn.dropout_keys import DropoutKeys
from heed.nn.heads import LinearHead
from heed.nn.recurrent import CELLS, Cell, States, unroll


class RecurrentConfig(ModelConfig):
    """Sizes and regularisation of a recurrent language model."""

    kind: Literal["rnn"] = "rnn"
    """Which model this is."""
    cell: Annotated[str, KeyOf(CELLS)] = "lstm"
    """The recurrent unit (see heed.nn.recurrent)."""
    d_model: int = Field(default=256, ge=1)
    """Size of the embeddings; where they are tied also of the last layer."""
    hidden_size: int = Field(default=512, ge=1)
    """Size of the layers' states (where weights are tied: of all but the last)."""
    num_layers: int = Field(default=2, ge=1, le=1000)
    """Recurrent layers."""
    residual: bool = False
    """Add each layer's input to its output; hidden_size and d_model must be equal."""
    tie: bool = True
    """One weight is the embedding and the output's."""
    cutoffs: tuple[int, ...] = ()
    """Adaptive softmax for large vocabularies: where the shortlist and each cluster but the last end; empty: none."""
    dropout: float = Field(default=0.2, ge=0, lt=1)
    """Dropout of the last layer's output (all dropout is rounded to 1/256)."""
    input_dropout: float | None = Field(default=None, ge=0, lt=1)
    """Dropout of the embedded tokens; as `dropout` where it is not given."""
    layer_dropout: float | None = Field(default=None, ge=0, lt=1)
    """Dropout between layers; as `dropout` where it is not given."""
    variational: bool = False
    """The three above drop the same features at each position of a segment."""
    embedding_dropout: float = Field(default=0.0, ge=0, lt=1)
    """Share of words whose whole embedding is dropped in an update."""
    recurrent_dropout: float = Field(default=0.0, ge=0, lt=1)
    """DropConnect: share of the recurrent weights that are dropped in an update."""
    activation_penalty: float = Field(default=0.0, ge=0)
    """α of activation regularisation (AR)."""
    change_penalty: float = Field(default=0.0, ge=0)
    """β of temporal activation regularisation (TAR)."""
    embedding_bound: float = Field(default=0.5, gt=0)
    """Embeddings begin uniform in ± this."""
    layer_bound: float | None = Field(default=None, gt=0)
    """Weights of the layers, and of an output of its own, begin uniform in ± this; where not given: 1/√size."""
    forget_bias: float = 0.0
    """Added at first to the bias of the gate that keeps the old state, in cells that have one."""

    @model_validator(mode="after")
    def _check(self) -> RecurrentConfig:
        if self.residual and self.hidden_size != self.d_model:
            raise ValueError(
                f"model.residual adds inputs and outputs of layers: hidden_size ({self.hidden_size}) must be d_model "
                f"({self.d_model})"
            )
        if self.cutoffs and self.tie:
            raise ValueError("an adaptive softmax (model.cutoffs) has weights of its own: set model.tie = false")
        return self

    @property
    def layer_sizes(self) -> list[int]:
        """The size of each layer's state."""
        last = self.d_model if self.tie else self.hidden_size
        return [self.hidden_size] * (self.num_layers - 1) + [last]

    def summary(self) -> str:
        """The model in a phrase, for reports."""
        return (
            f"a recurrent language model of {self.num_layers} layers ({self.cell.replace('_', ' ')}), "
            f"{self.hidden_size} features each, and embeddings of {self.d_model}"
        )


@dataclass(frozen=True)
class RecurrentState:
    """The state of each layer, and how many tokens were read."""

    layers: tuple[States, ...]
    length: int
    dropout_keys: DropoutKeys | None = None

    def select(self, rows: Int[Tensor, " R"]) -> RecurrentState:
        """The given rows in the given order."""
        layers = tuple(tuple(state[rows] for state in states) for states in self.layers)
        return RecurrentState(layers, self.length, self.dropout_keys and self.dropout_keys.select(rows))

    def join(self, other: RecurrentState) -> RecurrentState:
        """These rows, then those of `other`."""
        layers = tuple(
            tuple(torch.cat(pair) for pair in zip(mine, theirs, strict=True))
            for mine, theirs in zip(self.layers, other.layers, strict=True)
        )
        dropout_keys = self.dropout_keys and other.dropout_keys and self.dropout_keys.join(other.dropout_keys)
        return RecurrentState(layers, max(self.length, other.length), dropout_keys)

    def detach(self) -> RecurrentState:
        """The same values, cut off from the graph."""
        return replace(self, layers=tuple(tuple(state.detach() for state in states) for states in self.layers))


class Recurrent(GenerativeModel):
    """P(w_t | w_<t) by a stack of recurrent layers."""

    Config = RecurrentConfig
    reads = "stream"
    papers = "the recurrent language model (Mikolov et al. 2010; Zaremba et al. 2014; Merity et al. 2018)"

    def __init__(self, config: RecurrentConfig, vocabularies: Vocabularies) -> None:
        super().__init__()
        self.config = config
        self.penalised = bool(config.activation_penalty or config.change_penalty)
        self.embedding = _uniform(vocabularies.tgt_size, config.d_model, config.embedding_bound)
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
            weight = self.embedding if config.tie else _uniform(vocab_size, size, config.layer_bound or size**-0.5)
            head = LinearHead(weight, vocabularies.pad_id)
        if self.penalised:
            return PenalisedHead(head, size, config.activation_penalty, config.change_penalty)
        return head

    @property
    def _cells(self) -> Iterable[Cell]:
        return cast(Iterable[Cell], self.layers)

    def start(
        self,
        source: Source | None,
        rows_per_source: int = 1,
        reserve: int | None = None,
        dropout_keys: DropoutKeys | None = None,
    ) -> RecurrentState:
        """As many rows as asked for; a source tells nothing to this model."""
        if source is not None:
            dropout_keys = dropout_keys and dropout_keys.repeat(rows_per_source)
            rows_per_source *= len(source)
        return RecurrentState(tuple(cell.zeros(rows_per_source) for cell in self._cells), 0, dropout_keys)

    def advance(
        self, ids: Int[Tensor, "B T"], state: RecurrentState, trace: Trace | None = None
    ) -> tuple[Float[Tensor, "B T D"], RecurrentState]:
        """Features of the next token after each of the given ones; in training with those that the penalty needs."""
        config, dropout_keys = self.config, state.dropout_keys
        x = self._dropped(self._embed(ids.t(), dropout_keys), config.input_dropout, state, site=0)  # [T, B, D]
        layers = []
        for number, (cell, states) in enumerate(zip(self._cells, state.layers, strict=True)):
            inner = dropout_keys and dropout_keys.fold(number)
            plain, states = unroll(cell, x, states, config.recurrent_dropout, inner)
            layers.append(states)
            is_last = number + 1 == len(self.layers)
            out = self._dropped(plain, config.dropout if is_last else config.layer_dropout, state, site=number + 1)
            x = x + out if config.residual else out
        features = x.transpose(0, 1)
        if dropout_keys is not None and self.penalised:
            features = side_by_side(features, plain.transpose(0, 1))
        return features, RecurrentState(tuple(layers), state.length + ids.shape[1], dropout_keys)

    def _embed(self, ids: Int[Tensor, "T B"], dropout_keys: DropoutKeys | None) -> Float[Tensor, "T B D"]:
        """The words' vectors; with embedding dropout some words are zero in the whole batch (Gal & Ghahramani 2016)."""
        vectors = nn.functional.embedding(ids, self.embedding)
        if dropout_keys is None or not self.config.embedding_dropout:
            return vectors
        kept = dropout_keys.weights(vectors.new_ones(len(self.embedding)), self.config.embedding_dropout, site=1000)
        return vectors * kept[ids][..., None]

    def _dropped(
        self, x: Float[Tensor, "T B D"], probability: float | None, state: RecurrentState, site: int
    ) -> Float[Tensor, "T B D"]:
        """Dropout of a layer's output, the same at all positions or anew at each."""
        dropout_keys, probability = state.dropout_keys, self.config.dropout if probability is None else probability
        if dropout_keys is None or not probability:
            return x
        rows_first = x.transpose(0, 1)
        if self.config.variational:
            return dropout_keys.locked(rows_first, probability, site).transpose(0, 1)
        return dropout_keys.dropout(rows_first, probability, site, state.length).transpose(0, 1)


def _uniform(num_rows: int, size: int, bound: float) -> nn.Parameter:
    return nn.Parameter(torch.empty(num_rows, size).uniform_(-bound, bound))
