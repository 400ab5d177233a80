"""Classes of target words, and an n-gram model of them, next to the model of the words themselves.

    log p(c(w_1) ... c(w_n))        c(w): the class of a word, by Brown clustering (Brown et al. 1992)

A class occurs far more often than its words, so this model learns longer sequences from few pairs than a model of words
(Wuebker et al. 2013). Words that are not in the targets of the pairs share one class. Of a word that is spelled by
several tokens, only the space before it has this class: letters have none, unless the targets have them as words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heed.statistical.backoff import BackoffModel
from heed.statistical.brown import Pairs, cluster_words
from heed.statistical.predictor import Bools, Ints
from heed.statistical.saved_arrays import Arrays, read_numbers
from heed.text.vocabulary import BOS_ID, EOS_ID, PAD_ID, UNK_ID

LEFT_OUT = -1
"""In place of the class of a token that continues a word which is spelled."""
FIRST = UNK_ID + 1
"""The class of the first cluster. Padding, the ends of sentences and unknown words are classes of their own."""
_WHAT = "a phrase-based translator"


@dataclass(frozen=True, eq=False)
class ClassLanguage:
    """The class of each word, and the model of the classes."""

    classes: Ints
    """[V]: the class of each token, or LEFT_OUT for a letter of a word that is spelled."""
    model: BackoffModel

    def arrays(self) -> dict[str, NDArray[np.generic]]:
        """The arrays to save."""
        return {**self.model.arrays(), "classes": self.classes.astype(np.int32)}

    @classmethod
    def from_arrays(cls, arrays: Arrays, num_words: int) -> ClassLanguage:
        """Read what `arrays` returned. Raises DataError for anything else."""
        most = arrays["words"].size if "words" in arrays else 0  # the n-grams of the model: each class is one
        classes = read_numbers(arrays, "classes", _WHAT, most, num_words, LEFT_OUT)
        num_classes = max(FIRST, int(classes.max(initial=0)) + 1)
        return cls(classes, BackoffModel.from_arrays(arrays, num_classes, BOS_ID, EOS_ID))


def word_classes(sentences: Iterable[Sequence[int]], spelling: Bools, num_classes: int) -> Ints:
    """The class of each of V tokens [V]: `num_classes` clusters of the words of sentences.

    If these have fewer words, each has a class. `spelling` [V]: the letters that unknown words are spelled by.
    """
    size = len(spelling)
    bounded = (np.array([BOS_ID, *sentence, EOS_ID], dtype=np.int64) for sentence in sentences)
    keys, counts = np.unique(np.concatenate([ids[:-1] * size + ids[1:] for ids in bounded]), return_counts=True)
    pairs = Pairs(keys // size, keys % size, counts, size)
    seen = np.setdiff1d(pairs.right, [EOS_ID])
    clusters = cluster_words(pairs, min(num_classes, len(seen)), (BOS_ID, EOS_ID)).clusters
    classes = FIRST + clusters
    classes[clusters < 0] = UNK_ID
    classes[(clusters < 0) & spelling] = LEFT_OUT
    classes[[PAD_ID, BOS_ID, EOS_ID]] = PAD_ID, BOS_ID, EOS_ID
    return np.asarray(classes, dtype=np.int64)


def in_classes(classes: Ints, sentences: Iterable[Sequence[int]]) -> list[list[int]]:
    """The classes of the words of sentences, without those that are left out."""
    each = (classes[np.asarray(sentence, dtype=np.int64)] for sentence in sentences)
    return [found[found >= 0].tolist() for found in each]
