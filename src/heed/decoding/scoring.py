"""How likely does a model find a given text? Forced scoring: the same `advance`, over the whole target."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heed.nn.contract import Autoregressive, Source


@torch.inference_mode()
def token_log_probs(
    model: Autoregressive, source: Source | None, tgt_in: Int[Tensor, "B T"], tgt_out: Int[Tensor, "B T"]
) -> Float[Tensor, "B T"]:
    """log P(tgt_out_t | tgt_in_≤t, source) in nats for every position, padding included."""
    state = model.start(source, 1 if source is not None else tgt_in.shape[0])
    features, _ = model.advance(tgt_in, state)
    return model.head.log_prob(features, tgt_out)
