"""Claim of O'Connor's notes: training instability with many layers, and where the normalisation is."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor, nn

from heed.models.transformer import EncoderBlock, Residual, TransformerConfig

Norm = Literal["post", "pre"]
WORDS, D_MODEL = 12, 16


class Stack(nn.Module):
    """Embeddings, encoder blocks, the final normalisation of pre-norm, and an output layer."""

    def __init__(self, norm: Norm, num_layers: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        config = TransformerConfig(d_model=D_MODEL, num_heads=2, d_ff=2 * D_MODEL, norm=norm, dropout=0.0)
        self.blocks = nn.ModuleList(EncoderBlock(config) for _ in range(num_layers))
        self.embedding, self.output = nn.Embedding(WORDS, D_MODEL), nn.Linear(D_MODEL, WORDS)
        self.norm = nn.LayerNorm(D_MODEL) if norm == "pre" else nn.Identity()

    def forward(self, ids: Tensor) -> Tensor:
        """The loss of saying each word again."""
        x = self.embedding(ids)
        for block in self.blocks:
            x = block(x, None, None)
        return nn.functional.cross_entropy(self.output(self.norm(x)).flatten(0, 1), ids.flatten())


def trained_loss(norm: Norm, num_layers: int, warmup: int = 1, updates: int = 30) -> float:
    """The loss of the last five updates by Adam with a rate of 0.01, which rises during the warm-up."""
    model, losses = Stack(norm, num_layers), []
    optimizer = torch.optim.Adam(model.parameters())
    for update in range(1, updates + 1):
        optimizer.param_groups[0]["lr"] = 0.01 * min(1.0, update / warmup)
        loss = model(torch.randint(WORDS, (6, 6)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return sum(losses[-5:]) / 5


def test_deep_post_norm_without_warm_up_learns_nothing_where_pre_norm_learns() -> None:
    """O'Connor, "Training instability is a notorious issue, esp. with many layers, > 10 or > 20": that is post-norm's
    (Xiong et al. 2020). With 2 layers both learn without warm-up; with 12 post-norm ends where it began, at log V, and
    learns in as many updates if the rate rises in them."""
    chance = math.log(WORDS)
    assert trained_loss("post", 2) < 0.5 * chance and trained_loss("pre", 2) < 0.5 * chance
    assert trained_loss("post", 12, updates=100) > 0.9 * chance
    assert trained_loss("post", 12, warmup=100, updates=100) < 0.6 * chance
    assert trained_loss("pre", 12) < 0.5 * chance


def last_gradient(norm: Norm, num_layers: int) -> float:
    """The norm of the gradient of the last feed-forward layer before the first update, averaged over batches."""
    model, norms = Stack(norm, num_layers), []
    for _ in range(4):
        model.zero_grad()
        model(torch.randint(WORDS, (6, 6))).backward()
        norms.append(model.blocks[-1].feed_forward.contract.weight.grad.norm().item())
    return sum(norms) / len(norms)


def test_first_gradients_of_the_last_layer_fall_with_depth_for_pre_norm_alone() -> None:
    """Why (Xiong et al. 2020, theorem 1): pre-norm's sum of L layers divides the gradient of the last one by about √L,
    which is like a smaller rate; post-norm's does not depend on L, so that every update of a deep model is too
    large."""
    post, pre = ([last_gradient(norm, layers) for layers in (2, 24)] for norm in ("post", "pre"))
    assert post[1] > 0.6 * post[0]
    assert pre[1] < 0.5 * pre[0]


@torch.no_grad()
def test_layer_normalisation_is_of_each_position_by_itself() -> None:
    """Transformer summary, "A Transformer block": mean 0 and variance 1 "per layer and training point". The point is a
    position: each is normalised over its features, whatever the other positions are, and not the text as a whole."""
    torch.manual_seed(0)
    residual = Residual(TransformerConfig(d_model=D_MODEL, num_heads=2, norm="post", dropout=0.0))
    x = torch.randn(1, 5, D_MODEL) * torch.arange(1, 6)[:, None] + torch.arange(5)[:, None]
    normalised = residual(x, lambda x: 0 * x, None, 0)
    torch.testing.assert_close(normalised.mean(-1), torch.zeros(1, 5), rtol=0, atol=1e-5)
    torch.testing.assert_close(normalised.var(-1, correction=0), torch.ones(1, 5), rtol=1e-3, atol=0)
    assert normalised.mean(1).abs().max() > 0.1
    torch.testing.assert_close(residual(x[:, :2], lambda x: 0 * x, None, 0), normalised[:, :2])
