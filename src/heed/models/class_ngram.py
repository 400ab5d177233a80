"""Class n-gram model (Brown et al. 1992): n-grams of classes, which are clusters of words with similar neighbours."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np
from pydantic import Field

from heed.models.counting import Counting
from heed.models.model import ModelConfig
from heed.models.ngram import describe_ngrams
from heed.statistical.brown import Clustering, Pairs, cluster_words
from heed.statistical.cache import CacheConfig
from heed.statistical.class_ngrams import BOS, EOS, FIRST, PAD, ClassModel
from heed.statistical.estimation import estimate, uniform
from heed.statistical.ngram_counts import NgramCounts
from heed.statistical.predictor import Ints, Predictor
from heed.statistical.saved_arrays import Arrays
from heed.statistical.smoothing import SmoothingConfig


class ClassNgramConfig(SmoothingConfig, CacheConfig, ModelConfig):
    """A class n-gram model."""

    kind: Literal["class_ngram"] = "class_ngram"
    """Kind of model: the key in `MODELS`."""
    order: int = Field(default=3, ge=1, le=20)
    """n: a class depends on the classes of the n - 1 words before it."""
    num_classes: int = Field(default=100, ge=1, le=5000)
    """Number of clusters of words; the time of clustering grows with its square."""

    def summary(self) -> str:
        return f"{self.num_classes:,} classes of words, predicted by {describe_ngrams(self.order, self, self)}"


class ClassNgram(Counting):
    """P(w_t | the classes of the last n - 1 words) from counts."""

    Config = ClassNgramConfig
    config: ClassNgramConfig
    papers = "class n-grams (Brown et al. 1992)"

    def unestimated(self) -> Predictor:
        """All words in one class, and the uniform distribution."""
        num_words = self.vocabularies.tgt_size
        one = Clustering(np.zeros(num_words, dtype=np.int64), np.empty((0, 2), dtype=np.int64), 0.0)
        classes = self._classes(one)
        model = uniform(np.arange(FIRST + 1) >= EOS, BOS, EOS)
        return self.with_cache(
            ClassModel.of(classes, np.zeros_like(classes), self.predictable, model, one), self.config
        )

    def estimated(self, sequences: Iterable[Sequence[int]]) -> Predictor:
        """Words clustered by the pairs of the text, then n-grams of classes counted."""
        ids = self.vocabularies
        sentences = [list(sequence) for sequence in sequences]
        counts = self.counts(sentences, order=2)
        clustering = cluster_words(_pairs(counts), self.config.num_classes, (ids.bos_id, ids.eos_id))
        classes = self._classes(clustering)
        num_classes = self.config.num_classes + FIRST
        class_of = classes.tolist()
        class_sentences = ([class_of[word] for word in sentence] for sentence in sentences)
        class_counts = NgramCounts.of(class_sentences, self.config.order, num_classes, BOS, EOS, PAD)
        model = estimate(class_counts, self.config, np.arange(num_classes) >= EOS)
        frequencies = counts.levels[0].counts
        return self.with_cache(ClassModel.of(classes, frequencies, self.predictable, model, clustering), self.config)

    def restored(self, arrays: Arrays) -> Predictor:
        """The classes and the tree of their n-grams."""
        model = ClassModel.from_arrays(arrays, self.vocabularies.tgt_size, self.config.num_classes)
        return self.with_cache(model, self.config)

    def _classes(self, clustering: Clustering) -> Ints:
        """The class of each word; an unseen word joins the last class, that of rare words."""
        ids = self.vocabularies
        unseen = max(0, int(clustering.clusters.max(initial=0)))
        classes = np.where(clustering.clusters < 0, unseen, clustering.clusters) + FIRST
        classes[[ids.pad_id, ids.bos_id, ids.eos_id]] = PAD, BOS, EOS
        return classes


def _pairs(counts: NgramCounts) -> Pairs:
    level = counts.levels[1]
    return Pairs(level.parents, level.words, level.counts, counts.vocab_size)
