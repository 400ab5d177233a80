"""Attention with learned queries, keys and values and nothing after it, as lecture 9 builds it up to the Transformer.

The rungs of its ladder of self-attention are `dot`, softmax(H Hᵀ) H, which has no weights; `scaled_dot`, which divides
by √D; `projected`, with learned queries, keys and values; and `projected_heads`, with several of them in parallel. The
Transformer's `multi_head` adds the matrix W_O.
"""

from __future__ import annotations

from typing import Self

from torch import nn

from heed.nn.attention.multi_head import MultiHeadAttention


class ProjectedHeadsAttention(MultiHeadAttention):
    """softmax(Q_i K_iᵀ / √K) V_i of several heads, concatenated, with Q = h W_Q + b_Q and likewise K and V.

    Lecture 9, section "Attention is all you need", points 1, 3 and 4.
    """

    def __init__(self, d_model: int, num_heads: int, dropout: float = 0.0) -> None:
        super().__init__(d_model, num_heads, dropout)
        self.output = nn.Identity()


class ProjectedAttention(ProjectedHeadsAttention):
    """The same with one head: softmax(Q Kᵀ / √D) V (lecture 9, points 1 and 3)."""

    @classmethod
    def in_block(cls, d_model: int, num_heads: int, dropout: float) -> Self:
        """One head of D features."""
        return cls(d_model, 1, dropout)
