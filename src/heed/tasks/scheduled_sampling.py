"""Scheduled sampling: a decoder that in training reads some of its own predictions (Bengio et al. 2015).

Under teacher forcing a decoder reads the truth, and in use its own outputs: the inference gap. Here each position reads
the true token before it with probability ε_i, and a token sampled from the model's distribution otherwise, where i is
the number of the update. ε_i is the probability of the truth (as in the paper, section 2.4; lecture 9 writes p for the
other case). It falls from 1 to a final value, on a scale of k updates:

    linear: 1 - i/k,    exponential: e^(-i/k),    inverse sigmoid: k / (k + e^(i/k))

The paper writes a^i for the second, with a = e^(-1/k). The loss is that of the true tokens, and no gradient flows
through the sampling. Choices depend on (seed, update, row, position) alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from heed.decoding.sampling import inverted
from heed.nn.contract import Autoregressive, State
from heed.nn.dropout_keys import DropoutKeys

DECAYS: Mapping[str, Callable[[float, float], float]] = {
    "linear": lambda i, k: 1 - i / k,
    "exponential": lambda i, k: math.exp(-i / k),
    "inverse_sigmoid": lambda i, k: k / (k + math.exp(min(i / k, 700.0))),
}
"""ε_i by the number of the update and the scale (section 2.4)."""
COIN, TOKEN = (1 << 20) + 1, (1 << 20) + 2
"""Dropout sites of the choices; no layer uses them."""


def truth_probability(training: Any, update: int) -> float:
    """ε_i of an update, by a recipe's `[training]` table."""
    if training.truth_probability == 1:
        return 1.0
    falling = DECAYS[training.truth_decay](update, training.truth_decay_updates)
    return max(float(training.truth_probability), falling)


@torch.no_grad()
def read_partly_own(
    model: Autoregressive, tgt_in: Int[Tensor, "B T"], state: State, dropout_keys: DropoutKeys, probability: float
) -> Int[Tensor, "B T"]:
    """The tokens that are read: the first and the others with `probability` are true, the rest sampled one by one.

    `state` is that before the first token.
    """
    num_tokens = tgt_in.shape[1]
    is_true = dropout_keys.uniform(num_tokens, COIN) < probability
    drawn = dropout_keys.uniform(num_tokens, TOKEN)
    read = tgt_in.clone()
    for t in range(1, num_tokens):
        features, state = model.advance(read[:, t - 1 : t], state)
        if is_true[:, t].all():
            continue
        probabilities = model.head.log_probs(features[:, 0]).double().exp()
        read[:, t] = torch.where(is_true[:, t], tgt_in[:, t], inverted(probabilities, drawn[:, t, None])[:, 0])
    return read
