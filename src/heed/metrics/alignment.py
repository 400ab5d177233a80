"""Scores of word alignment against links that people made (Och & Ney 2003, section 6).

With A the links of a system, S the sure and P the possible ones (sure ones included):

    precision = |A ∩ P| / |A|        recall = |A ∩ S| / |S|
    alignment error rate = 1 - (|A ∩ S| + |A ∩ P|) / (|A| + |S|)

Outputs and references are lines of links, `i-j` and `i?j` (`heed.text.readers.links`).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heed.metrics.metric import OutputMetric, Rows
from heed.metrics.significance import SEED
from heed.text.readers.links import parse_links


@dataclass(frozen=True)
class LinkMetric(OutputMetric):
    """Counts |A|, |S|, |A ∩ S| and |A ∩ P| of each sentence pair."""

    def counts(self, outputs: Sequence[str], references: Sequence[str]) -> Rows:
        rows = []
        for output, reference in zip(outputs, references, strict=True):
            links, gold = parse_links(output).possible, parse_links(reference)
            both = len(links & gold.sure), len(links & gold.possible)
            rows.append([float(n) for n in (len(links), len(gold.sure), *both)])
        return rows

    def value(self, totals: NDArray[np.float64]) -> float:
        return 100 * self.share(*totals.tolist())

    @abstractmethod
    def share(self, links: float, sure: float, right_sure: float, right: float) -> float:
        """The score of counts, from 0 to 1; 0 where there is nothing to divide by."""

    def signature(self, intervals: int) -> str:
        return "links:och-ney" + (f"|bs:{intervals}|seed:{SEED}" if intervals else "")


class LinkPrecision(LinkMetric):
    """Percentage of the links that are possible."""

    title = "precision"

    def share(self, links: float, sure: float, right_sure: float, right: float) -> float:
        return right / links if links else 0.0


class LinkRecall(LinkMetric):
    """Percentage of the sure links that a system has."""

    title = "recall"

    def share(self, links: float, sure: float, right_sure: float, right: float) -> float:
        return right_sure / sure if sure else 0.0


class LinkF1(LinkMetric):
    """Harmonic mean of precision and recall."""

    title = "F1"

    def share(self, links: float, sure: float, right_sure: float, right: float) -> float:
        precision, recall = (right / links if links else 0.0), (right_sure / sure if sure else 0.0)
        return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


class AlignmentErrorRate(LinkMetric):
    """Alignment error rate in percent; 0 is best."""

    title = "AER"
    higher_is_better = False

    def share(self, links: float, sure: float, right_sure: float, right: float) -> float:
        return 1 - (right_sure + right) / (links + sure) if links + sure else 0.0


LINK_METRICS: tuple[type[LinkMetric], ...] = (LinkPrecision, LinkRecall, LinkF1, AlignmentErrorRate)
