"""Nearest-neighbour machine translation: a translator that looks up the next token in related translations.

A store has keys, which are the features of the translator at the positions of known translations, and values, which are
the tokens that follow there. Where the translator is in nearly the same state, the values of the k nearest keys take a
part λ of the probability:

    p = (1 - λ) p_model + λ Σ_j w_j [token = value_j],   w = softmax(-d / τ),   λ = sigmoid(b - d_1 / s),

with the squared distances d_1 ≤ d_2 ≤ ... ≤ d_k. That is kNN-MT (Khandelwal et al. 2021, equations 2 and 3), with a
small store for each source as in SK-MT (Dai et al. 2023). Their λ = max(0, 1 - d_1 / τ) falls with the distance too,
but the logistic one predicts better (docs/results/low-resource.md); its numbers are fitted to translations (`fit`).
Keys are the last features, and not those before the last feed-forward layer, so that any translator can be used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from heed.nn.contract import Autoregressive, Head, Smoothing, Source, State, TokenSource, Trace
from heed.nn.dropout_keys import DropoutKeys
from heed.nn.states import Memory, RowState


class Store(NamedTuple):
    """Keys and values of a source; there may be none."""

    keys: Float[Tensor, "N D"]
    values: Int[Tensor, " N"]


Stores = Callable[[Sequence[Hashable]], Sequence[Store]]
"""The stores of sources with these keys (`Source.key`)."""
NEIGHBOURS = 16
"""k."""
Number = float | Tensor
_FAR = 1e30
"""The squared distance of what is not in a store."""
MAX_DISTANCES = 8 << 20
"""Distances that are in memory at once: a whole text with a large store would need gigabytes."""
_MAX_LOG = 14.0
"""The scale and the temperature are at most so many e-folds from the median distance: nothing overflows in float32."""


class Interpolation(NamedTuple):
    """How far the neighbours are trusted."""

    bias: float
    """b: the log-odds of λ at distance 0."""
    scale: float
    """s: the squared distance at which these have fallen by one."""
    temperature: float
    """τ, also a squared distance: a small one leaves only the nearest neighbour."""


@dataclass(frozen=True)
class NeighbourState(RowState):
    """The state of the model, and the store of each source."""

    state: State
    store: Memory


class NearestNeighbours(nn.Module):
    """A translator whose next tokens are interpolated with those of the nearest known translations."""

    count_based = False

    def __init__(self, model: Autoregressive, stores: Stores, interpolation: Interpolation) -> None:
        super().__init__()
        self.model = cast(nn.Module, model)
        self.stores = stores
        self.head = NeighbourHead(model.head, interpolation, self._feature_type())

    @torch.no_grad()
    def _feature_type(self) -> torch.dtype:
        """The type of the features of the model, from one `advance`."""
        device = next((parameter.device for parameter in self.parameters()), torch.device("cpu"))
        one = torch.ones((1, 1), dtype=torch.long, device=device)
        features, _ = self._translator.advance(one, self._translator.start(TokenSource(one, one.bool())))
        return features.dtype

    @property
    def _translator(self) -> Autoregressive:
        return cast(Autoregressive, self.model)

    def start(
        self,
        source: Source | None,
        rows_per_source: int = 1,
        reserve: int | None = None,
        dropout_keys: DropoutKeys | None = None,
    ) -> NeighbourState:
        """The state of the model, and the store of each source."""
        if source is None:
            raise ValueError("a translation model needs a source")
        stores = self.stores([source.key(row) for row in range(len(source))])
        keys = pad_sequence([store.keys.float() for store in stores], batch_first=True)
        values = pad_sequence([store.values for store in stores], batch_first=True).float()
        sizes = torch.tensor([len(store.values) for store in stores], device=keys.device)
        mask = torch.arange(keys.shape[1], device=keys.device) < sizes[:, None]
        store = Memory(((keys[:, None], values[:, None, :, None]),), mask, rows_per_source)
        return NeighbourState(self._translator.start(source, rows_per_source, reserve, dropout_keys), store)

    def advance(
        self, ids: Int[Tensor, "B T"], state: NeighbourState, trace: Trace | None = None
    ) -> tuple[Float[Tensor, "B T D"], NeighbourState]:
        """The features of the model, then the squared distances and the values of the nearest keys."""
        features, after = self._translator.advance(ids, state.state, trace)
        features = features.float()
        distances, values = _nearest(features, state.store)
        return torch.cat((features, distances, values), dim=-1), NeighbourState(after, state.store)


def _nearest(features: Float[Tensor, "B T D"], store: Memory) -> tuple[Tensor, Tensor]:
    """Squared distances and values `[B, T, k]` of the nearest keys, the nearest first."""
    keys, values = store.layers[0][0][:, 0], store.layers[0][1][:, 0, :, 0]
    queries = features.reshape(len(keys), -1, features.shape[-1])  # [S, W·T, D]
    many = max(1, MAX_DISTANCES // max(1, keys.shape[0] * keys.shape[1]))
    found = [_nearest_keys(part, keys, values, store.mask) for part in torch.split(queries, many, dim=1)]
    distances, values = (torch.cat(each, dim=1) for each in zip(*found, strict=True))
    shape = (*features.shape[:2], NEIGHBOURS)
    return distances.reshape(shape), values.reshape(shape)


def _nearest_keys(
    queries: Float[Tensor, "S Q D"], keys: Float[Tensor, "S N D"], values: Float[Tensor, "S N"],
    mask: Bool[Tensor, "S N"],
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Squared distances and values `[S, Q, k]` of the keys of its source that are nearest to each query."""
    squares = (queries * queries).sum(-1, keepdim=True) + (keys * keys).sum(-1)[:, None]
    distances = torch.baddbmm(squares, queries, keys.mT, alpha=-2).clamp(min=0)
    distances = distances.masked_fill(~mask[:, None], _FAR)
    if missing := max(0, NEIGHBOURS - keys.shape[1]):
        distances, values = F.pad(distances, (0, missing), value=_FAR), F.pad(values, (0, missing))
    nearest, places = distances.topk(NEIGHBOURS, dim=-1, largest=False)
    return nearest, values[:, None].expand(-1, queries.shape[1], -1).gather(-1, places)


class NeighbourHead:
    """Interpolates a head with the values of the nearest keys, which follow its features."""

    def __init__(self, head: Head, interpolation: Interpolation, dtype: torch.dtype) -> None:
        """`dtype`: of the features that the head takes; the others are in float32."""
        self.head = head
        self.interpolation = interpolation
        self.dtype = dtype

    def log_probs(
        self, features: Float[Tensor, "... D"], subset: Int[Tensor, " N"] | None = None
    ) -> Float[Tensor, "... N"]:
        own, distances, values = divided(features)
        log_rest, log_parts = _log_parts(distances, *self.interpolation)
        log_probs = self.head.log_probs(own.to(self.dtype)) + log_rest
        is_same = values[..., :, None] == values[..., None, :]
        of_value = log_parts[..., None, :].masked_fill(~is_same, -math.inf).logsumexp(dim=-1)
        log_probs = log_probs.scatter(-1, values, torch.logaddexp(log_probs.gather(-1, values), of_value))
        return log_probs if subset is None else log_probs[..., subset].log_softmax(dim=-1)

    def log_prob(self, features: Float[Tensor, "... D"], ids: Int[Tensor, "..."]) -> Float[Tensor, "..."]:
        own, distances, values = divided(features)
        log_prob = self.head.log_prob(own.to(self.dtype), ids)
        return interpolated(log_prob, distances, values == ids[..., None], *self.interpolation)

    def loss(
        self, features: Float[Tensor, "B T D"], tgt_out: Int[Tensor, "B T"], mask: Bool[Tensor, "B T"],
        smoothing: Smoothing,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """Sum of -log p over the real tokens, twice: nothing is trained, so nothing is smoothed."""
        nll_sum = -self.log_prob(features, tgt_out)[mask].sum()
        return nll_sum, nll_sum.detach()


def divided(features: Float[Tensor, "... D"]) -> tuple[Tensor, Tensor, Tensor]:
    """The features of the model, the squared distances of the nearest keys, and their values."""
    own, distances, values = features.tensor_split((-2 * NEIGHBOURS, -NEIGHBOURS), dim=-1)
    return own, distances, values.long()


def _log_parts(
    distances: Float[Tensor, "... k"], bias: Number, scale: Number, temperature: Number
) -> tuple[Tensor, Tensor]:
    """log (1 - λ) `[..., 1]` and log λ w_j `[..., k]`."""
    log_odds = bias - distances[..., :1] / scale
    weights = ((distances[..., :1] - distances) / temperature).log_softmax(dim=-1)  # finite without any neighbour
    return F.logsigmoid(-log_odds), F.logsigmoid(log_odds) + weights


def interpolated(
    log_prob: Tensor, distances: Tensor, is_token: Tensor, bias: Number, scale: Number, temperature: Number
) -> Tensor:
    """log p of a token with this log-probability of the model, where `is_token` are the neighbours that agree."""
    log_rest, log_parts = _log_parts(distances, bias, scale, temperature)
    found = log_parts.masked_fill(~is_token, -math.inf)
    return torch.cat((log_prob[..., None] + log_rest, found), dim=-1).logsumexp(dim=-1)


def fit(log_prob: Float[Tensor, " N"], distances: Float[Tensor, "N k"], is_token: Bool[Tensor, "N k"]) -> Interpolation:
    """The interpolation with the highest likelihood of known tokens, by L-BFGS from two temperatures.

    `log_prob`: of each token, by the model alone. `is_token`: which neighbours have this token as their value.
    """
    near = distances[distances < _FAR]
    typical = max(1e-6, float(near.median())) if len(near) else 1.0
    with torch.inference_mode(False), torch.enable_grad():
        log_prob, distances, is_token = log_prob.double(), distances.double() / typical, is_token.clone()

        def nll(numbers: Tensor) -> Tensor:
            bias, (scale, temperature) = numbers[0], numbers[1:].clamp(-_MAX_LOG, _MAX_LOG).exp()
            return -interpolated(log_prob, distances, is_token, bias, scale, temperature).mean()

        def fitted(start: float) -> list[float]:
            numbers = torch.tensor([0.0, start, start], dtype=torch.float64, requires_grad=True)
            optimizer: Any = torch.optim.LBFGS([numbers], max_iter=50, line_search_fn="strong_wolfe")

            def closure() -> Tensor:
                optimizer.zero_grad()
                loss: Any = nll(numbers)
                loss.backward()
                return cast(Tensor, loss)

            optimizer.step(closure)
            return numbers.tolist()

        best = min((fitted(start) for start in (-1.5, 0.0)), key=lambda numbers: float(nll(torch.tensor(numbers))))
    scale, temperature = (typical * math.exp(min(max(number, -_MAX_LOG), _MAX_LOG)) for number in best[1:])
    return Interpolation(best[0], scale, temperature)
