"""The contract of models that generate, and the values that models exchange.

Generators (`Autoregressive`) are the chain rule, P(w_t | w_<t, source), behind one verb, `advance`. Teacher forcing is
`advance` over the whole target from a fresh `start`; decoding is T = 1; prefill is T > 1. Features and head are
separate, so that the loss can be fused, only the last position is projected, and a count-based model can score single
tokens without a row of the vocabulary.

Laws of generators, tested for every member of `heed.models.MODELS` in tests/contracts: (1) however the target is cut
into chunks, `advance` gives the same features; (2) padding and neighbours do not change a row; (3) later tokens never
change earlier features; (4) `select` and `join` equal recomputing; (5) probabilities sum to one.

Legend for the whole package: B batch rows, S source length, T target length, D d_model, H heads,
K head size, F d_ff, V vocabulary, W rows of one source, L layers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, Protocol, Self

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from heed.core.errors import UsageError
from heed.nn.dropout_keys import DropoutKeys


class Source(Protocol):
    """The input that a model reads or is conditioned on: rows of positions, some of which are padding.

    Decoding and data use only this protocol; a model uses the class that it reads, such as `TokenSource`.
    """

    @property
    def mask(self) -> Bool[Tensor, "S_rows S"]:
        """True where a position is real."""
        ...

    def __len__(self) -> int:
        """The number of rows."""
        ...

    def part(self, rows: slice) -> Self:
        """Some of the rows, without columns that are all padding."""
        ...

    def repeat(self, times: int) -> Self:
        """All rows, repeated `times` times in sequence."""
        ...

    def to(self, device: torch.device) -> Self:
        """The same source on another device."""
        ...

    def key(self, row: int) -> Hashable:
        """A key of the contents of a row, which does not depend on its padding."""
        ...


@dataclass(frozen=True)
class TokenSource:
    """A source of token ids; padding is at the end of a row."""

    ids: Int[Tensor, "S_rows S"]
    mask: Bool[Tensor, "S_rows S"]

    def __len__(self) -> int:
        return self.ids.shape[0]

    def part(self, rows: slice) -> TokenSource:
        """Some of the rows, without columns that are all padding."""
        mask = self.mask[rows]
        longest = int(mask.sum(1).max())
        return TokenSource(self.ids[rows, :longest], mask[:, :longest])

    def repeat(self, times: int) -> TokenSource:
        return TokenSource(self.ids.repeat(times, 1), self.mask.repeat(times, 1))

    def to(self, device: torch.device) -> TokenSource:
        """The same source on another device."""
        return TokenSource(self.ids.to(device), self.mask.to(device))

    def key(self, row: int) -> Hashable:
        """The ids of a row, without padding."""
        return tuple(self.ids[row][self.mask[row]].tolist())


@dataclass(frozen=True)
class Vocabularies:
    """Sizes of the vocabularies, and the ids of padding, begin, end and unknown pieces."""

    src_size: int
    tgt_size: int
    pad_id: int = 0
    bos_id: int = 1
    eos_id: int = 2
    unk_id: int = 3
    num_characters: int = 0
    """For sources of words (`heed.nn.word_source`): ids of characters; 0 for other sources."""
    num_marks: int = 0
    """Likewise: kinds of marks, numbered from 1."""
    num_singletons: int = 0
    """Likewise: words that occur once in training; they are the last ids of the source."""

    def require_equal_sizes(self) -> None:
        """Raises UsageError unless source and target can share one embedding."""
        if self.src_size != self.tgt_size:
            raise UsageError(
                'model.tie = "all" shares one embedding between source and target, but their vocabularies differ '
                f"({self.src_size:,} and {self.tgt_size:,} pieces). "
                'Set tokenizer.joint = true or model.tie = "target".'
            )


Recorder = Callable[[Tensor], None]
"""Records the weights `[B, H, T, S]` of one attention for the tokens of one call."""


@dataclass
class Trace:
    """Collects attention weights, which are recorded only on request.

    `weights[name]` is a list of tensors `[B, H, T, S]`, whose T add up to the tokens of all calls of `advance`.
    """

    weights: dict[str, list[Tensor]] = field(default_factory=dict)

    def record(self, name: str, weights: Float[Tensor, "B H T S"]) -> None:
        """Append the weights of one attention for the tokens of this call."""
        self.weights.setdefault(name, []).append(weights.detach())


def recorder_of(trace: Trace | None, name: str) -> Recorder | None:
    """Recorder of the weights of one attention in the trace; None without a trace."""
    return None if trace is None else partial(trace.record, name)


class State(Protocol):
    """The state that a model carries from token to token, as a value. Rows may have different lengths.

    A frozen dataclass of tensors, integers, tuples of them, further such dataclasses, and `DropoutKeys`, so that
    any state can be saved in a checkpoint and continued with new dropout keys (`heed.nn.state_io`).

    `advance` consumes the given state: use the one that it returns.
    """

    def select(self, rows: Int[Tensor, " R"]) -> Self:
        """The given rows in the given order: reorder, repeat, drop (beams, n-best, finished rows)."""
        ...

    def join(self, other: Self) -> Self:
        """These rows, then the rows of `other`, which may have other lengths."""
        ...

    def detach(self) -> Self:
        """The same values, cut off from the graph (truncated back-propagation)."""
        ...


@dataclass(frozen=True)
class Smoothing:
    """Label smoothing: a target distribution that keeps `1 - epsilon` on the truth (see `heed.nn.heads`)."""

    epsilon: float = 0.0
    kind: str = "uniform"


class Head(Protocol):
    """Maps features to distributions over the vocabulary."""

    def log_probs(self, features: Tensor, subset: Int[Tensor, " N"] | None = None) -> Float[Tensor, "... N"]:
        """Log-probabilities of the whole vocabulary, or of `subset` normalised over the subset."""
        ...

    def log_prob(self, features: Tensor, ids: Int[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Log-probability of one given token for each feature."""
        ...

    def loss(
        self, features: Tensor, tgt_out: Int[Tensor, "..."], mask: Bool[Tensor, "..."], smoothing: Smoothing
    ) -> tuple[Tensor, Tensor]:
        """Sums over the real tokens: the smoothed loss (differentiable), and the plain -log p."""
        ...


class PairedHead(Head, Protocol):
    """A head that can compare two passes over the same targets, as R-Drop needs."""

    def paired_loss(
        self, features: Tensor, tgt_out: Int[Tensor, "..."], mask: Bool[Tensor, "..."], smoothing: Smoothing,
        alpha: float,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """As `loss`, from the features of a first pass, followed by those of a second one (see `heed.nn.heads`)."""
        ...


class Autoregressive(Protocol):
    """A model of P(w_t | w_<t, source)."""

    count_based: ClassVar[bool]
    """Whether it is estimated from counts; then it has no cache and no limit on the length of a text."""
    head: Head

    def start(
        self,
        source: Source | None,
        rows_per_source: int = 1,
        reserve: int | None = None,
        dropout_keys: DropoutKeys | None = None,
    ) -> State:
        """The state before the first token.

        `rows_per_source` rows share one copy of what was computed from each source; without a source it is
        the number of rows. `reserve`: the maximum number of tokens that will follow, so that the state may preallocate
        memory and be written in place (without gradients). `dropout_keys`: for training; None means no dropout.
        """
        ...

    def advance(self, ids: Int[Tensor, "B T"], state: State, trace: Trace | None = None) -> tuple[Tensor, State]:
        """Read T tokens for each row; returns features `[B, T, D]` of the next token after each."""
        ...
