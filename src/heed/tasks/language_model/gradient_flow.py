"""Gradient norms through time of a recurrent language model, which show whether gradients vanish or explode.

The gradient of a token's loss with respect to the state k steps earlier is a product of k Jacobians (Bengio, Simard &
Frasconi 1994; Pascanu, Mikolov & Bengio 2013): it shrinks or grows exponentially in k, unless gates preserve it.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heed.models.rnn_lm import Recurrent, RecurrentState


def norms_through_time(
    model: Recurrent, ids: Int[Tensor, "B K"], next_ids: Int[Tensor, " B"], before: RecurrentState
) -> Float[Tensor, "B K"]:
    """‖∂(-log p of the next token) / ∂(state before each token)‖ for each row, oldest state first.

    The state is that of all layers; `before` is the one before the first token.
    """
    with torch.enable_grad():
        state, states = _required(before), []
        for token in torch.split(ids, 1, dim=1):
            state = replace(state, layers=tuple(tuple(part.clone() for part in parts) for parts in state.layers))
            states += [part for parts in state.layers for part in parts]
            features, state = model.advance(token, state)
        loss = -model.head.log_prob(features[:, -1], next_ids).sum()
        gradients = torch.autograd.grad(loss, states)  # of copies, because the next layer also reads h
    squares = [gradient.float().square().sum(-1) for gradient in gradients]
    return torch.stack(squares).view(ids.shape[1], -1, len(ids)).sum(1).sqrt().t()


def _required(state: RecurrentState) -> RecurrentState:
    """The same state, with gradients; the weights have none."""
    layers = tuple(tuple(part.detach().requires_grad_() for part in parts) for parts in state.layers)
    return replace(state, layers=layers)
