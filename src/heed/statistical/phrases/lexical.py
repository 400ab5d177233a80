"""Lexical weights of phrase pairs (Koehn, Och & Marcu 2003, section 4.4).

    w(e | f)          = count(e, f) / Σ_e' count(e', f)                   over the links of the text, e' may be empty
    p_w(e̅ | f̅, a)   = Π_i  1 / |{j : (i, j) in a}| Σ_{(i, j) in a} w(e_i | f_j)

A word without a link is linked to the empty word. The links of a phrase pair are those of its words, since it is
consistent; so a word has the same weight in every phrase, and the weight of a phrase is a difference of two sums.
"""

from __future__ import annotations

import numpy as np

from heed.statistical.predictor import Floats, Ints

NULL = -1


def word_weights(words: Ints, others: Ints, links: Ints) -> Floats:
    """The logarithm of each word's weight given the words that it is linked to.

    `words` [T] are predicted from `others` [S]; `links` [L, 2] are positions in `others` and `words`.
    """
    linked = np.zeros(len(words), dtype=np.int64)
    np.add.at(linked, links[:, 1], 1)
    alone = np.flatnonzero(linked == 0)
    places = np.concatenate([links[:, 1], alone])
    given = np.concatenate([others[links[:, 0]], np.full(len(alone), NULL)]) + 1
    _keys, inverse, counts = np.unique(given * (words.max(initial=0) + 1) + words[places], False, True, True)
    unlinked = np.ones(len(others), dtype=np.bool_)
    unlinked[links[:, 0]] = False
    totals = np.bincount(np.concatenate([given, others[unlinked] + 1]))
    shares = counts[inverse] / totals[given]
    sums = np.bincount(places, shares, len(words))
    return np.asarray(np.log(sums / np.maximum(linked, 1)))


def span_sums(weights: Floats, begins: Ints, ends: Ints) -> Floats:
    """The sum of the weights of each span."""
    total = np.concatenate([np.zeros(1), np.cumsum(weights)])
    return np.asarray(total[ends] - total[begins])
