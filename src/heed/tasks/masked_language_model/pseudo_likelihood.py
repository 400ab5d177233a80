"""Pseudo-log-likelihood of a text by a masked language model (Salazar et al. 2020, equation 1).

    PLL(W) = Σ_t log P(w_t | w_1 … w_{t-1}, mask, w_{t+1} … w_n)

A token is masked at a time, so a line of n tokens is read n times. It is not a probability of the text, and its
perplexity is not comparable with that of a language model: scores are named pseudo-perplexity, and ends of lines are
not counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from heed.data.batch import source_from_ids
from heed.data.masking import equal_parts
from heed.data.text_stream import TextStream
from heed.decoding.scoring import MAX_SCORED_POSITIONS, PSEUDO, LogProbs
from heed.text.vocabulary import EOS_ID, PAD_ID


class PseudoReader:
    """Each line by itself, in parts of at most `most` tokens (a `heed.decoding.scoring.Reader`)."""

    signature = f"{PSEUDO}|context:line"

    def __init__(self, model: Any, mask_id: int, most: int, device: torch.device) -> None:
        self.model, self.mask_id, self.most, self.device = model, mask_id, most, device

    def read(self, text: TextStream) -> LogProbs:
        """log P (nats) of each token `[N]` given all others of its part."""
        log_probs = np.zeros(len(text), dtype=np.float64)
        parts = self._parts(text)
        # A row for each token: a part with this token masked. Parts of similar length are read together.
        rows = [(part, place) for part in parts for place in range(part[1] - part[0])]
        rows.sort(key=lambda row: row[0][0] - row[0][1])
        while rows:
            longest = rows[0][0][1] - rows[0][0][0] + 1
            batch, rows = rows[: (number := max(1, MAX_SCORED_POSITIONS // longest))], rows[number:]
            positions = [begin + place for (begin, _), place in batch]
            log_probs[positions] = self._masked(text, batch)
        return log_probs

    def _parts(self, text: TextStream) -> list[tuple[int, int]]:
        """The bounds of the parts of all lines."""
        parts: list[tuple[int, int]] = []
        for first, last in zip(text.offsets[:-1].tolist(), text.offsets[1:].tolist(), strict=True):
            parts += [(first + begin, first + end) for begin, end in equal_parts(last - first, self.most)]
        return parts

    @torch.inference_mode()
    def _masked(self, text: TextStream, rows: Sequence[tuple[tuple[int, int], int]]) -> LogProbs:
        source = source_from_ids([text.ids[begin:end] for (begin, end), _ in rows], EOS_ID, PAD_ID)
        index, places = torch.arange(len(rows)), torch.tensor([place for _, place in rows])
        truth = source.ids[index, places].to(self.device)
        source.ids[index, places] = self.mask_id
        features = self.model.read(source.to(self.device))[index, places]
        values: LogProbs = self.model.head.log_prob(features, truth).double().cpu().numpy()
        return values
