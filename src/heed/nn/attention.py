"""Which source positions does each target position look at, and what does it read there?

Every attention here has one shape: `project(memory)` makes keys and values once, and
`forward(query, keys, values, mask)` gives contexts. For cross-attention the keys live in the decoder's state;
for self-attention they grow, and that is the key-value cache. Masks are True where one may attend, and None
where one may attend to all.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor, nn

from heed.nn.contract import Trace
from heed.nn.dropout_keys import DropoutKeys


def split_heads(x: Float[Tensor, "B T D"], num_heads: int) -> Float[Tensor, "B H T K"]:
    """Cut the features into heads."""
    return x.view(*x.shape[:2], num_heads, x.shape[2] // num_heads).transpose(1, 2)


def merge_heads(x: Float[Tensor, "B H T K"]) -> Float[Tensor, "B T D"]:
    """Put the heads side by side again."""
    return x.transpose(1, 2).flatten(2)


def attention_weights(
    query: Float[Tensor, "B H T K"], keys: Float[Tensor, "B H S K"], mask: Bool[Tensor, "..."] | None
) -> Float[Tensor, "B H T S"]:
    """softmax(Q Kᵀ / √K) over the positions that the mask allows (Vaswani et al. 2017, equation 1)."""
    scores = (query * (1.0 / math.sqrt(query.shape[-1]))) @ keys.transpose(-1, -2)
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    return scores.softmax(dim=-1)


def attend(
    query: Float[Tensor, "B H T K"], keys: Float[Tensor, "B H S K"], values: Float[Tensor, "B H S K"],
    mask: Bool[Tensor, "..."] | None,
) -> Float[Tensor, "B H T K"]:  # fmt: skip
    """The contexts softmax(Q Kᵀ / √K) V, by PyTorch's kernel or, where that is slower, by products.

    It is in bfloat16 on a CPU, but for little work: five times for one query after many keys (torch 2.13, AVX-512).
    """
    slow = query.dtype == torch.bfloat16 and query.device.type == "cpu" and keys.numel() > _FEW_KEYS
    if slow and query.shape[2] <= _FEW_QUERIES:
        return attention_weights(query, keys, mask) @ values
    return F.scaled_dot_product_attention(query, keys, values, attn_mask=mask)


_FEW_KEYS, _FEW_QUERIES = 50_000, 32


class MultiHeadAttention(nn.Module):
    """Several scaled dot-product attentions side by side (Vaswani et al. 2017, section 3.2.2).

    MultiHead(Q, K, V) = concat(head_1 … head_H) W_O, head_i = softmax(Q_i K_iᵀ / √K) V_i. The weights begin as
    those of PyTorch's `nn.Transformer`: post-norm learns far better from the flatter attention (docs/results.md).
    """

    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.0, bias: bool = True) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.dropout = dropout
        self.query = nn.Linear(d_model, d_model, bias=bias)
        self.key_value = nn.Linear(d_model, 2 * d_model, bias=bias)
        self.output = nn.Linear(d_model, d_model, bias=bias)
        together = math.sqrt(6.0 / (4 * d_model))  # Xavier of queries, keys and values as one matrix, 3D x D
        for linear in (self.query, self.key_value, self.output):
            bound = math.sqrt(6.0 / (2 * d_model)) if linear is self.output else together
            nn.init.uniform_(linear.weight, -bound, bound)
            if bias:
                nn.init.zeros_(linear.bias)

    def project(self, memory: Float[Tensor, "B S D"]) -> tuple[Tensor, Tensor]:
        """Keys and values, each `[B, H, S, K]`."""
        keys, values = self.key_value(memory).chunk(2, dim=-1)
        return split_heads(keys, self.num_heads), split_heads(values, self.num_heads)

    def forward(
        self,
        x: Float[Tensor, "R T D"],
        keys: Float[Tensor, "B H S K"],
        values: Float[Tensor, "B H S K"],
        mask: Bool[Tensor, "..."] | None = None,
        dropout_keys: DropoutKeys | None = None,
        offset: int = 0,
        trace: Trace | None = None,
        name: str = "",
    ) -> Float[Tensor, "R T D"]:
        """Contexts of the R = B · W rows of `x`; W rows in a row share the keys and values of one source.

        `mask` broadcasts to `[B, H, T, S]`. `offset` is the position of the first query (it keys the dropout).
        """
        shared = self.query(x).view(keys.shape[0], -1, x.shape[2])  # [B, W·T, D]
        query = split_heads(shared, self.num_heads)
        dropout_keys = dropout_keys if self.dropout > 0 else None
        plain_is_faster = query.requires_grad and query.dtype == torch.bfloat16 and query.device.type == "cpu"
        if dropout_keys is not None or trace is not None or plain_is_faster:
            weights = attention_weights(query, keys, mask)
            # Positions first, so that a mask of dropout does not depend on how the target is cut.
            by_position = weights.transpose(1, 2).reshape(*x.shape[:2], self.num_heads, -1)  # [R, T, H, S]
            if trace is not None:
                trace.record(name, by_position.transpose(1, 2))
            if dropout_keys is not None:
                dropped = dropout_keys.dropout_ragged(by_position, self.dropout, site=0, offset=offset)
                weights = dropped.reshape(*shared.shape[:2], self.num_heads, -1).transpose(1, 2)
            context = weights @ values
        else:
            context = attend(query, keys, values, mask)
        contexts: Tensor = self.output(merge_heads(context).view(x.shape))
        return contexts


class AdditiveAttention(nn.Module):
    """Attention by a small network (Bahdanau et al. 2015, section A.1.2): e_ij = vᵀ tanh(W s_{i-1} + U h_j)."""

    def __init__(self, query_size: int, memory_size: int, attention_size: int) -> None:
        super().__init__()
        self.query = nn.Linear(query_size, attention_size, bias=False)
        self.key = nn.Linear(memory_size, attention_size)
        self.score = nn.Linear(attention_size, 1, bias=False)

    def project(self, memory: Float[Tensor, "B S C"]) -> tuple[Tensor, Tensor]:
        """Keys U h `[B, S, A]`, and the memory itself as the values `[B, S, C]`."""
        return self.key(memory), memory

    def forward(
        self,
        x: Float[Tensor, "R T Q"],
        keys: Float[Tensor, "B S A"],
        values: Float[Tensor, "B S C"],
        mask: Bool[Tensor, "B 1 1 S"] | None = None,
        trace: Trace | None = None,
        name: str = "",
    ) -> Float[Tensor, "R T C"]:
        """Contexts of the R = B · W rows of `x`; W rows in a row share the keys and values of one source."""
        rows, num_queries, _ = x.shape
        query = self.query(x).reshape(keys.shape[0], -1, 1, keys.shape[-1])  # [B, W·T, 1, A]
        scores = self.score(torch.tanh(query + keys[:, None])).squeeze(-1)  # [B, W·T, S]
        if mask is not None:
            scores = scores.masked_fill(~mask[:, 0], float("-inf"))
        weights = scores.softmax(dim=-1)
        if trace is not None:
            trace.record(name, weights.reshape(rows, 1, num_queries, -1))
        contexts: Tensor = weights @ values  # [B, W·T, C]
        return contexts.view(rows, num_queries, -1)


ATTENTION = {"multi_head": MultiHeadAttention, "additive": AdditiveAttention}
