"""Two passes with different dropout should say the same: R-Drop (Liang et al. 2021).

Both are computed as one batch of twice the rows. The first has the noise of any training; the keys of the second follow
from it, so what is resumed, split, or computed by another rank is the same.
"""

from __future__ import annotations

from typing import cast

from heed.data.batch import Batch
from heed.nn.contract import Autoregressive, PairedHead, Smoothing, Source
from heed.nn.noise import Noise
from heed.tasks.task import Loss

SECOND_PASS = 1 << 20
"""A site that no layer has."""


def r_drop_loss(model: Autoregressive, batch: Batch, smoothing: Smoothing, noise: Noise, alpha: float) -> Loss:
    """The mean loss of two passes, and how far they are apart (see `LinearHead.paired_loss`)."""
    both = noise.join(noise.fold(SECOND_PASS))
    source = batch.source and Source(batch.source.ids.repeat(2, 1), batch.source.mask.repeat(2, 1))
    rows = 1 if source is not None else len(both.keys)
    features, _ = model.advance(batch.tgt_in.repeat(2, 1), model.start(source, rows, noise=both))
    head = cast(PairedHead, model.head)
    return Loss(*head.paired_loss(features, batch.tgt_out, batch.tgt_mask, smoothing, alpha))
