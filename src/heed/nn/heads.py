"""Linear output head with a fused loss, and the penalty of activation regularisation.

The loss never stores a `[tokens, V]` tensor: logits are computed, turned into gradients and freed chunk by chunk. On a
CPU they are computed only for real tokens; on a GPU for padding, too, as selecting tokens would have to wait for the
GPU. Label smoothing (Szegedy et al. 2016) has three conventions:

- "uniform": q = (1 - ε) one_hot + ε / V, as in Vaswani et al. and PyTorch; the default.
- "others": 1 - ε on the truth, ε / (V - 1) on every other token (O'Connor's notes, Sennrich-style figures).
- "no_padding": 1 - ε on the truth, ε / (V - 2) on the others, 0 on padding (the Annotated Transformer).

R-Drop (Liang et al. 2021) makes two passes over the same targets with different dropout, and adds the divergence of
their distributions to the losses: `paired_loss`.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from heed.nn.affine import affine, filled
from heed.nn.contract import Head, Smoothing

CHUNK_ELEMENTS = 8 << 20
GPU_CHUNK_ELEMENTS = 64 << 20
ROWS_SUMMED = 128
"""Rows whose sums are rounded to bfloat16, before they are added up in float32."""
CACHED_ELEMENTS = 1 << 17
"""Elements that remain in a core's cache over several consecutive steps."""


def smoothing_weights(smoothing: Smoothing, vocab_size: int) -> tuple[float, float, float]:
    """The target distribution q: (extra on the truth, share of every token, share of padding)."""
    epsilon = smoothing.epsilon
    if not epsilon:
        return 1.0, 0.0, 0.0
    if smoothing.kind == "uniform":
        return 1 - epsilon, epsilon / vocab_size, epsilon / vocab_size
    if smoothing.kind == "others":
        share = epsilon / (vocab_size - 1)
        return 1 - epsilon - share, share, share
    if smoothing.kind == "no_padding":
        share = epsilon / (vocab_size - 2)
        return 1 - epsilon - share, share, 0.0
    raise ValueError(f"label smoothing must be 'uniform', 'others' or 'no_padding', got {smoothing.kind!r}")


class _FusedLoss(torch.autograd.Function):
    """Projection, softmax and cross-entropy in one pass, which also computes the gradient.

    With logits z = x Wᵀ + b and a target distribution q = e · one_hot(y) + s (+ a correction at padding), the loss is
    lse(z) - Σ q z and its gradient softmax(z) - q. The parts of q that are equal for all tokens are rank-one, so only
    the softmax itself ever has the size [chunk, V].

    With `alpha`, consecutive rows are pairs from two passes, and α/2 times the divergence of each pair is added to the
    loss. Rows where `real` is False do not count.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, tgt: Tensor, weights: tuple[float, float, float],
        pad_id: int, alpha: float, real: Tensor | None,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        extra, share, pad_share = weights
        vocab_size = weight.shape[0]
        chunk = max(1, (GPU_CHUNK_ELEMENTS if x.is_cuda else CHUNK_ELEMENTS) // vocab_size)
        chunk += bool(alpha) * chunk % 2  # a pair is never split
        grad_x = torch.empty_like(x)
        grad_weight = torch.zeros(weight.shape, dtype=torch.float32, device=x.device)
        grad_bias = torch.zeros(vocab_size, dtype=torch.float32, device=x.device) if bias is not None else None
        nll_sum = torch.zeros((), dtype=torch.float64, device=x.device)
        loss_sum = torch.zeros((), dtype=torch.float64, device=x.device)
        weight_sum = weight.sum(0, dtype=torch.float32)
        bias_sum = 0.0 if bias is None else bias.sum(dtype=torch.float32)
        for begin in range(0, x.shape[0], chunk):
            piece, truth = x[begin : begin + chunk], tgt[begin : begin + chunk]
            counts = None if real is None else real[begin : begin + chunk].to(x.dtype)  # 1 or 0
            if counts is not None:
                piece = piece * counts[:, None]
            rows, number = filled(piece, weight), len(piece)
            scores = affine(rows, weight, bias)
            all_probs = scores.softmax(dim=-1)
            logits, probs = scores[:number], all_probs[:number]
            true_logit = logits.gather(1, truth[:, None]).squeeze(1).float()
            pad_logit = logits[:, pad_id].float()
            log_norm = _log_norm(logits, probs, truth, true_logit)
            mean_part = share * (piece.float() @ weight_sum + bias_sum)
            smoothed = log_norm - extra * true_logit - mean_part - (pad_share - share) * pad_logit
            nll = log_norm - true_logit
            if counts is not None:
                smoothed, nll, probs = smoothed * counts, nll * counts, probs.mul_(counts[:, None])
            nll_sum += nll.sum(dtype=torch.float64)
            loss_sum += smoothed.sum(dtype=torch.float64)
            if alpha:
                loss_sum += alpha / 2 * _add_divergence(logits, probs, alpha / 2)
            grad = (all_probs @ weight)[:number]
            grad -= (share * weight_sum).to(grad.dtype)
            grad.sub_(weight[truth], alpha=extra)
            if pad_share != share:
                grad.sub_(weight[pad_id], alpha=pad_share - share)
            grad_x[begin : begin + chunk] = grad if counts is None else grad * counts[:, None]
            grad_weight += all_probs.t() @ rows
            grad_weight.index_add_(0, truth, piece.float(), alpha=-extra)
            piece_sum = piece.sum(0, dtype=torch.float32)
            grad_weight.sub_(piece_sum, alpha=share)
            if pad_share != share:
                grad_weight[pad_id].sub_(piece_sum, alpha=pad_share - share)
            if grad_bias is not None:
                num_real = number if counts is None else counts.sum(dtype=torch.float32)
                grad_bias += _column_sums(probs) - share * num_real
                each = torch.full_like(true_logit, -extra) if counts is None else -extra * counts.float()
                grad_bias.index_add_(0, truth, each)
                if pad_share != share:
                    grad_bias[pad_id] -= (pad_share - share) * num_real
        ctx.save_for_backward(grad_x, grad_weight, grad_bias)
        ctx.dtype = weight.dtype
        return loss_sum.float(), nll_sum.float()

    @staticmethod
    def backward(ctx: Any, grad_loss: Tensor, grad_nll: Tensor) -> Any:
        grad_x, grad_weight, grad_bias = ctx.saved_tensors
        scaled_bias = None if grad_bias is None else (grad_bias * grad_loss).to(ctx.dtype)
        grad_x = grad_x * grad_loss.to(grad_x.dtype)
        return grad_x, (grad_weight * grad_loss).to(ctx.dtype), scaled_bias, None, None, None, None, None


def _add_divergence(logits: Float[Tensor, "N V"], probs: Float[Tensor, "N V"], weight: float) -> Tensor:
    """Add `weight` times the gradient of the divergence to `probs`; return the sum of the divergences.

    The divergence of each pair of consecutive rows is KL(P ‖ Q) + KL(Q ‖ P). With d = z_P - z_Q it is E_P d - E_Q d, as
    the normalisers cancel. Its gradient is P (d - E_P d) + (P - Q) by z_P and -Q (d - E_Q d) - (P - Q) by z_Q. It is
    computed in float32, because P and Q are nearly equal, and for few rows at a time, so that they stay in the cache.
    """
    total = torch.zeros((), dtype=torch.float64, device=logits.device)
    rows = max(1, CACHED_ELEMENTS // logits.shape[1] // 2) * 2
    for part, out in zip(torch.split(logits, rows), torch.split(probs, rows), strict=True):
        pairs = part.float().view(-1, 2, logits.shape[1])  # [n, 2, V]
        d = pairs[:, :1] - pairs[:, 1:]
        p = pairs.softmax(dim=-1)
        means = (p * d).sum(dim=-1, keepdim=True)
        total += (means[:, 0] - means[:, 1]).sum(dtype=torch.float64)
        difference = p[:, :1] - p[:, 1:]
        gradient = (d - means).mul_(p).add_(difference)
        gradient[:, 1].neg_()
        out += gradient.flatten(0, 1).mul_(weight)
    return total


def _column_sums(x: Float[Tensor, "N V"]) -> Float[Tensor, " V"]:
    """The sums of the columns in float32. In bfloat16 on a CPU, the sums of some rows at a time are rounded, which is
    three times as fast as converting all elements.
    """
    if x.dtype == torch.float32 or x.is_cuda:
        return x.sum(0, dtype=torch.float32)
    return torch.stack([part.sum(0) for part in torch.split(x, ROWS_SUMMED)]).sum(0, dtype=torch.float32)


def _log_norm(
    logits: Float[Tensor, "N V"], probs: Float[Tensor, "N V"], truth: Int[Tensor, " N"], true_logit: Float[Tensor, " N"]
) -> Float[Tensor, " N"]:
    """log Σ exp(logits) from their softmax: z_y - log p_y, or directly if p_y is too small.

    On a GPU the most probable token takes the place of y, as its probability is never too small.
    """
    if logits.is_cuda:
        highest, best = probs.max(dim=-1)
        return logits.gather(1, best[:, None]).squeeze(1).float() - highest.float().log()
    true_prob = probs.gather(1, truth[:, None]).squeeze(1).float()
    log_norm = true_logit - true_prob.log()
    small = true_prob < 1e-20
    if small.any():
        log_norm[small] = logits[small].float().logsumexp(dim=-1)
    return log_norm


class LinearHead(nn.Module):
    """A linear projection and a softmax; its weight may be that of the embedding (Press & Wolf 2017)."""

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
        flat, flat_ids = features.reshape(-1, features.shape[-1]), ids.reshape(-1)
        chunk = max(1, CHUNK_ELEMENTS // self.weight.shape[0])
        pieces = [
            self.log_probs(x).gather(1, y[:, None]).squeeze(1)
            for x, y in zip(torch.split(flat, chunk), torch.split(flat_ids, chunk), strict=True)
        ]
        return torch.cat(pieces).view(ids.shape)

    def loss(
        self, features: Float[Tensor, "B T D"], tgt_out: Int[Tensor, "B T"], mask: Bool[Tensor, "B T"],
        smoothing: Smoothing,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """Sums over the real tokens of the smoothed loss and of -log p (nats)."""
        flat, truth, real = features.flatten(0, -2), tgt_out.reshape(-1), mask.reshape(-1)
        if features.is_cuda:
            loss_sum, nll_sum = self._fused_loss(flat, truth, smoothing, real=real)
        else:
            rows = real.nonzero().squeeze(1)
            loss_sum, nll_sum = self._fused_loss(flat[rows], truth[rows], smoothing)
        return loss_sum, nll_sum.detach()

    def paired_loss(
        self, features: Float[Tensor, "R T D"], tgt_out: Int[Tensor, "B T"], mask: Bool[Tensor, "B T"],
        smoothing: Smoothing, alpha: float,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """As `loss`, of two passes over the same targets (R-Drop, Liang et al. 2021, equation 4).

        The features of the second pass follow those of the first: R = 2 B. The sums are half of the paper's,
        ½ (L_1 + L_2) + α/2 · ½ (KL(P_1 ‖ P_2) + KL(P_2 ‖ P_1)), so that α is the paper's and the loss is on the
        scale of one pass.
        """
        real = mask.reshape(-1).nonzero().squeeze(1)
        pairs = torch.stack((real, real + mask.numel()), dim=1).flatten()  # both rows of a token are consecutive
        truth = tgt_out.reshape(-1)[real].repeat_interleave(2)
        loss_sum, nll_sum = self._fused_loss(features.flatten(0, -2)[pairs], truth, smoothing, alpha)
        return loss_sum / 2, nll_sum.detach() / 2

    def _fused_loss(
        self, x: Float[Tensor, "N D"], truth: Int[Tensor, " N"], smoothing: Smoothing, alpha: float = 0.0,
        real: Bool[Tensor, " N"] | None = None,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        weights = smoothing_weights(smoothing, self.weight.shape[0])
        sums = _FusedLoss.apply(x, self.weight, self.bias, truth, weights, self.pad_id, alpha, real)  # type: ignore[no-untyped-call]
        return sums[0], sums[1]


class PenalisedHead(nn.Module):
    """Another head with activation regularisation (Merity, McCann & Socher 2017).

    The loss has α · AR + β · TAR added for each token: AR is the mean square of the dropped output, TAR (temporal) that
    of the change of the plain output from one position to the next. Features have D values, or 2 D in training: the
    dropped output, then the plain one.
    """

    def __init__(self, head: Head, d_model: int, alpha: float, beta: float) -> None:
        super().__init__()
        self.head = head
        self.d_model = d_model
        self.alpha, self.beta = alpha, beta

    def log_probs(
        self, features: Float[Tensor, "... D"], subset: Int[Tensor, " N"] | None = None
    ) -> Float[Tensor, "... N"]:
        return self.head.log_probs(features[..., : self.d_model], subset)

    def log_prob(self, features: Float[Tensor, "... D"], ids: Int[Tensor, "..."]) -> Float[Tensor, "..."]:
        return self.head.log_prob(features[..., : self.d_model], ids)

    def loss(
        self, features: Float[Tensor, "B T D"], tgt_out: Int[Tensor, "B T"], mask: Bool[Tensor, "B T"],
        smoothing: Smoothing,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        """The other head's sums; if the features include plain outputs, the penalty is added to the first sum."""
        dropped, plain = torch.split(features, [self.d_model, features.shape[-1] - self.d_model], dim=-1)
        loss_sum, nll_sum = self.head.loss(dropped, tgt_out, mask, smoothing)
        if plain.shape[-1]:
            loss_sum = loss_sum + self._penalty(dropped.float(), plain.float(), mask)
        return loss_sum, nll_sum

    def _penalty(
        self, dropped: Float[Tensor, "B T D"], plain: Float[Tensor, "B T D"], mask: Bool[Tensor, "B T"]
    ) -> Float[Tensor, ""]:
        """The means over a row's real tokens (and over its pairs of neighbours), times their number, of all rows."""
        both = mask[:, 1:] & mask[:, :-1]
        ar = dropped.square().mean(-1)[mask].sum()
        changes = ((plain[:, 1:] - plain[:, :-1]).square().mean(-1) * both).sum(1)
        change = (changes * mask.sum(1) / both.sum(1).clamp(min=1)).sum()
        return self.alpha * ar + self.beta * change
