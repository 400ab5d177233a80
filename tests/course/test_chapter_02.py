"""Solutions of chapter 2: continuation counts, and that nothing is lost in interpolation."""

from __future__ import annotations

import numpy as np
import pytest

from heed.statistical.backoff import BackoffModel
from heed.statistical.estimation import adjusted_counts, estimate, occurrences, open_vocabulary
from heed.statistical.ngram_counts import NgramCounts
from heed.statistical.smoothing import SmoothingConfig

PAD, UNK, BOS, EOS = range(4)


class Text:
    """Sentences as numbers, their words in order of appearance."""

    def __init__(self, sentences: list[str], order: int) -> None:
        self.words = {word: EOS + 1 + n for n, word in enumerate(dict.fromkeys(" ".join(sentences).split()))}
        rows = [[self.words[word] for word in sentence.split()] for sentence in sentences]
        self.counts = NgramCounts.of(rows, order, EOS + 1 + len(self.words), BOS, EOS, PAD)

    def model(self) -> BackoffModel:
        return estimate(self.counts, SmoothingConfig(), open_vocabulary(self.counts, UNK))


def test_francisco_is_frequent_and_yet_no_continuation() -> None:
    """Solution 1: 50 against 10 by occurrences, 1 against 10 by the words before."""
    befores = ["the", "a", "this", "that", "my", "your", "his", "her", "our", "their"]
    text = Text(["San Francisco"] * 50 + [f"{before} cat" for before in befores], order=2)
    cat, francisco = text.words["cat"], text.words["Francisco"]
    by_occurrences, by_contexts = occurrences(text.counts)[0], adjusted_counts(text.counts)[0]
    assert (by_occurrences[francisco], by_occurrences[cat]) == (50, 10)
    assert (by_contexts[francisco], by_contexts[cat]) == (1, 10)
    model = text.model()
    new_word = model.follow(model.start[None], np.array([[UNK]]))[:, 0]
    log_probs = model.log_probs(new_word)[0]
    assert log_probs[cat] > log_probs[francisco] + 1


@pytest.mark.parametrize("history", ["", "the old", "old the", "unseen", "dog barked the old"])
def test_probabilities_after_any_history_sum_to_one(history: str) -> None:
    """Solution 2: what D takes from the seen words is γ(h), which multiplies a distribution that sums to one by
    induction; the shortest one does. After a history that was never seen, γ is 1."""
    text = Text(["the old dog barked", "the old cat slept", "an old dog slept", "the dog barked"], order=3)
    ids = [text.words.get(word, UNK) for word in history.split()]
    model = text.model()
    context = model.start[None]
    for id in ids:
        context = model.follow(context, np.array([[id]]))[:, 0]
    assert np.exp(model.log_probs(context)[0]).sum() == pytest.approx(1)
