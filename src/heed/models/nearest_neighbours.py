"""Nearest-neighbour machine translation: a translator that looks up the next token in related translations.

A store has keys, which are the features of the translator at the positions of known translations, and values, which are
the tokens that follow there. Where the translator is in nearly the same state, the values of the k nearest keys take a
part λ of the probability:

    p = (1 - λ) p_model + λ Σ_j w_j [token = value_j],   w = softmax(-d / τ),   λ = sigmoid(b - d_1 / s + a · e_1),

with the squared distances d_1 ≤ d_2 ≤ ... ≤ d_k, and evidence e_1 for the source of the nearest key: how much it has in
common with the source, and how much the source is like those of known translations. That is kNN-MT (Khandelwal et al.
2021, equations 2 and 3), with a small store for each source as in SK-MT (Dai et al. 2023). Their λ = max(0, 1 - d_1 /
τ) falls with the distance too, but the logistic one predicts better, and without the evidence, translations that have
little to do with a source spoil it (docs/results/low-resource.md). The numbers are fitted to translations (`fit`). Keys
are the last features, and not those before the last feed-forward layer, so that any translator can be used.
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
    evidence: Float[Tensor, "N 2"]
    """For each key, how similar its source is, from 0 to 1, and the log-ratio of the domain (`heed.memory.domain`)."""


Stores = Callable[[Sequence[Hashable]], Sequence[Store]]
"""The stores of sources with these keys (`Source.key`)."""
NEIGHBOURS = 16
"""k."""
_FAR = 1e30
"""The squared distance of what is not in a store."""
MAX_DISTANCES = 8 << 20
"""Distances that are in memory at once: a whole text with a large store would need gigabytes."""
_MAX_LOG = 14.0
"""The scale and the temperature are at most so many e-folds from the median distance: nothing overflows in float32."""
USUAL = (-0.5, -1.3, -1.8, 1.5, 0.8)
"""b, ln s, ln τ and a, with distances in units of their median: about what fits to larger memories agree on."""


class Interpolation(NamedTuple):
    """How far the neighbours are trusted."""

    bias: float
    """b: the log-odds of λ at distance 0 without evidence."""
    scale: float
    """s: the squared distance at which these have fallen by one."""
    temperature: float
    """τ, also a squared distance: a small one leaves only the nearest neighbour."""
    similarity: float
    """The first number of a."""
    domain: float
    """The second number of a."""


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
        values = pad_sequence([torch.cat((s.values[:, None], s.evidence), dim=-1) for s in stores], batch_first=True)
        sizes = torch.tensor([len(store.values) for store in stores], device=keys.device)
        mask = torch.arange(keys.shape[1], device=keys.device) < sizes[:, None]
        store = Memory(((keys[:, None], values[:, None].float()),), mask, rows_per_source)
        return NeighbourState(self._translator.start(source, rows_per_source, reserve, dropout_keys), store)

    def advance(
        self, ids: Int[Tensor, "B T"], state: NeighbourState, trace: Trace | None = None
    ) -> tuple[Float[Tensor, "B T D"], NeighbourState]:
        """The features of the model, then those of `Found`."""
        features, after = self._translator.advance(ids, state.state, trace)
        features = features.float()
        return torch.cat((features, *_nearest(features, state.store)), dim=-1), NeighbourState(after, state.store)


class Found(NamedTuple):
    """What is looked up at each position, the nearest key first."""

    distances: Float[Tensor, "... k"]
    """Squared distances of the nearest keys."""
    values: Float[Tensor, "... k"]
    """Their values."""
    evidence: Float[Tensor, "... 2"]
    """The evidence for the nearest key."""


def divided(features: Float[Tensor, "... D"]) -> tuple[Tensor, Found]:
    """The features of the model, and what it has looked up."""
    own, *found = features.tensor_split((-2 * NEIGHBOURS - 2, -NEIGHBOURS - 2, -2), dim=-1)
    return own, Found(*found)


def _nearest(features: Float[Tensor, "B T D"], store: Memory) -> Found:
    """The keys of its source that are nearest to each position."""
    keys, values = (each[:, 0] for each in store.layers[0])
    queries = features.reshape(len(keys), -1, features.shape[-1])  # [S, W·T, D]
    many = max(1, MAX_DISTANCES // max(1, keys.shape[0] * keys.shape[1]))
    parts = [_nearest_keys(part, keys, values, store.mask) for part in torch.split(queries, many, dim=1)]
    found = (torch.cat(each, dim=1) for each in zip(*parts, strict=True))
    return Found(*(each.reshape(*features.shape[:2], -1) for each in found))


def _nearest_keys(
    queries: Float[Tensor, "S Q D"], keys: Float[Tensor, "S N D"], values: Float[Tensor, "S N 3"],
    mask: Bool[Tensor, "S N"],
) -> Found:  # fmt: skip
    """The nearest keys of `[S, Q]` queries; `values` are tokens and evidence."""
    squares = (queries * queries).sum(-1, keepdim=True) + (keys * keys).sum(-1)[:, None]
    distances = torch.baddbmm(squares, queries, keys.mT, alpha=-2).clamp(min=0)
    distances = distances.masked_fill(~mask[:, None], _FAR)
    if missing := max(0, NEIGHBOURS - keys.shape[1]):
        distances, values = F.pad(distances, (0, missing), value=_FAR), F.pad(values, (0, 0, 0, missing))
    nearest, places = distances.topk(NEIGHBOURS, dim=-1, largest=False)
    tokens = values[:, None, :, 0].expand(-1, queries.shape[1], -1).gather(-1, places)
    evidence = values[:, :, 1:].gather(1, places[..., :1].expand(-1, -1, 2))
    return Found(nearest, tokens, evidence)


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
        own, found = divided(features)
        log_rest, log_parts = _log_parts(found.distances, found.evidence, self.interpolation)
        log_probs = self.head.log_probs(own.to(self.dtype)) + log_rest
        values = found.values.long()
        is_same = values[..., :, None] == values[..., None, :]
        of_value = log_parts[..., None, :].masked_fill(~is_same, -math.inf).logsumexp(dim=-1)
        log_probs = log_probs.scatter(-1, values, torch.logaddexp(log_probs.gather(-1, values), of_value))
        return log_probs if subset is None else log_probs[..., subset].log_softmax(dim=-1)

    def log_prob(self, features: Float[Tensor, "... D"], ids: Int[Tensor, "..."]) -> Float[Tensor, "..."]:
        return interpolated(looked_up(self.head, features, ids, self.dtype), self.interpolation)

    def loss(
        self, features: Float[Tensor, "B T D"], tgt_out: Int[Tensor, "B T"], mask: Bool[Tensor, "B T"],
        smoothing: Smoothing,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """Sum of -log p over the real tokens, twice: nothing is trained, so nothing is smoothed."""
        nll_sum = -self.log_prob(features, tgt_out)[mask].sum()
        return nll_sum, nll_sum.detach()


def _log_parts(
    distances: Float[Tensor, "... k"], evidence: Float[Tensor, "... 2"], by: Interpolation
) -> tuple[Tensor, Tensor]:
    """log (1 - λ) `[..., 1]` and log λ w_j `[..., k]`."""
    log_odds = (
        by.bias - distances[..., :1] / by.scale + by.similarity * evidence[..., :1] + by.domain * evidence[..., 1:]
    )
    weights = ((distances[..., :1] - distances) / by.temperature).log_softmax(dim=-1)  # finite without any neighbour
    return F.logsigmoid(-log_odds), F.logsigmoid(log_odds) + weights


class Tokens(NamedTuple):
    """Known tokens, looked up."""

    log_prob: Float[Tensor, "..."]
    """By the model alone."""
    distances: Float[Tensor, "... k"]
    evidence: Float[Tensor, "... 2"]
    is_value: Bool[Tensor, "... k"]
    """Which of the nearest keys have this token as their value."""


def looked_up(head: Head, features: Float[Tensor, "... D"], ids: Int[Tensor, "..."], dtype: torch.dtype) -> Tokens:
    """The tokens with these ids, from the features of `NearestNeighbours`; `head` and `dtype` are its model's."""
    own, found = divided(features)
    is_value = found.values.long() == ids[..., None]
    return Tokens(head.log_prob(own.to(dtype), ids), found.distances, found.evidence, is_value)


def interpolated(tokens: Tokens, by: Interpolation) -> Float[Tensor, "..."]:
    """log p of known tokens."""
    log_rest, log_parts = _log_parts(tokens.distances, tokens.evidence, by)
    found = log_parts.masked_fill(~tokens.is_value, -math.inf)
    return torch.cat((tokens.log_prob[..., None] + log_rest, found), dim=-1).logsumexp(dim=-1)


def fit(parts: Sequence[tuple[Tokens, float]]) -> Interpolation:
    """The interpolation with the highest probability given known tokens, by L-BFGS.

    `parts`: some tokens, and how many times each of them counts. Before any token is known, the numbers of `USUAL` are
    normally distributed around these, with a deviation of 1: so a few tokens cannot make it certain.
    """
    near = torch.cat([torch.empty(0), *(tokens.distances.flatten() for tokens, _ in parts)])
    near = near[near < _FAR]
    typical = max(1e-6, float(near.median())) if len(near) else 1.0
    with torch.inference_mode(False), torch.enable_grad():
        known = [(_in_units(typical, tokens), times) for tokens, times in parts]
        number = sum(times * len(tokens.log_prob) for tokens, times in known)
        usual = torch.tensor(USUAL, dtype=torch.float64)
        numbers = usual.clone().requires_grad_()
        optimizer: Any = torch.optim.LBFGS([numbers], max_iter=50, line_search_fn="strong_wolfe")

        def closure() -> Tensor:
            optimizer.zero_grad()
            scale, temperature = numbers[1:3].clamp(-_MAX_LOG, _MAX_LOG).exp()
            by: Any = (numbers[0], scale, temperature, numbers[3], numbers[4])
            loss: Any = (numbers - usual).square().sum() / 2
            for tokens, times in known:
                loss = loss - times * interpolated(tokens, Interpolation(*by)).sum()
            loss = loss / max(1.0, number)
            loss.backward()
            return cast(Tensor, loss)

        optimizer.step(closure)
        bias, *logs, similarity, domain = numbers.tolist()
    scale, temperature = (typical * math.exp(min(max(each, -_MAX_LOG), _MAX_LOG)) for each in logs)
    return Interpolation(bias, scale, temperature, similarity, domain)


def _in_units(distance: float, tokens: Tokens) -> Tokens:
    """The tokens in float64, with distances in units of this one."""
    log_prob, distances, evidence = (each.double() for each in tokens[:3])
    return Tokens(log_prob, distances / distance, evidence, tokens.is_value.clone())
