"""Language models as the search reads them, of words or of their classes: words after states, many at once."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from heed.statistical.backoff import ROOT, BackoffModel
from heed.statistical.predictor import Floats, Ints


class LanguageScorer:
    """Log-probabilities (nats) and states of an n-gram model; a state is a context of it."""

    def __init__(self, model: BackoffModel, classes: Ints | None = None) -> None:
        """`classes` [V]: the class of each word, if the model is of classes; below 0 for words that it leaves out."""
        self.model = model
        self.classes = classes
        self.start = int(model.start[0])
        self.eos_id = model.eos_id

    @cached_property
    def _after(self) -> Ints:
        """[M + 1]: the state after each n-gram, the longest context that it ends with."""
        model = self.model
        num_contexts = len(model.backoffs)
        after = np.arange(len(model.words) + 1)
        nodes = after[num_contexts:].copy()
        shorter, words = model.parents[nodes - 1], model.words[nodes - 1]
        after[num_contexts:] = ROOT
        while len(nodes):
            left = shorter != ROOT
            nodes, shorter, words = nodes[left], model.suffixes[shorter[left]], words[left]
            below = model.child(shorter, words)
            ends = (below > 0) & (below < num_contexts)
            after[nodes[ends]] = below[ends]
            nodes, shorter, words = nodes[~ends], shorter[~ends], words[~ends]
        return after

    def step(self, states: Ints, words: Ints) -> tuple[Floats, Ints]:
        """log p(word | state) and the next state, [N] and [N]."""
        model = self.model
        log_probs = np.zeros(len(words))
        after = np.full(len(words), ROOT)
        left, nodes = np.arange(len(words)), states
        while len(left):
            children = model.child(nodes, words[left])
            stored = children > 0
            log_probs[left[stored]] += model.log_probs_of[children[stored] - 1]
            after[left[stored]] = self._after[children[stored]]
            left, nodes = left[~stored], nodes[~stored]
            log_probs[left] += model.backoffs[nodes]
            nodes = model.suffixes[nodes]
        return log_probs, after

    def phrases(self, states: Ints, words: Ints, lengths: Ints) -> tuple[Floats, Ints]:
        """The sum over the words of each phrase after a state, and the state after it; `words` [N, L] are padded."""
        sums, after = np.zeros(len(states)), states.copy()
        is_word = np.arange(words.shape[1]) < lengths[:, None]
        if self.classes is not None:
            words = self.classes[words]
            is_word &= words >= 0
        for place in range(int(lengths.max(initial=0))):
            here = np.flatnonzero(is_word[:, place])
            log_probs, after[here] = self.step(after[here], words[here, place])
            sums[here] += log_probs
        return sums, after

    def end(self, states: Ints) -> Floats:
        """log p of the end of the sentence after each state."""
        return self.step(states, np.full(len(states), self.eos_id))[0]
