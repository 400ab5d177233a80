"""Ensembles of models, and shallow fusion of a translation model with a language model.

Both combine trained members and keep the contract, so search, scores and traces work with them as with any model. The
features of the members are concatenated, and each member's own head reads its part.

- `Ensemble`: p = 1/M Σ_m p_m, the mean of probabilities, not of logits.
- `ShallowFusion` (Gülçehre et al. 2015, equation 1): log p + λ log p_lm. It is a score, not a distribution: it is
  not normalised, so law 5 of the contract does not hold for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from typing import cast

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heed.nn.contract import Autoregressive, Smoothing, Source, State, TokenSource, Trace
from heed.nn.dropout_keys import DropoutKeys
from heed.nn.images import PATCH, ImageSource
from heed.nn.states import RowState


@dataclass(frozen=True)
class EnsembleState(RowState):
    """The states of the members."""

    states: tuple[State, ...]


class _Part:
    """Columns and type of the features of one member; those of a count-based model are integers."""

    def __init__(self, member: Autoregressive, begin: int, features: Tensor) -> None:
        self.head = member.head
        self.columns = slice(begin, begin + features.shape[-1])
        self.dtype = features.dtype

    def of(self, features: Tensor) -> Tensor:
        """The features as the member returned them."""
        return features[..., self.columns].to(self.dtype)


class _JointHead:
    """Head that combines the log-probabilities of the members' heads into one by `combine`."""

    def __init__(self, parts: Sequence[_Part], combine: Callable[[Sequence[Tensor]], Tensor]) -> None:
        self.parts = parts
        self.combine = combine

    def log_probs(
        self, features: Float[Tensor, "... D"], subset: Int[Tensor, " N"] | None = None
    ) -> Float[Tensor, "... N"]:
        combined = self.combine([part.head.log_probs(part.of(features)) for part in self.parts])
        return combined if subset is None else combined[..., subset].log_softmax(dim=-1)

    def log_prob(self, features: Float[Tensor, "... D"], ids: Int[Tensor, "..."]) -> Float[Tensor, "..."]:
        return self.combine([part.head.log_prob(part.of(features), ids) for part in self.parts])

    def loss(
        self, features: Float[Tensor, "B T D"], tgt_out: Int[Tensor, "B T"], mask: Bool[Tensor, "B T"],
        smoothing: Smoothing,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """Sum of -log p over the real tokens, twice: members are trained separately, so nothing is smoothed."""
        nll_sum = -self.log_prob(features, tgt_out)[mask].sum()
        return nll_sum, nll_sum.detach()


def _mean(log_probs: Sequence[Tensor]) -> Tensor:
    """log (1/M Σ_m p_m)."""
    return torch.stack(list(log_probs)).logsumexp(dim=0) - math.log(len(log_probs))


def _fused(log_probs: Sequence[Tensor], weight: float) -> Tensor:
    """log p + λ log p_lm; with a weight of 0, even a token that the language model forbids keeps its score."""
    translation, language_model = log_probs
    return translation + (weight * language_model).nan_to_num(nan=0.0, neginf=-math.inf)


class _Joint(nn.Module):
    """Base of models made of members. `conditioned`: whether each member reads the source."""

    count_based = False

    def __init__(self, members: Sequence[Autoregressive], conditioned: Sequence[bool]) -> None:
        super().__init__()
        self.members = nn.ModuleList(cast(Sequence[nn.Module], members))
        self.conditioned = conditioned
        self.parts = list(self._parts())
        whole_numbers = any(not part.dtype.is_floating_point for part in self.parts)  # contexts of a count-based model
        self._dtype = torch.float64 if whole_numbers else torch.float32

    def _each(self) -> Iterator[tuple[Autoregressive, bool]]:
        """The members, and whether each reads the source."""
        return zip(cast(Iterable[Autoregressive], self.members), self.conditioned, strict=True)

    @torch.no_grad()
    def _parts(self) -> Iterator[_Part]:
        """Columns and types of the members' features, from one `advance` of each member."""
        begin = 0
        device = next((parameter.device for parameter in self.parameters()), torch.device("cpu"))
        one = torch.ones((1, 1), dtype=torch.long, device=device)
        tokens = TokenSource(one, one.bool())
        images = ImageSource(torch.zeros((1, 3, PATCH, PATCH), dtype=torch.uint8, device=device))
        for member, conditioned in self._each():
            own_source = images if getattr(member, "source", "tokens") == "images" else tokens
            source = own_source if conditioned else None
            features, _ = member.advance(one, member.start(source))
            yield _Part(member, begin, features)
            begin += features.shape[-1]

    def start(
        self,
        source: Source | None,
        rows_per_source: int = 1,
        reserve: int | None = None,
        dropout_keys: DropoutKeys | None = None,
    ) -> EnsembleState:
        """The states of all members; a member that reads no source gets as many rows as the others."""
        num_rows = rows_per_source * (1 if source is None else len(source))
        row_keys = dropout_keys and dropout_keys.repeat(rows_per_source)
        starts = [
            member.start(source, rows_per_source, reserve, dropout_keys)
            if conditioned
            else member.start(None, num_rows, reserve, row_keys)
            for member, conditioned in self._each()
        ]
        return EnsembleState(tuple(starts))

    def advance(
        self, ids: Int[Tensor, "B T"], state: EnsembleState, trace: Trace | None = None
    ) -> tuple[Float[Tensor, "B T D"], EnsembleState]:
        """The concatenated features of all members, in a type that represents each exactly."""
        traces = [Trace() for _ in state.states] if trace is not None else []
        advanced = [
            member.advance(ids, member_state, member_trace)
            for (member, _), member_state, member_trace in zip_longest(self._each(), state.states, traces)
        ]
        if trace is not None:
            _merge(trace, traces)
        features = torch.cat([features.to(self._dtype) for features, _ in advanced], dim=-1)
        return features, EnsembleState(tuple(state for _, state in advanced))


def _merge(trace: Trace, member_traces: Sequence[Trace]) -> None:
    """Record the traces of the members, from the lowest blocks of all members to the highest."""
    for names in zip_longest(*(member_trace.weights for member_trace in member_traces)):
        for number, (name, member_trace) in enumerate(zip(names, member_traces, strict=True)):
            for weights in member_trace.weights[name] if name is not None else ():
                trace.record(f"{number}.{name}", weights)


class Ensemble(_Joint):
    """P(w_t | w_<t, source) as the mean over several models, which must share their vocabularies."""

    def __init__(self, members: Sequence[Autoregressive]) -> None:
        super().__init__(members, [True] * len(members))
        self.head = _JointHead(self.parts, _mean)


class ShallowFusion(_Joint):
    """log P(w_t | w_<t, source) + λ log P_lm(w_t | w_<t). Both must share the target vocabulary."""

    def __init__(self, model: Autoregressive, language_model: Autoregressive, weight: float) -> None:
        super().__init__([model, language_model], [True, False])
        self.head = _JointHead(self.parts, partial(_fused, weight=weight))
