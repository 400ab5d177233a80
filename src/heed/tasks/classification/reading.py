"""Outputs of the neural part of a classifier for encoded texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from heed.data.batch import source_from_ids
from heed.nn.dropout_keys import DropoutKeys
from heed.text.vocabulary import Vocabulary

_TOKENS = 16384


@torch.no_grad()
def neural_outputs(model: Any, ids: Sequence[Sequence[int]], device: torch.device) -> Float[Tensor, "N K"]:
    """An output for each label of each text, in batches by length."""
    order = sorted(range(len(ids)), key=lambda row: len(ids[row]))
    parts, begin = [], 0
    while begin < len(order):
        size = 1
        while begin + size < len(order) and (size + 1) * (len(ids[order[begin + size]]) + 1) <= _TOKENS:
            size += 1
        rows = [ids[row] for row in order[begin : begin + size]]
        source = source_from_ids(rows, Vocabulary.eos_id, Vocabulary.pad_id).to(device)
        parts.append(outputs_of(model, source).float().cpu())
        begin += size
    outputs = torch.cat(parts)
    return outputs[torch.tensor(order).argsort()]


def outputs_of(model: Any, source: Any, dropout_keys: DropoutKeys | None = None) -> Float[Tensor, "B K"]:
    """The outputs of a reader with a pooling head; the first position is that of [CLS] where the reader has one."""
    mask = source.mask
    if model.head.pooling == "cls":
        features, mask = model.read_begun(source, dropout_keys)[:, :1], mask[:, :1]
    else:
        features = model.read(source, dropout_keys)
    outputs: Tensor = model.head(features, mask, dropout_keys)
    return outputs
