"""Estimation of backoff models from n-gram counts.

Modified Kneser-Ney is what KenLM's lmplz computes (Heafield et al. 2013, section 3): the longest n-grams, and those
that begin a sentence, count by how often they occur, all shorter ones by how many different words stand before them.

    u(w | h) = (c(h w) - given(h w)) / (Σ_w c(h w) + added(h))         `given`, `added`: heed.statistical.smoothing
    γ(h)     = 1 - Σ_w u(w | h) over the n-grams that are kept: what is left for shorter ones

    interpolated:  p(w | h) = u(w | h) + γ(h) p(w | h'),  bow(h) = γ(h)
    backed off:    p(w | h) = u(w | h),                   bow(h) = γ(h) / (1 - Σ_w p(w | h'))  over the same n-grams

The words themselves share what is left of their counts out evenly. Additive smoothing does so after every context of
n - 1 words (fewer at the beginning of a sentence), and shorter ones tell it nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from heed.statistical.backoff import BackoffModel
from heed.statistical.ngram_counts import NEVER, Level, NgramCounts
from heed.statistical.predictor import Bools, Floats, Ints, log
from heed.statistical.smoothing import Reserved, SmoothingConfig, reserve

_FULL = 1e-9
"""Where shorter n-grams give less than this to unseen words, there are none."""


def estimate(counts: NgramCounts, config: SmoothingConfig, predictable: Bools) -> BackoffModel:
    """The model of these counts.

    `predictable` [V] says which tokens can follow at all: those of a fixed vocabulary, or what `open_vocabulary` says.
    Raises DataError where `config` asks for discounts that these counts cannot give.
    """
    kept = [level.counts > config.threshold(n) for n, level in enumerate(counts.levels, start=1)]
    kept[0][:] = True
    if config.smoothing == "additive":
        levels = _additive(counts, config, predictable, kept)
    else:
        levels = _hierarchical(counts, config, predictable, kept)
    return _model(counts, levels, kept)


def open_vocabulary(counts: NgramCounts, unk_id: int) -> Bools:
    """What an open vocabulary predicts: the words that were seen, and `<unk>` for all others."""
    predictable = counts.levels[0].counts > 0
    predictable[counts.bos_id] = False
    predictable[unk_id] = True
    return predictable


def uniform(predictable: Bools, bos_id: int, eos_id: int) -> BackoffModel:
    """Every token that can follow is as likely as any other."""
    places = np.arange(len(predictable))
    log_probs = log(predictable / max(1, predictable.sum()))
    return BackoffModel.of_levels([np.zeros_like(places)], [places], [log_probs], [], bos_id, eos_id)


# --- which counts -----------------------------------------------------------------------------------------


def occurrences(counts: NgramCounts) -> list[Ints]:
    """How often each n-gram occurs; begin of sentence is never predicted, so as a word it counts nothing."""
    words = counts.levels[0]
    return [np.where(words.words == counts.bos_id, 0, words.counts), *(level.counts for level in counts.levels[1:])]


def adjusted_counts(counts: NgramCounts) -> list[Ints]:
    """How many different words stand before each n-gram; how often it occurs, where it is long or begins a sentence."""
    found = occurrences(counts)
    for n in range(1, counts.order):
        before = np.bincount(counts.levels[n].suffixes, minlength=len(found[n - 1]))
        found[n - 1] = np.where(counts.begins(n) & (n > 1), found[n - 1], before)
    return found


def as_lmplz_counts(counts: NgramCounts, adjusted: list[Ints]) -> list[Ints]:
    """The adjusted counts, but of the last n-gram of each length how often it occurs (kpu/kenlm issue 427).

    Last is the one whose words, read from the last to the first, are the latest; words come in the order in which they
    are first seen, begin and end of sentence before all others.
    """
    found = [*adjusted]
    rank = np.where(counts.first_seen == NEVER, -3, counts.first_seen)
    rank[[counts.bos_id, counts.eos_id]] = -2, -1
    if not counts.num_tokens:
        return found
    last = int(np.argmax(rank))
    for n in range(1, counts.order):
        found[n - 1] = found[n - 1].copy()
        found[n - 1][last] = counts.levels[n - 1].counts[last]
        longer = np.flatnonzero(counts.levels[n].suffixes == last)
        if not len(longer):
            break
        last = int(longer[np.argmax(rank[counts.first_words[n][longer]])])
    return found


# --- which probabilities ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Estimates:
    """The probabilities of the n-grams of one length [M], and the back-off weights of the level below [H]."""

    probabilities: Floats
    backoffs: Floats


def _hierarchical(
    counts: NgramCounts, config: SmoothingConfig, predictable: Bools, kept: list[Bools]
) -> list[_Estimates]:
    """Each length falls back on the one below."""
    counted = statistics = occurrences(counts)
    if config.smoothing == "kneser-ney":
        counted = statistics = adjusted_counts(counts)
        if config.lmplz_quirk:
            statistics = as_lmplz_counts(counts, counted)
    unigrams = _words(config, counted[0], statistics[0], predictable)
    found = [_Estimates(unigrams, np.zeros(1))]
    for level, c, t, keep in zip(counts.levels[1:], counted[1:], statistics[1:], kept[1:], strict=True):
        below = found[-1].probabilities
        reserved = reserve(config, c, t, level.parents, len(below))
        found.append(_behind(level, c, reserved, keep, below[level.suffixes], config.interpolate))
    return found


def _words(config: SmoothingConfig, counts: Ints, statistics: Ints, predictable: Bools) -> Floats:
    """p(w), [V]. What the counts leave is shared out evenly: among all words, or among those that were not seen."""
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


def _behind(
    level: Level, counts: Ints, reserved: Reserved, kept: Bools, below: Floats, interpolate: bool
) -> _Estimates:
    """The n-grams of one length; `below` is what the level below gives the last word of each, p(w | h') [M]."""
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
    """Words share δ · V out evenly after every context that is as long as it can be; shorter ones say nothing."""
    share = predictable / max(1, predictable.sum())
    added = config.additive * predictable.sum()
    found = []
    for n, level, c, keep in zip(range(1, counts.order + 1), counts.levels, occurrences(counts), kept, strict=True):
        num_contexts = len(counts.levels[n - 2]) if n > 1 else 1
        reserved = Reserved(np.zeros(len(c)), np.full(num_contexts, added))
        estimates = _behind(level, c, reserved, keep, share[level.words], config.interpolate)
        is_longest = n == counts.order
        counts_here = is_longest | counts.begins(n) & (n > 1)
        says_something = is_longest | counts.begins(n - 1) if n > 1 else np.array([is_longest])
        found.append(
            _Estimates(
                np.where(counts_here, estimates.probabilities, share[level.words]),
                np.where(says_something, estimates.backoffs, 1.0),
            )
        )
    return found


def _model(counts: NgramCounts, levels: list[_Estimates], kept: list[Bools]) -> BackoffModel:
    """The tree of what is kept. Whatever is kept has all that it begins and ends with."""
    parents, words, log_probs, backoffs = [], [], [], []
    places = np.zeros(1, dtype=np.int64)  # where each n-gram of the level below stands among those that are kept
    contexts = np.ones(1, dtype=np.bool_)
    for level, estimates, keep in zip(counts.levels, levels, kept, strict=True):
        parents.append(places[level.parents[keep]])
        words.append(level.words[keep])
        log_probs.append(np.minimum(log(estimates.probabilities[keep]), 0))
        backoffs.append(log(estimates.backoffs[contexts]))
        places, contexts = np.cumsum(keep) - 1, keep
    return BackoffModel.of_levels(parents, words, log_probs, backoffs[1:], counts.bos_id, counts.eos_id)
