"""Recurrent decoder of any encoder: with a thought vector, with attention, or with both.

A stack of recurrent layers reads the previous words. The options are those of published systems:

    Sutskever et al. 2014: starts with the encoder's last states and sees nothing else of the source.
    Bahdanau et al. 2015: starts with s_0 = tanh(W_s ←h_1), from the right-to-left state of the first position, attends
        before each step with the previous state, s_i = f(s_{i-1}, [e(y_{i-1}); c_i]), and
        t_i = maxout(U s_{i-1} + V e(y_{i-1}) + C c_i) (section A.2.2).
    Luong et al. 2015: attends after the step with the new state, h̃_t = tanh(W [c_t; h_t]), which with input feeding is
        an input of the next step (equation 5 and section 3.3).
    McAllester's notes: h_t reads words alone, the query is e(w_t), the next word depends on h_thought, h_t and h̃_t.
    Kalchbrenner & Blunsom 2013: the thought vector is an input of every step, h_t = σ(R h_{t-1} + I e(w_t) + S s).
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Literal, cast

import torch
from jaxtyping import Bool, Float, Int
from pydantic import Field, model_validator
from torch import Tensor, nn

from heed.core.config import Config, KeyOf
from heed.core.errors import UsageError
from heed.nn.attention import ATTENTION, Attention
from heed.nn.contract import Recorder, Trace, recorder_of
from heed.nn.dropout_keys import DropoutKeys, dropout
from heed.nn.recurrent import CELLS, Cell, States, unroll
from heed.nn.repeated_product import Product, repeated_product
from heed.nn.states import Memory, RowPositions, RowState

WITH_NONE: Mapping[str, object] = ChainMap({"none": None}, cast(dict[str, object], ATTENTION))
"""The attentions, and none."""
Part = Literal["state", "context", "word", "thought"]


class RecurrentDecoderConfig(Config):
    """Sizes and choices of a recurrent decoder."""

    kind: Literal["recurrent"] = "recurrent"
    """Kind of decoder."""
    cell: Annotated[str, KeyOf(CELLS)] = "gru_reset_after"
    """The recurrent unit (see heed.nn.recurrent)."""
    hidden_size: int = Field(default=256, ge=1)
    """Size of the state of each layer."""
    num_layers: int = Field(default=1, ge=1, le=1000)
    """Number of layers."""
    start: Literal["thought", "first", "right_to_left", "mean", "zeros"] = "first"
    """First state: the encoder's last states ("thought"), computed from its features at the first position, where a
    right-to-left network has read everything (all of them: "first"; those of that network: "right_to_left"), computed
    from the mean of its features, or zeros."""
    feed_thought: bool = False
    """Read the thought vector at every step."""
    attention: Annotated[str, KeyOf(WITH_NONE)] = "additive"
    """The attention to the source (see heed.nn.attention), or "none"."""
    attention_size: int = Field(default=256, ge=1)
    """Size of the layer inside the attention, for attentions that have one."""
    query: Literal["state", "word"] = "state"
    """Attend with the state of the last layer, or with the vector of the last word."""
    attends: Literal["before", "after"] = "before"
    """Attend before each step, which then reads the context, or after it with the new state."""
    input_feeding: bool = False
    """Read the features of the previous step at each step."""
    readout: Literal["tanh", "maxout", "none"] = "tanh"
    """Layer before the output: tanh, maxout of pairs over the state that attended, or none (features are the state)."""
    readout_of: tuple[Part, ...] = Field(default=("state", "context", "word"), min_length=1)
    """What that layer reads."""

    @model_validator(mode="after")
    def _check(self) -> RecurrentDecoderConfig:
        if self.attention == "none" and self.readout != "none" and "context" in self.readout_of:
            raise ValueError(
                'without attention there is no context: leave "context" out of model.decoder.readout_of, or set '
                'model.decoder.readout = "none"'
            )
        if self.attention == "none" and self.query == "word":
            raise ValueError(
                'without attention there is no query: leave model.decoder.query = "word" out, or choose a '
                "model.decoder.attention"
            )
        read = self.attends == "before" or (self.readout != "none" and "context" in self.readout_of)
        if self.attention != "none" and not read:
            raise ValueError(
                'with model.decoder.attends = "after" only the readout can read the context: add "context" to '
                'model.decoder.readout_of with model.decoder.readout = "tanh" or "maxout", or set '
                'model.decoder.attends = "before" or model.decoder.attention = "none"'
            )
        return self

    def summary(self) -> str:
        """The decoder in a phrase."""
        layers = f"{self.num_layers} layer{'s' * (self.num_layers > 1)} of {self.cell.replace('_', ' ')}"
        attention = "no attention" if self.attention == "none" else f"{self.attention.replace('_', ' ')} attention"
        return f"a recurrent decoder of {layers} with {self.hidden_size} features and {attention}"


@dataclass(frozen=True)
class Encoded:
    """What an encoder makes of sources: features of the positions, and the last states of its layers, if any."""

    features: Float[Tensor, "B S C"]
    mask: Bool[Tensor, "B S"]
    last: tuple[States, ...] = ()


@dataclass(frozen=True)
class DecoderState(RowState):
    """The states of the layers, and what they read besides words."""

    memory: Memory
    layers: tuple[States, ...]
    thought: Float[Tensor, "R N"] | None
    fed: Float[Tensor, "R D"] | None
    """Features of the previous step, with input feeding."""
    num_read: Int[Tensor, " R"]
    """Words that each row has read."""
    length: int
    dropout_keys: DropoutKeys | None = None


class RecurrentDecoder(nn.Module):
    """Features of the next word from a stack of recurrent layers."""

    positions = "none"
    """Encoding of positions that it needs in the vectors of words."""

    def __init__(
        self, config: RecurrentDecoderConfig, d_model: int, dropout: float, memory_size: int,
        num_right_to_left: int, last_sizes: tuple[tuple[int, ...], ...],
    ) -> None:  # fmt: skip
        """A decoder that reads vectors of words of `d_model` features.

        The encoder has `memory_size` features, the last `num_right_to_left` of which are the state of a right-to-left
        network, and last states of `last_sizes`. Raises UsageError if it begins with what the encoder does not have, or
        reads a thought vector that neither the encoder nor its own first state provides.
        """
        super().__init__()
        self.config, self.dropout = config, dropout
        self.num_features = config.hidden_size if config.readout == "none" else d_model
        thought_size = last_sizes[-1][0] if last_sizes else config.hidden_size
        sizes = {"state": config.hidden_size, "context": memory_size, "word": d_model, "thought": thought_size}
        inputs = d_model + config.feed_thought * thought_size + config.input_feeding * self.num_features
        query_size = config.hidden_size if config.query == "state" else d_model
        self.attention = (
            None if config.attention == "none"
            else ATTENTION[config.attention].over(query_size, memory_size, config.attention_size)
        )  # fmt: skip
        inputs += memory_size * (self.attention is not None and config.attends == "before")
        kind = CELLS[config.cell]
        layer_inputs = [inputs] + [config.hidden_size] * (config.num_layers - 1)
        self.layers = nn.ModuleList(kind(size, config.hidden_size) for size in layer_inputs)
        if config.start == "right_to_left" and not num_right_to_left:
            raise UsageError(
                'model.decoder.start = "right_to_left" needs an encoder that reads in both directions, such as one of '
                'kind birnn, bigru or bilstm: choose one, or model.decoder.start = "first".'
            )
        self.num_right_to_left = num_right_to_left
        if config.start in ("first", "right_to_left", "mean"):
            num_read = num_right_to_left if config.start == "right_to_left" else memory_size
            self.initial = nn.Linear(num_read, sum(map(sum, self._state_sizes)))
        elif config.start == "thought":
            self._require(last_sizes)
        elif self._sees_thought and not last_sizes:
            raise UsageError(
                'the thought vector (model.decoder.feed_thought, or "thought" in model.decoder.readout_of) would be '
                "zeros: choose an encoder with last states, such as one of kind rnn_reader or sentence_convolution, "
                'or model.decoder.start = "mean" or "first".'
            )
        if config.readout != "none":
            width = d_model * (2 if config.readout == "maxout" else 1)
            self.readout = nn.Linear(sum(sizes[part] for part in config.readout_of), width)

    @property
    def _cells(self) -> Sequence[Cell]:
        return cast(Sequence[Cell], self.layers)

    @property
    def _state_sizes(self) -> tuple[tuple[int, ...], ...]:
        return tuple(cell.state_sizes for cell in self._cells)

    def _require(self, last_sizes: tuple[tuple[int, ...], ...]) -> None:
        if last_sizes != self._state_sizes:
            raise UsageError(
                'model.decoder.start = "thought" copies the encoder\'s last states (sizes '
                f"{last_sizes or 'not defined'}) to the decoder (sizes {self._state_sizes}), so both must be equal: "
                "choose an encoder of kind rnn_reader with the same cell, layers and sizes, or "
                'model.decoder.start = "mean".'
            )

    # --- the first state --------------------------------------------------------------------------------

    def start(
        self, encoded: Encoded, rows_per_source: int, reserve: int, dropout_keys: DropoutKeys | None
    ) -> DecoderState:
        """The state before the first word, with `rows_per_source` rows for each source."""
        projected = () if self.attention is None else (self.attention.project(encoded.features),)
        memory = Memory(projected, encoded.mask, rows_per_source)
        layers, num_rows = self._first_states(encoded), memory.num_rows
        thought = encoded.last[-1][0] if encoded.last else layers[-1][0]
        repeated = tuple(tuple(part.repeat_interleave(rows_per_source, 0) for part in states) for states in layers)
        fed = encoded.features.new_zeros(num_rows, self.num_features) if self.config.input_feeding else None
        num_read = torch.zeros(num_rows, dtype=torch.long, device=encoded.mask.device)
        return DecoderState(
            memory, repeated, thought.repeat_interleave(rows_per_source, 0) if self._sees_thought else None, fed,
            num_read, 0, dropout_keys,
        )  # fmt: skip

    @property
    def _sees_thought(self) -> bool:
        return self.config.feed_thought or (self.config.readout != "none" and "thought" in self.config.readout_of)

    def _first_states(self, encoded: Encoded) -> tuple[States, ...]:
        zeros = tuple(cell.zeros(len(encoded.mask)) for cell in self._cells)
        if self.config.start == "thought":
            return encoded.last
        if self.config.start == "zeros":
            return zeros
        summary = encoded.features[:, 0]
        if self.config.start == "right_to_left":
            summary = summary[:, -self.num_right_to_left :]
        if self.config.start == "mean":
            real = encoded.mask[..., None]
            summary = encoded.features.masked_fill(~real, 0.0).sum(1) / real.sum(1)
        all_sizes = [size for sizes in self._state_sizes for size in sizes]
        parts = iter(torch.split(torch.tanh(self.initial(summary)), all_sizes, -1))
        return tuple(tuple(next(parts).to(part.dtype) for part in states) for states in zeros)

    @staticmethod
    def columns(state: DecoderState) -> tuple[int, Tensor | None]:
        """The column of the next word, and those of the rows' first words, for encodings of positions."""
        return state.length, None

    # --- reading words ----------------------------------------------------------------------------------

    def advance(
        self, words: Float[Tensor, "R T D"], state: DecoderState, trace: Trace | None = None
    ) -> tuple[Float[Tensor, "R T F"], DecoderState]:
        """Features of the next word after each of the given ones."""
        source = _Source(self.attention, state, recorder_of(trace, "decoder.cross"))
        read = self._read_step_by_step if self._by_steps else self._read_at_once
        features, layers = read(words, state, source)
        after = replace(
            state, layers=layers, fed=features[:, -1] if self.config.input_feeding else None,
            num_read=state.num_read + words.shape[1], length=state.length + words.shape[1],
        )  # fmt: skip
        return dropout(features, self.dropout, state.dropout_keys, 0, state.length), after

    @property
    def _by_steps(self) -> bool:
        """Whether a step depends on a context or features of the step before it, so that steps come one by one."""
        needs_context = self.attention is not None and self.config.attends == "before"
        return self.config.input_feeding or (needs_context and self.config.query == "state")

    def _read_at_once(
        self, words: Float[Tensor, "R T D"], state: DecoderState, source: _Source
    ) -> tuple[Float[Tensor, "R T F"], tuple[States, ...]]:
        """All steps of a layer, then those of the next."""
        config, contexts = self.config, None
        if config.query == "word":
            contexts = source.contexts(words)
        read_context = config.attends == "before"
        x, layers = self._inputs(words, contexts if read_context else None, state), []
        for site, (cell, states) in enumerate(zip(self._cells, state.layers, strict=True), start=1):
            x = self._dropped(x, site, state, 0)
            out, states = unroll(cell, x.transpose(0, 1), states)
            x = out.transpose(0, 1)
            layers.append(states)
        if config.query == "state":
            contexts = source.contexts(x)
        before = torch.cat((state.layers[-1][0][:, None], x[:, :-1]), 1) if self._reads_old_state else x
        return self._features(before, x, contexts, words, state), tuple(layers)

    def _read_step_by_step(
        self, words: Float[Tensor, "R T D"], state: DecoderState, source: _Source
    ) -> tuple[Float[Tensor, "R T F"], tuple[States, ...]]:
        """All layers of a step, then those of the next."""
        products, layers, fed = self._products(words.shape[1]), state.layers, state.fed
        steps: list[tuple[Tensor, Tensor, Tensor | None]] = []
        features = []
        for t, word in enumerate(torch.split(words, 1, 1)):
            old, context = layers[-1][0][:, None], None
            if self.config.attends == "before":
                context = source.contexts(old if self.config.query == "state" else word, t)
            x = self._inputs(word, context, state, fed)
            layers, new = self._step(x, layers, products, state, t)
            if self.config.attends == "after":
                context = source.contexts(new if self.config.query == "state" else word, t)
            shown = old if self._reads_old_state else new
            if self.config.input_feeding:
                fed = self._features(shown, new, context, word, state)[:, 0]
                features.append(fed)
            else:
                steps.append((shown, new, context))
        if self.config.input_feeding:
            return torch.stack(features, 1), layers
        shown, new, contexts = (torch.cat(parts, 1) for parts in zip(*steps, strict=True))
        return self._features(shown, new, contexts, words, state), layers

    @property
    def _reads_old_state(self) -> bool:
        return self.config.readout == "maxout" and self.config.attends == "before" and self.config.attention != "none"

    def _inputs(
        self, words: Float[Tensor, "R T D"], contexts: Float[Tensor, "R T C"] | None, state: DecoderState,
        fed: Float[Tensor, "R F"] | None = None,
    ) -> Float[Tensor, "R T I"]:  # fmt: skip
        """What the first layer reads at each step."""
        parts = [words]
        if contexts is not None:
            parts.append(contexts)
        if self.config.feed_thought and state.thought is not None:
            parts.append(state.thought[:, None].expand(-1, words.shape[1], -1))
        if fed is not None:
            parts.append(fed[:, None])
        return torch.cat(parts, -1)

    def _products(self, num_steps: int) -> list[list[Product]]:
        """The products of each layer: with its input, and with its state."""
        return [
            [repeated_product(linear, num_steps) for linear in (cell.input, *cell.recurrents())] for cell in self._cells
        ]

    def _step(
        self, x: Float[Tensor, "R 1 I"], layers: tuple[States, ...], products: list[list[Product]], state: DecoderState,
        t: int,
    ) -> tuple[tuple[States, ...], Float[Tensor, "R 1 N"]]:  # fmt: skip
        """The states after one word, and the output of the last layer."""
        after = []
        for site, (cell, states, (inward, *recurrent)) in enumerate(zip(self._cells, layers, products, strict=True), 1):
            states = cell.step(inward(self._dropped(x, site, state, t)[:, 0]), states, *recurrent)
            after.append(states)
            x = states[0][:, None]
        return tuple(after), x

    def _dropped(self, x: Float[Tensor, "R T I"], site: int, state: DecoderState, t: int) -> Float[Tensor, "R T I"]:
        """Dropout of what a further layer reads; the words have theirs."""
        return x if site == 1 else dropout(x, self.dropout, state.dropout_keys, site, state.length + t)

    def _features(
        self, shown: Float[Tensor, "R T N"], new: Float[Tensor, "R T N"], contexts: Float[Tensor, "R T C"] | None,
        words: Float[Tensor, "R T D"], state: DecoderState,
    ) -> Float[Tensor, "R T F"]:  # fmt: skip
        """The layer before the output, from the state that it reads, the new state, the contexts and the words."""
        if self.config.readout == "none":
            return new
        thought = None if state.thought is None else state.thought[:, None].expand(-1, words.shape[1], -1)
        parts = {"state": shown, "context": contexts, "word": words, "thought": thought}
        inner: Tensor = self.readout(torch.cat([cast(Tensor, parts[part]) for part in self.config.readout_of], -1))
        if self.config.readout == "maxout":
            return inner.view(*inner.shape[:-1], -1, 2).amax(-1)
        return torch.tanh(inner)


@dataclass(frozen=True)
class _Source:
    """The source of one `advance`: contexts of queries."""

    attention: Attention | None
    state: DecoderState
    recorder: Recorder | None

    def contexts(self, queries: Float[Tensor, "R T Q"], t: int = 0) -> Float[Tensor, "R T C"] | None:
        """The contexts of queries whose first is at step `t` of this call; None without attention."""
        if self.attention is None:
            return None
        memory, state = self.state.memory, self.state
        positions = RowPositions(state.length + t, state.length - state.num_read)
        contexts: Tensor = self.attention(
            queries.contiguous(), memory.layers[0], memory.attention_mask(), positions, None, self.recorder
        )
        return contexts
