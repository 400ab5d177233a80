"""Scorers: the log-probabilities of given targets of a source.

This module and all that it imports do without PyTorch and NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from heed.inference.ctranslate2_engine import CTranslate2Engine
from heed.inference.line_translator import LineTranslator


class Scorer(Protocol):
    """A translator that can score a text."""

    def score_all(self, source: str, targets: Sequence[str]) -> list[float] | None:
        """Log-probability in nats of each target of one source; None if the source or a target is too long."""
        ...


class ConvertedScorer:
    """A translator whose model CTranslate2 computes, as a `Scorer`."""

    def __init__(self, translator: LineTranslator, engine: CTranslate2Engine) -> None:
        self._translator, self._engine = translator, engine

    def score_all(self, source: str, targets: Sequence[str]) -> list[float] | None:
        """As a `Scorer`."""
        ids = self._translator.encoded_all(source, targets)
        if ids is None or 1 + max(map(len, (ids[0], *ids[1]))) > self._engine.num_positions:
            return None
        return self._engine.log_probs(*ids)
