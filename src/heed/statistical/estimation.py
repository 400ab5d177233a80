"""Estimation of backoff models from n-gram counts.

Modified Kneser-Ney is as KenLM's lmplz computes it (Heafield et al. 2013, section 3): the longest n-grams, and those
that begin a sentence, have their number of occurrences as count, and all shorter ones the number of different words
that precede them.

    u(w | h) = (c(h w) - given(h w)) / (Σ_w c(h w) + added(h))         `given`, `added`: heed.statistical.smoothing
    γ(h)     = 1 - Σ_w u(w | h) over the n-grams that are kept: the mass for shorter ones

    interpolated:  p(w | h) = u(w | h) + γ(h) p(w | h'),  bow(h) = γ(h)
    backed off:    p(w | h) = u(w | h),                   bow(h) = γ(h) / (1 - Σ_w p(w | h'))  over the same n-grams

For unigrams the remaining mass is distributed uniformly. Additive smoothing distributes it uniformly after every
context of n - 1 words (fewer at the beginning of a sentence), and does not use shorter n-grams.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heed.statistical.backoff import BackoffModel
from heed.statistical.ngram_counts import NEVER, Level, NgramCounts
from heed.statistical.predictor import Bools, Floats, Ints, log
from heed.statistical.smoothing import Reserved, SmoothingConfig, reserve

_FULL = 1e-9
"""If shorter n-grams give less than this to unseen words, no word is unseen."""


def estimate(counts: NgramCounts, config: SmoothingConfig, predictable: Bools) -> BackoffModel:
    """The model of these counts.

    `predictable` [V]: the tokens that can be predicted at all, those of a fixed vocabulary or of `open_vocabulary`.
    Raises DataError if the discounts that `config` requires cannot be estimated from these counts.
    """
    kept = [level.counts > config.threshold(n) for n, level in enumerate(counts.levels, start=1)]
    kept[0][:] = True
    if config.smoothing == "additive":
        levels = _additive(counts, config, predictable, kept)
    else:
        levels = _hierarchical(counts, config, predictable, kept)
    return _model(counts, levels, kept)


def open_vocabulary(counts: NgramCounts, unk_id: int) -> Bools:
    """The tokens that an open vocabulary predicts: the seen words, and `<unk>` for all others."""
    predictable = counts.levels[0].counts > 0
    predictable[counts.bos_id] = False
    predictable[unk_id] = True
    return predictable


def uniform(predictable: Bools, bos_id: int, eos_id: int) -> BackoffModel:
    """A model in which all predictable tokens are equally likely."""
    places = np.arange(len(predictable))
    log_probs = log(predictable / max(1, predictable.sum()))
    return BackoffModel.of_levels([np.zeros_like(places)], [places], [log_probs], [], bos_id, eos_id)


def occurrences(counts: NgramCounts) -> list[Ints]:
    """The number of occurrences of each n-gram; 0 for begin of sentence as a word, since it is never predicted."""
    words = counts.levels[0]
    return [np.where(words.words == counts.bos_id, 0, words.counts), *(level.counts for level in counts.levels[1:])]


def adjusted_counts(counts: NgramCounts) -> list[Ints]:
    """The number of different words before each n-gram; of occurrences for the longest and those after `<s>`."""
    adjusted = occurrences(counts)
    for n in range(1, counts.order):
        before = np.bincount(counts.levels[n].suffixes, minlength=len(adjusted[n - 1]))
        adjusted[n - 1] = np.where(counts.begins(n) & (n > 1), adjusted[n - 1], before)
    return adjusted


def as_lmplz_counts(counts: NgramCounts, adjusted: list[Ints]) -> list[Ints]:
    """The adjusted counts, except that the last n-gram of each length has its occurrences (kpu/kenlm issue 427).

    The order of n-grams is by their words from the last to the first; the order of words is that of their first
    occurrence, after begin and end of sentence.
    """
    changed = [*adjusted]
    rank = np.where(counts.first_seen == NEVER, -3, counts.first_seen)
    rank[[counts.bos_id, counts.eos_id]] = -2, -1
    if not counts.num_tokens:
        return changed
    last = int(np.argmax(rank))
    for n in range(1, counts.order):
        changed[n - 1] = changed[n - 1].copy()
        changed[n - 1][last] = counts.levels[n - 1].counts[last]
        longer = np.flatnonzero(counts.levels[n].suffixes == last)
        if not len(longer):
            break
        last = int(longer[np.argmax(rank[counts.first_words[n][longer]])])
    return changed


@dataclass(frozen=True)
class _Estimates:
    """The probabilities of the n-grams of one length [M], and the back-off weights of the level below [H]."""

    probabilities: Floats
    backoffs: Floats


def _hierarchical(
    counts: NgramCounts, config: SmoothingConfig, predictable: Bools, kept: list[Bools]
) -> list[_Estimates]:
    """Each length backs off to the one below."""
    counted = statistics = occurrences(counts)
    if config.smoothing == "kneser-ney":
        counted = statistics = adjusted_counts(counts)
        if config.lmplz_quirk:
            statistics = as_lmplz_counts(counts, counted)
    unigrams = _words(config, counted[0], statistics[0], predictable)
    estimates = [_Estimates(unigrams, np.zeros(1))]
    for level, c, t, keep in zip(counts.levels[1:], counted[1:], statistics[1:], kept[1:], strict=True):
        below = estimates[-1].probabilities
        reserved = reserve(config, c, t, level.parents, len(below))
        estimates.append(_after_contexts(level, c, reserved, keep, below[level.suffixes], config.interpolate))
    return estimates


def _words(config: SmoothingConfig, counts: Ints, statistics: Ints, predictable: Bools) -> Floats:
    """p(w), [V]. The remaining mass is distributed uniformly over all words, or over the unseen ones."""
    if config.smoothing == "absolute":
        return np.asarray((counts + predictable) / max(1, (counts + predictable).sum()))
    given, added = reserve(config, counts, statistics, np.zeros_like(counts), 1)
    total = counts.sum() + added[0]
    if not total:
        return np.asarray(predictable / max(1, predictable.sum()))
    unseen = predictable & (counts == 0)
    takers = predictable if config.interpolate_unigrams or not unseen.any() else unseen
    left = (given.sum() + added[0]) / total
    return np.asarray((counts - given) / total + left * takers / max(1, takers.sum()))


def _after_contexts(
    level: Level, counts: Ints, reserved: Reserved, kept: Bools, below: Floats, interpolate: bool
) -> _Estimates:
    """The estimates of the n-grams of one length; `below`: p(w | h') of each from the level below [M]."""
    contexts, num_contexts = level.parents, len(reserved.added)
    totals = np.bincount(contexts, counts, num_contexts) + reserved.added
    followed = totals > 0
    totals[~followed] = 1
    seen = np.where(kept, counts - reserved.given, 0) / totals[contexts]
    left = np.bincount(contexts, np.where(kept, reserved.given, counts), num_contexts) + reserved.added
    left = np.where(followed, left / totals, 1.0)
    if interpolate:
        return _Estimates(seen + left[contexts] * below, left)
    unseen_below = 1 - np.bincount(contexts, kept * below, num_contexts)
    none_unseen = unseen_below < _FULL
    backoffs = np.where(none_unseen, 1.0, left / np.where(none_unseen, 1.0, unseen_below))
    return _Estimates(seen / np.where(none_unseen, np.maximum(1 - left, _FULL), 1.0)[contexts], backoffs)


def _additive(counts: NgramCounts, config: SmoothingConfig, predictable: Bools, kept: list[Bools]) -> list[_Estimates]:
    """δ · V is distributed uniformly after every context of full length; shorter contexts are not used."""
    share = predictable / max(1, predictable.sum())
    added = config.additive * predictable.sum()
    levels = []
    for n, level, c, keep in zip(range(1, counts.order + 1), counts.levels, occurrences(counts), kept, strict=True):
        num_contexts = len(counts.levels[n - 2]) if n > 1 else 1
        reserved = Reserved(np.zeros(len(c)), np.full(num_contexts, added))
        estimates = _after_contexts(level, c, reserved, keep, share[level.words], config.interpolate)
        is_longest = n == counts.order
        counts_here = is_longest | counts.begins(n) & (n > 1)
        is_used = is_longest | counts.begins(n - 1) if n > 1 else np.array([is_longest])
        levels.append(
            _Estimates(
                np.where(counts_here, estimates.probabilities, share[level.words]),
                np.where(is_used, estimates.backoffs, 1.0),
            )
        )
    return levels


def _model(counts: NgramCounts, levels: list[_Estimates], kept: list[Bools]) -> BackoffModel:
    """The tree of the kept n-grams; all prefixes and suffixes of a kept n-gram are kept."""
    parents, words, log_probs, backoffs = [], [], [], []
    places: Ints | None = None  # position of each n-gram of the level below among the kept ones, if some are not kept
    contexts: Bools | slice = slice(None)
    for level, estimates, keep in zip(counts.levels, levels, kept, strict=True):
        chosen = slice(None) if keep.all() else keep  # a slice copies nothing
        above = level.parents[chosen]
        parents.append(above if places is None else places[above])
        words.append(level.words[chosen])
        log_probs.append(np.minimum(log(estimates.probabilities[chosen]), 0).astype(np.float32))
        backoffs.append(log(estimates.backoffs[contexts]).astype(np.float32))
        places, contexts = None if chosen is not keep else np.cumsum(keep) - 1, chosen
    return BackoffModel.of_levels(parents, words, log_probs, backoffs[1:], counts.bos_id, counts.eos_id)
