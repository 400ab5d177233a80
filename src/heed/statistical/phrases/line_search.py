"""Minimum error rate training on n-best lists: the best weights along a line, exactly (Och 2003).

Along a line w + x d, the score of each candidate is a line in x, and the best candidate of a sentence changes only
where two lines of their upper envelope cross. Between two crossings of any sentence the score of the corpus is
constant, so all its values along the line are computed.
"""

from __future__ import annotations

from itertools import cycle

import numpy as np

from heed.statistical.phrases.bleu import NUM_STATISTICS, bleu
from heed.statistical.phrases.candidates import Candidates
from heed.statistical.predictor import Bools, Floats, Ints

_NARROWEST = 1e-7
"""Intervals that are narrower are not chosen, since rounding decides what is best in them."""
_BEYOND = 0.1
"""How far before the first and behind the last crossing a step leads."""
_LEAST_GAIN = 1e-2
"""Smallest increase of BLEU for which a step is taken."""


def crossings(scores: Floats, slopes: Floats, exists: Bools) -> tuple[Ints, list[tuple[Floats, Ints, Ints, Ints]]]:
    """The upper envelope of the lines of each sentence.

    Returns the best candidate [S] for x towards minus infinity, and for each further piece of an envelope: where it
    begins, the sentence, and the candidates before and after it.
    """
    slopes = np.where(exists, slopes, -np.inf)
    lowest = np.where(exists, slopes, np.inf).min(1, keepdims=True)
    first = np.where(exists & (slopes == lowest), scores, -np.inf).argmax(1)
    rows, current = np.arange(len(first)), first
    pieces: list[tuple[Floats, Ints, Ints, Ints]] = []
    while len(rows):
        score, slope = scores[rows, current], slopes[rows, current]
        rise = slopes[rows] - slope[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            where = np.where(rise > 0, (score[:, None] - scores[rows]) / rise, np.inf)
        nearest = where.min(1)
        ahead = np.isfinite(nearest)
        rows, where, nearest, before = rows[ahead], where[ahead], nearest[ahead], current[ahead]
        steepest = np.where(where == nearest[:, None], slopes[rows], -np.inf)
        current = steepest.argmax(1)
        if len(rows):
            pieces.append((nearest, rows, before, current))
    return first, pieces


def best_step(candidates: Candidates, weights: Floats, direction: Floats) -> tuple[float, float]:
    """The best step along a direction, in the middle of its interval, and the BLEU that it gives."""
    scores, slopes = candidates.features @ weights, candidates.features @ direction
    first, pieces = crossings(scores, slopes, candidates.exists)
    start = candidates.statistics[np.arange(len(first)), first].sum(0)
    if not pieces:
        return 0.0, float(bleu(start))
    places, rows, before, after = (np.concatenate(parts) for parts in zip(*pieces, strict=True))
    order = np.argsort(places, kind="stable")
    places = places[order]
    changes = (candidates.statistics[rows, after] - candidates.statistics[rows, before])[order]
    values = bleu(start + np.concatenate([np.zeros((1, NUM_STATISTICS), dtype=np.int64), changes.cumsum(0)]))
    edges = np.concatenate([[places[0] - 2 * _BEYOND], places, [places[-1] + 2 * _BEYOND]])
    wide = np.diff(edges) > _NARROWEST
    best = int(np.where(wide, values, -1.0).argmax())
    return float((edges[best] + edges[best + 1]) / 2), float(values[best])


def ascend(candidates: Candidates, weights: Floats, directions: Floats) -> tuple[Floats, float]:
    """Take the best step along each direction [D, F] in turn, until none raises BLEU enough."""
    value = candidates.bleu(weights)
    num_without = 0
    for direction in cycle(directions):
        step, reached = best_step(candidates, weights, direction)
        num_without += 1
        if reached >= value + _LEAST_GAIN:
            weights, value, num_without = weights + step * direction, reached, 1
        if num_without > len(directions):
            break
    return weights, value
