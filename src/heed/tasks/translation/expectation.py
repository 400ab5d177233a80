"""The BLEU to expect from a translator before its training: a fit to the corpora on which heed was measured.

BLEU depends on the kind of text and on the languages more than on the number and length of the pairs, which are all
that the fit knows. So its spread is large, and is always given.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from operator import attrgetter

import numpy as np

from heed.tasks.translation.measured import MEASURED, MeasuredCorpus, similar

KINDS = {"transformer": "transformer", "phrase_based": "phrases"}
"""Kinds of models that were measured, and the field of `MeasuredCorpus` with their BLEU."""
PENALTY = 3.0
"""Squared doublings that draw both slopes towards zero. The error on a left-out corpus is as large without them, and on
a left-out kind of text far larger: 23.0 and not 16.0 BLEU of a Transformer."""
OUTSIDE = 1.0
"""Doublings by which a corpus may have fewer or more pairs, or shorter or longer ones, than all that were measured."""


@dataclass(frozen=True)
class Expectation:
    """BLEU on validation data, with the choices of heed, after 45 minutes on one CPU core if it is a Transformer."""

    kind: str
    bleu: float
    spread: float
    """Root of the mean squared error, in BLEU, on corpora of which the fit knows no text of the same kind."""
    num_corpora: int
    is_scored: bool = False
    """Whether a Transformer scores what phrases propose."""

    def scored(self) -> Expectation:
        """What to expect of these phrases with a Transformer that scores what they propose: the mean gain more."""
        gains = [each.both - each.phrases for each in MEASURED if each.both is not None and each.phrases is not None]
        return replace(self, bleu=self.bleu + sum(gains) / len(gains), is_scored=True)

    def render(self) -> str:
        """`about 25 BLEU on validation data with heed's choices, give or take 8 (from 13 corpora ...)`."""
        when = " after 45 minutes on one CPU core" if self.kind != "phrase_based" or self.is_scored else ""
        source = f"from {self.num_corpora} corpora on which heed was measured"
        reached = f"about {self.bleu:.0f} BLEU on validation data with heed's choices{when}"
        return f"{reached}, give or take {self.spread:.0f} ({source})"


def expected(kind: str, num_pairs: int, characters: float) -> Expectation | None:
    """What to expect from a kind of model and of pairs whose longer sides have a mean number of characters.

    None for other kinds of models and for corpora that are unlike all that were measured.
    """
    corpora = measured_with(kind)
    if not (corpora and similar(num_pairs, characters, corpora) and _is_inside(corpora, num_pairs, characters)):
        return None
    scores = _scores(corpora, kind)
    bleu = min(max(predicted(corpora, kind, num_pairs, characters), min(scores)), max(scores))
    return Expectation(kind, bleu, prediction_error(kind), len(corpora))


def measured_with(kind: str) -> Sequence[MeasuredCorpus]:
    """The corpora on which a kind of model was measured; none for an unknown kind."""
    return [each for each in MEASURED if kind in KINDS and getattr(each, KINDS[kind]) is not None]


def predicted(corpora: Sequence[MeasuredCorpus], kind: str, num_pairs: int, characters: float) -> float:
    """BLEU by a plane over the doublings of pairs and of characters, fitted to some corpora."""
    sizes = np.array([_size(each.num_pairs, each.characters) for each in corpora])
    scores = np.array(_scores(corpora, kind))
    offsets = sizes - sizes.mean(0)
    slopes = np.linalg.solve(offsets.T @ offsets + PENALTY * np.eye(2), offsets.T @ (scores - scores.mean()))
    return float(scores.mean() + (_size(num_pairs, characters) - sizes.mean(0)) @ slopes)


@cache
def prediction_error(kind: str, group: Callable[[MeasuredCorpus], str] = attrgetter("genre")) -> float:
    """Root of the mean squared error (BLEU) on each corpus, by a fit to those of other groups."""
    corpora = measured_with(kind)
    errors = [
        predicted([other for other in corpora if group(other) != group(each)], kind, each.num_pairs, each.characters)
        - score
        for each, score in zip(corpora, _scores(corpora, kind), strict=True)
    ]
    return math.sqrt(sum(error**2 for error in errors) / len(errors))


def _is_inside(corpora: Sequence[MeasuredCorpus], num_pairs: int, characters: float) -> bool:
    sizes = [_size(each.num_pairs, each.characters) for each in corpora]
    return all(
        min(values) - OUTSIDE <= own <= max(values) + OUTSIDE
        for own, values in zip(_size(num_pairs, characters), zip(*sizes, strict=True), strict=True)
    )


def _size(num_pairs: int, characters: float) -> tuple[float, float]:
    return math.log2(max(1, num_pairs)), math.log2(max(1.0, characters))


def _scores(corpora: Sequence[MeasuredCorpus], kind: str) -> list[float]:
    return [getattr(each, KINDS[kind]) for each in corpora]
