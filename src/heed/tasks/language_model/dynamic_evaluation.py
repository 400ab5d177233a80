"""Dynamic evaluation and continuous cache: scoring a text with a language model that adapts to it.

In dynamic evaluation (Mikolov et al. 2010; Krause, Kahembwe, Murray & Renals 2018), each segment is scored first; then
the weights take a gradient step on it and decay towards the trained ones. Kakade's notes: θ ← θ - η ∇ + λ (θ_g - θ).
Krause et al. give each weight its own rate, from its gradients on the training text. A continuous cache raises the
probability of recent words. Both work with every model that is trained by gradients, together or alone. Choose η and λ
on validation text.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Literal

import numpy as np
import torch
from jaxtyping import Float, Int
from pydantic import Field
from torch import Tensor, nn

from heed.core.config import Config
from heed.core.errors import UsageError
from heed.data.batch import Batch
from heed.data.text_stream import StreamLoader, TextStream
from heed.decoding.scoring import LogProbs
from heed.nn.contract import Autoregressive, State

STATISTICS_STREAMS, STATISTICS_BATCHES = 100, 100
"""Streams per batch and batches for the mean square of the gradient. Krause et al. read the whole training text; heed
reads 200,000 tokens (measured in docs/results/language-models.md)."""
STEP = 1.0
"""Default of η ‖∇‖², since the size of gradients depends on the model: a Transformer's are four times an LSTM's."""
CACHE_SEGMENT = 256
"""Tokens per segment if the weights do not change."""


class DynamicOptions(Config):
    """Options of dynamic evaluation and the continuous cache."""

    rule: Literal["none", "sgd", "rms"] = "none"
    """Update of the weights: none, as in the notes, or with a rate for each weight (Krause et al. 2018)."""
    lr: float | None = Field(default=None, gt=0)
    """η; None: the default of the rule."""
    decay: float | None = Field(default=None, ge=0, le=1)
    """λ, the decay of the weights towards the trained ones; None: the default of the rule."""
    epsilon: float = Field(default=2e-5, gt=0)
    """With "rms": added to the root mean square of the gradient of each weight."""
    segment: int = Field(default=20, ge=1)
    """Tokens between updates. Krause et al. use 5, which takes four times as long."""
    cache_share: float = Field(default=0.0, ge=0, lt=1)
    """λ of the continuous cache; 0: no cache."""
    cache_flatness: float = Field(default=1.0, ge=0)
    """θ of the cache."""
    cache_size: int = Field(default=500, ge=1)
    """Words in the cache."""


class Rule(ABC):
    """An update of the weights after a segment."""

    signature: str
    """η and λ, as part of a score's signature."""

    def __init__(self, weights: Sequence[nn.Parameter]) -> None:
        self.weights = weights
        self.trained = [weight.detach().clone() for weight in weights]

    @abstractmethod
    def __call__(self) -> None:
        """Apply the gradients and clear them."""


class SgdRule(Rule):
    """θ ← θ - η ∇ + λ (θ_g - θ) (Kakade's notes); λ is 0.001 by default.

    The default of η is STEP divided by the mean of ‖∇‖² over all segments so far.
    """

    def __init__(self, weights: Sequence[nn.Parameter], lr: float | None = None, decay: float | None = None) -> None:
        super().__init__(weights)
        self.lr, self.decay = lr, 0.001 if decay is None else decay
        self.signature = f"lr:{f'{STEP:g}/|g|2' if lr is None else f'{lr:g}'}|decay:{self.decay:g}"
        self._squares, self._segments = 0.0, 0

    @torch.no_grad()
    def __call__(self) -> None:
        lr = self._default_rate() if self.lr is None else self.lr
        for weight, trained in zip(self.weights, self.trained, strict=True):
            weight.lerp_(trained, self.decay)
            if weight.grad is not None:
                weight.sub_(weight.grad, alpha=lr)
                weight.grad = None

    def _default_rate(self) -> float:
        self._squares += sum(float(weight.grad.norm()) ** 2 for weight in self.weights if weight.grad is not None)
        self._segments += 1
        return STEP * self._segments / self._squares if self._squares else 0.0


class RmsRule(Rule):
    """θ ← θ - η ∇ / (RMS + ε) + λ R ⊙ (θ_g - θ), R = RMS / mean(RMS), λ R at most 1 (Krause et al. 2018).

    RMS is the root mean square of the gradient of each weight over the training text, its mean is taken over the means
    of all tensors. η is 1e-4 and λ 0.02 by default.
    """

    def __init__(
        self, weights: Sequence[nn.Parameter], rms: Sequence[Tensor], epsilon: float,
        lr: float | None = None, decay: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__(weights)
        lr, decay = 1e-4 if lr is None else lr, 0.02 if decay is None else decay
        self.signature = f"lr:{lr:g}|decay:{decay:g}"
        mean = sum(float(tensor.mean()) for tensor in rms) / len(rms)
        self.rates = [lr / (tensor + epsilon) for tensor in rms]
        self.pulls = [(tensor * (decay / mean)).clamp(max=1.0) for tensor in rms]

    @torch.no_grad()
    def __call__(self) -> None:
        for weight, trained, rate, pull in zip(self.weights, self.trained, self.rates, self.pulls, strict=True):
            weight.lerp_(trained, pull)
            if weight.grad is not None:
                weight.addcmul_(weight.grad, rate, value=-1.0)
                weight.grad = None


def gradient_rms(model: nn.Module, text: TextStream, segment: int, device: torch.device) -> list[Tensor]:
    """Root mean square over the training text of the gradient of a batch's mean loss, for each weight."""
    streams = StreamLoader(text, num_streams=min(STATISTICS_STREAMS, len(text)), context=segment, seed=0)
    number = min(STATISTICS_BATCHES, streams.num_batches(0))
    squares = [torch.zeros_like(weight) for weight in model.parameters()]
    state: State | None = None
    for _, batch in islice(streams.batches_from(), number):
        batch = batch.to(device)
        _, log_probs, state = _read(model, batch, state)
        (-log_probs[batch.tgt_mask].mean()).backward()  # type: ignore[no-untyped-call]
        for square, weight in zip(squares, model.parameters(), strict=True):
            if weight.grad is not None:
                square.addcmul_(weight.grad, weight.grad)
                weight.grad = None
    return [(square / number).sqrt() for square in squares]


def _read(model: nn.Module, batch: Batch, before: State | None) -> tuple[Tensor, Tensor, State]:
    """Features and log P of each target after the state `before`, and the state after them."""
    generator: Autoregressive = model  # type: ignore[assignment]
    state = before if before is not None else generator.start(None, len(batch.rows))
    features, after = generator.advance(batch.tgt_in, state)
    return features, generator.head.log_prob(features, batch.tgt_out), after.detach()


class ContinuousCache:
    """The last `size` words, with the features that each was predicted from (Grave, Joulin & Usunier 2017).

    The probability of a word grows with the similarity of the current features to those:
    p_cache(w) ∝ Σ_i 1{w_i = w} exp(θ h · h_i) and p = (1 - λ) p_model + λ p_cache.
    """

    def __init__(self, size: int, flatness: float, share: float) -> None:
        """`flatness` is θ (0 weights all words equally), `share` is λ."""
        self.size, self.flatness, self.share = size, flatness, share
        self._features: Float[Tensor, "N D"] | None = None
        self._words = torch.zeros(0, dtype=torch.long)

    def mixed(
        self, log_probs: Float[Tensor, " T"], features: Float[Tensor, "T D"], words: Int[Tensor, " T"]
    ) -> Float[Tensor, " T"]:
        """Mix log P (nats) of the next words with the cache, then add the words to it. An empty cache has no effect."""
        features = features.float()
        kept = features if self._features is None else torch.cat((self._features, features))
        kept_words = torch.cat((self._words.to(words.device), words))
        num_before, here = len(kept) - len(words), torch.arange(len(words), device=words.device)
        position, end = torch.arange(len(kept), device=words.device), num_before + here[:, None]
        seen = (position < end) & (position >= end - self.size)  # [T, N + T]
        weights = (self.flatness * features @ kept.t()).masked_fill(~seen, -math.inf).softmax(dim=-1)
        share = weights.masked_fill(kept_words != words[:, None], 0.0).sum(-1).clamp(min=0.0)
        mixed = torch.logaddexp(log_probs + math.log1p(-self.share), (self.share * share).log())
        self._features, self._words = kept[-self.size :], kept_words[-self.size :]
        return torch.where(seen.any(-1), mixed, log_probs)


class DynamicReader:
    """Reader that scores a text as one stream with a copy of the model, which adapts to it."""

    def __init__(
        self, model: nn.Module, device: torch.device, options: DynamicOptions,
        training_text: Callable[[], TextStream],
    ) -> None:  # fmt: skip
        """`training_text` is called only if the rule needs it. `model` is not changed; it must not be packed.

        Raises UsageError for a count-based model.
        """
        if model.count_based:
            raise UsageError("--dynamic requires a model that is trained by gradients, and this one is count-based.")
        self.options, self.device = options, device
        self.model = copy.deepcopy(model).requires_grad_(options.rule != "none")
        self.rule = self._rule(training_text)
        self.cache = ContinuousCache(options.cache_size, options.cache_flatness, options.cache_share)
        self._state: State | None = None
        self._before = TextStream.before

    def _rule(self, training_text: Callable[[], TextStream]) -> Rule | None:
        options, weights = self.options, list(self.model.parameters())
        if options.rule == "sgd":
            return SgdRule(weights, options.lr, options.decay)
        if options.rule == "rms":
            rms = gradient_rms(self.model, training_text(), options.segment, self.device)
            return RmsRule(weights, rms, options.epsilon, options.lr, options.decay)
        return None

    @property
    def signature(self) -> str:
        """The method, as part of a score's signature."""
        options = self.options
        signature = "context:stream"
        if self.rule is not None:
            signature += f"|dynamic:{options.rule}|{self.rule.signature}|segment:{options.segment}"
        if options.cache_share:
            signature += (
                f"|cache:{options.cache_size}|share:{options.cache_share:g}|flatness:{options.cache_flatness:g}"
            )
        return signature

    def read(self, text: TextStream) -> LogProbs:
        """log P (nats) of each token of the next part of the text. Shape: [T]."""
        text = TextStream(text.ids, text.offsets, self._before)
        self._before = int(text.ids[-1]) if len(text) else self._before
        log_probs = np.empty(len(text), dtype=np.float64)
        step = self.options.segment if self.rule is not None else CACHE_SEGMENT
        for begin in range(0, len(text), step):
            end = min(begin + step, len(text))
            batch = text.batch(np.array([begin]), np.array([end])).to(self.device)
            with torch.set_grad_enabled(self.rule is not None):
                log_probs[begin:end] = self._segment(batch)
        return log_probs

    def _segment(self, batch: Batch) -> LogProbs:
        """Score a segment, then adapt to it."""
        features, log_probs, self._state = _read(self.model, batch, self._state)
        scored = log_probs[0].detach()
        if self.options.cache_share:
            scored = self.cache.mixed(scored, features.detach()[0], batch.tgt_out[0])
        if self.rule is not None:
            (-log_probs[0].mean()).backward()  # type: ignore[no-untyped-call]
            self.rule()
        return scored.double().cpu().numpy()
