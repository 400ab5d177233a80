"""How likely does a model find a given text? Forced scoring: the same `advance`, over the whole target."""

from __future__ import annotations

from collections.abc import Sequence

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


def frame(sequences: Sequence[Sequence[int]], bos_id: int, eos_id: int, pad_id: int) -> tuple[Tensor, Tensor, Tensor]:
    """(tgt_in, tgt_out, mask): begin and ids, ids and end, and which positions are real; each `[B, T]`."""
    longest = max(len(ids) for ids in sequences) + 1
    tgt_in = torch.full((len(sequences), longest), pad_id, dtype=torch.long)
    tgt_out = tgt_in.clone()
    mask = torch.zeros((len(sequences), longest), dtype=torch.bool)
    for row, ids in enumerate(sequences):
        tgt_in[row, : len(ids) + 1] = torch.tensor([bos_id, *ids])
        tgt_out[row, : len(ids) + 1] = torch.tensor([*ids, eos_id])
        mask[row, : len(ids) + 1] = True
    return tgt_in, tgt_out, mask
