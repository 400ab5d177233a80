"""Linear interpolation of backoff models: p(w | h) = Σ_k λ_k p_k(w | h) (Jelinek & Mercer 1980).

The weights λ are estimated by EM on other text. `interpolated` makes one backoff model of several, as is usual for
statistical translation: it has the n-grams of all, each with its interpolated probability. What none of them has after
a context is backed off to as in any backoff model, which is an approximation of the sum there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from heed.statistical.backoff import BackoffModel
from heed.statistical.predictor import Floats, Ints, log

_ROUNDS = 100
_CLOSE = 1e-4
"""Weights that change by less have converged."""
_FULL = 1e-9
"""A context that leaves less than this to unseen words leaves nothing."""


def interpolation_weights(models: Sequence[BackoffModel], sentences: Sequence[Sequence[int]]) -> Floats:
    """The weights with which the models together make these sentences likeliest [K]; equal ones without sentences."""
    weights = np.full(len(models), 1 / len(models))
    if not sentences:
        return weights
    probs = np.exp([_log_probs_of_text(model, sentences) for model in models])  # [K, tokens]
    for _ in range(_ROUNDS):
        shares = weights[:, None] * probs
        new = (shares / shares.sum(axis=0)).mean(axis=1)
        converged = np.abs(new - weights).max() < _CLOSE
        weights = new
        if converged:
            break
    return weights


def _log_probs_of_text(model: BackoffModel, sentences: Sequence[Sequence[int]]) -> Floats:
    """The log-probability of each token of some sentences and of their ends."""
    ids = np.array([id for sentence in sentences for id in (*sentence, model.eos_id)], dtype=np.int64)
    after = model.follow(model.start[None], ids[None])[0]
    return model.log_prob(np.concatenate([model.start[None], after[:-1]]), ids)


def interpolated(models: Sequence[BackoffModel], weights: Floats) -> BackoffModel:
    """One model with the n-grams of all; the models have one vocabulary, and every suffix of an n-gram.

    Its probabilities of stored n-grams are those of the linear interpolation, and each context's sum to 1.
    """
    trees = [_Tree(model) for model in models]
    below = _Level.root(len(models))
    parents, words, log_probs, backoffs = [], [], [], []
    for length in range(1, max(model.order for model in models) + 1):
        level = below.extended(trees, weights, length)
        parents.append(level.parents)
        words.append(level.words)
        log_probs.append(np.minimum(log(level.probs), 0))
        backoffs.append(log(level.backoffs_below))
        below = level
    first = models[0]
    return BackoffModel.of_levels(parents, words, log_probs, backoffs[1:], first.bos_id, first.eos_id)


class _Tree:
    """A model, and the positions of its n-grams among those of the same length of all models."""

    def __init__(self, model: BackoffModel) -> None:
        self.model = model
        self.positions = np.zeros(len(model.words) + 1, dtype=np.int64)
        """Of each node, from the root."""

    def nodes(self, length: int) -> Ints:
        """Its n-grams of this length."""
        firsts = self.model.level_starts
        return np.arange(*firsts[length : length + 2]) if length <= self.model.order else np.empty(0, dtype=np.int64)

    def keys(self, nodes: Ints) -> Ints:
        """One number for each n-gram: the position of its context, and its word."""
        contexts = self.positions[self.model.parents[nodes - 1]]
        return np.asarray(contexts * self.model.vocab_size + self.model.words[nodes - 1])


@dataclass(frozen=True)
class _Level:
    """The n-grams of one length of all models [N], sorted by context and word."""

    keys: Ints
    parents: Ints
    """The position of each context in the level below."""
    words: Ints
    suffixes: Ints
    """The position of each n-gram without its first word in the level below."""
    probs: Floats
    """p(w | h)."""
    backoffs_below: Floats
    """The back-off weight of each context of the level below."""
    states: Sequence[Ints]
    """The context after each n-gram in each model."""

    @classmethod
    def root(cls, num_models: int) -> _Level:
        """The empty n-gram."""
        nothing, one = np.zeros(1, dtype=np.int64), np.ones(1)
        return cls(nothing, nothing, nothing, nothing, one, one, [nothing] * num_models)

    def extended(self, trees: Sequence[_Tree], weights: Floats, length: int) -> _Level:
        """The n-grams that are longer by a word."""
        vocab_size = trees[0].model.vocab_size
        nodes = [tree.nodes(length) for tree in trees]
        keys = np.unique(np.concatenate([tree.keys(own) for tree, own in zip(trees, nodes, strict=True)]))
        parents, words = keys // vocab_size, keys % vocab_size
        suffixes = np.searchsorted(self.keys, self.suffixes[parents] * vocab_size + words) if length > 1 else 0 * keys
        probs, states = np.zeros(len(keys)), []
        for tree, own, before, weight in zip(trees, nodes, self.states, weights, strict=True):
            probs += weight * np.exp(tree.model.log_prob(before[parents][:, None], words))
            tree.positions[own] = np.searchsorted(keys, tree.keys(own))
            own = own[own < len(tree.model.backoffs)]
            state = before[suffixes]
            state[tree.positions[own]] = own
            states.append(state)
        unseen = 1 - np.bincount(parents, probs, len(self.keys))
        unseen_below = 1 - np.bincount(parents, self.probs[suffixes], len(self.keys))
        backoffs = np.where(unseen_below > _FULL, unseen.clip(0) / unseen_below.clip(_FULL), 1.0)
        return _Level(keys, parents, words, suffixes, probs, backoffs, states)
