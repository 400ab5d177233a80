"""R-Drop (Liang et al. 2021): two passes with different dropout should predict the same distribution.

Both are computed as one batch of twice the rows. The first uses the usual dropout keys; those of the second are derived
from them, so resuming, splitting a batch or computing it on another rank changes nothing.
"""

from __future__ import annotations

from typing import cast

from heed.data.batch import Batch
from heed.nn.contract import Autoregressive, PairedHead, Smoothing
from heed.nn.dropout_keys import DropoutKeys
from heed.tasks.task import Loss

SECOND_PASS = 1 << 20
"""A site that no layer has."""


def r_drop_loss(
    model: Autoregressive, batch: Batch, smoothing: Smoothing, dropout_keys: DropoutKeys, alpha: float
) -> Loss:
    """The mean loss of two passes, and how far they are apart (see `LinearHead.paired_loss`)."""
    both = dropout_keys.join(dropout_keys.fold(SECOND_PASS))
    source = batch.source and batch.source.repeat(2)
    rows = 1 if source is not None else len(both.keys)
    features, _ = model.advance(batch.tgt_in.repeat(2, 1), model.start(source, rows, dropout_keys=both))
    head = cast(PairedHead, model.head)
    return Loss(*head.paired_loss(features, batch.tgt_out, batch.tgt_mask, smoothing, alpha))
