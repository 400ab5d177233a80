"""How do features become a distribution over the vocabulary, and how is its loss taken cheaply?

The loss never keeps a `[tokens, V]` tensor: logits are made, turned into gradients and dropped chunk by
chunk, and only for real tokens. Label smoothing (Szegedy et al. 2016) has three conventions in the field:

- "uniform": q = (1 - ε) one_hot + ε / V. Vaswani et al.'s and PyTorch's; the default.
- "others": 1 - ε on the truth, ε / (V - 1) on every other token (O'Connor's notes, Sennrich-style figures).
- "no_padding": 1 - ε on the truth, ε / (V - 2) on the others, 0 on padding (the Annotated Transformer).
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heed.nn.contract import Smoothing

CHUNK_ELEMENTS = 8 << 20


def smoothing_weights(smoothing: Smoothing, vocab_size: int) -> tuple[float, float, float]:
    """(extra on the truth, share of every token, share of padding): the target distribution q."""
    epsilon = smoothing.epsilon
    if smoothing.kind == "uniform":
        return 1 - epsilon, epsilon / vocab_size, epsilon / vocab_size
    if smoothing.kind == "others":
        share = epsilon / (vocab_size - 1)
        return 1 - epsilon - share, share, share
    if smoothing.kind == "no_padding":
        share = epsilon / (vocab_size - 2)
        return 1 - epsilon - share, share, 0.0
    raise ValueError(f"label smoothing is 'uniform', 'others' or 'no_padding', got {smoothing.kind!r}")


class _FusedLoss(torch.autograd.Function):
    """Projection, softmax and cross-entropy in one, with the gradient made on the way.

    With logits z = x Wᵀ + b and a target distribution q = e · one_hot(y) + s (+ a correction at padding), the loss is
    lse(z) - Σ q z and its gradient softmax(z) - q. The parts of q that are the same for all tokens are rank-one,
    so nothing but the softmax itself ever has the size [chunk, V].
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, tgt: Tensor, weights: tuple[float, float, float],
        pad_id: int,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        extra, share, pad_share = weights
        vocab_size = weight.shape[0]
        chunk = max(1, CHUNK_ELEMENTS // vocab_size)
        grad_x = torch.empty_like(x)
        grad_weight = torch.zeros(weight.shape, dtype=torch.float32, device=x.device)
        grad_bias = torch.zeros(vocab_size, dtype=torch.float32, device=x.device) if bias is not None else None
        nll_sum = torch.zeros((), dtype=torch.float64, device=x.device)
        loss_sum = torch.zeros((), dtype=torch.float64, device=x.device)
        weight_sum = weight.sum(0, dtype=torch.float32)
        bias_sum = 0.0 if bias is None else bias.sum(dtype=torch.float32)
        for begin in range(0, x.shape[0], chunk):
            piece, truth = x[begin : begin + chunk], tgt[begin : begin + chunk]
            logits = F.linear(piece, weight, bias)
            probs = logits.softmax(dim=-1)
            true_logit = logits.gather(1, truth[:, None]).squeeze(1).float()
            pad_logit = logits[:, pad_id].float()
            log_norm = _log_norm(logits, true_logit, probs.gather(1, truth[:, None]).squeeze(1).float())
            mean_part = share * (piece.float() @ weight_sum + bias_sum)
            smoothed = log_norm - extra * true_logit - mean_part - (pad_share - share) * pad_logit
            nll_sum += (log_norm - true_logit).sum(dtype=torch.float64)
            loss_sum += smoothed.sum(dtype=torch.float64)
            grad = probs @ weight
            grad -= (share * weight_sum).to(grad.dtype)
            grad.sub_(weight[truth], alpha=extra)
            if pad_share != share:
                grad.sub_(weight[pad_id], alpha=pad_share - share)
            grad_x[begin : begin + chunk] = grad
            grad_weight += probs.t() @ piece
            grad_weight.index_add_(0, truth, piece.float(), alpha=-extra)
            piece_sum = piece.sum(0, dtype=torch.float32)
            grad_weight.sub_(piece_sum, alpha=share)
            if pad_share != share:
                grad_weight[pad_id].sub_(piece_sum, alpha=pad_share - share)
            if grad_bias is not None:
                grad_bias += probs.sum(0, dtype=torch.float32) - share * len(piece)
                grad_bias.index_add_(0, truth, torch.full_like(true_logit, -extra))
                if pad_share != share:
                    grad_bias[pad_id] -= (pad_share - share) * len(piece)
        ctx.save_for_backward(grad_x, grad_weight, grad_bias)
        ctx.dtype = weight.dtype
        return loss_sum.float(), nll_sum.float()

    @staticmethod
    def backward(ctx: Any, grad_loss: Tensor, grad_nll: Tensor) -> Any:
        grad_x, grad_weight, grad_bias = ctx.saved_tensors
        scaled_bias = None if grad_bias is None else (grad_bias * grad_loss).to(ctx.dtype)
        grad_x = grad_x * grad_loss.to(grad_x.dtype)
        return grad_x, (grad_weight * grad_loss).to(ctx.dtype), scaled_bias, None, None, None


def _log_norm(logits: Tensor, true_logit: Tensor, true_prob: Tensor) -> Tensor:
    """log Σ exp(logits) from a softmax already taken: z_y - log p_y, or directly where p_y is too small."""
    log_norm = true_logit - true_prob.log()
    small = true_prob < 1e-20
    if small.any():
        log_norm[small] = logits[small].float().logsumexp(dim=-1)
    return log_norm


class LinearHead(nn.Module):
    """A linear projection and a softmax; its weight may be the embedding's own (Press & Wolf 2017)."""

    def __init__(self, weight: nn.Parameter, pad_id: int, bias: bool = True) -> None:
        super().__init__()
        self.weight = weight  # [V, D]
        self.bias = nn.Parameter(torch.zeros(weight.shape[0])) if bias else None
        self.pad_id = pad_id

    def logits(self, features: Float[Tensor, "... D"]) -> Float[Tensor, "... V"]:
        """Unnormalised scores of the whole vocabulary."""
        return F.linear(features, self.weight, self.bias)

    def log_probs(
        self, features: Float[Tensor, "... D"], subset: Int[Tensor, " N"] | None = None
    ) -> Float[Tensor, "... N"]:
        """Log-probabilities in float32 of the whole vocabulary, or of `subset` normalised over the subset."""
        if subset is None:
            return self.logits(features).float().log_softmax(dim=-1)
        bias = None if self.bias is None else self.bias[subset]
        return F.linear(features, self.weight[subset], bias).float().log_softmax(dim=-1)

    def log_prob(self, features: Float[Tensor, "... D"], ids: Int[Tensor, "..."]) -> Float[Tensor, "..."]:
        """Log-probability of one given token for each feature, computed chunk by chunk."""
        flat, wanted = features.reshape(-1, features.shape[-1]), ids.reshape(-1)
        chunk = max(1, CHUNK_ELEMENTS // self.weight.shape[0])
        pieces = [
            self.log_probs(x).gather(1, y[:, None]).squeeze(1)
            for x, y in zip(torch.split(flat, chunk), torch.split(wanted, chunk), strict=True)
        ]
        return torch.cat(pieces).view(ids.shape)

    def loss(
        self, features: Float[Tensor, "B T D"], tgt_out: Int[Tensor, "B T"], mask: Bool[Tensor, "B T"],
        smoothing: Smoothing,
    ) -> tuple[Tensor, Tensor, int]:  # fmt: skip
        """Sum over the real tokens of the smoothed loss and of -log p (nats), and the number of tokens."""
        real = mask.reshape(-1).nonzero().squeeze(1)
        flat, truth = features.flatten(0, -2)[real], tgt_out.reshape(-1)[real]
        weights = smoothing_weights(smoothing, self.weight.shape[0])
        loss_sum, nll_sum = _FusedLoss.apply(flat, self.weight, self.bias, truth, weights, self.pad_id)  # type: ignore[no-untyped-call]
        return loss_sum, nll_sum.detach(), real.numel()
