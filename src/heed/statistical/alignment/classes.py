"""Word classes of a text, by Brown clustering (`heed.statistical.brown`), as Models 4 and 5 use them."""

from __future__ import annotations

import numpy as np

from heed.statistical.alignment.pairs import FIRST, Sentences
from heed.statistical.brown import Pairs, cluster_words
from heed.statistical.predictor import Ints

NUM_CLASSES = 20
"""Classes of words; 0 is the class of the empty word and of unknown ones."""


def word_classes(sentences: Sentences, size: int) -> Ints:
    """The class of each of `size` words, from 1; words beyond the clusters of a small text share the last one."""
    ids = sentences.ids
    inside = np.ones(max(0, len(ids) - 1), dtype=np.bool_)
    ends = sentences.starts[1:-1]
    inside[ends[(ends > 0) & (ends < len(ids))] - 1] = False
    keys, counts = np.unique(ids[:-1][inside] * size + ids[1:][inside], return_counts=True)
    num_classes = min(NUM_CLASSES, len(np.unique([keys // size, keys % size])))
    classes = np.zeros(size, dtype=np.int64)
    if num_classes < 2:
        classes[FIRST:] = 1
        return classes
    clusters = cluster_words(Pairs(keys // size, keys % size, counts, size), num_classes).clusters
    classes[FIRST:] = np.where(clusters < 0, num_classes - 1, clusters)[FIRST:] + 1
    return classes
