"""Class n-gram model (Brown et al. 1992): words are clustered by their neighbours, and their classes are counted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np
from pydantic import Field

from heed.models.counting import Arrays, Counting
from heed.models.model import ModelConfig
from heed.models.ngram import describe_ngrams
from heed.nn.contract import Vocabularies
from heed.statistical.brown import Clustering, Pairs, cluster_words
from heed.statistical.cache import CacheConfig, Cached
from heed.statistical.class_ngrams import BOS, EOS, FIRST, PAD, ClassModel
from heed.statistical.estimation import estimate, uniform
from heed.statistical.ngram_counts import NgramCounts
from heed.statistical.predictor import Ints, Predictor
from heed.statistical.smoothing import SmoothingConfig


class ClassNgramConfig(SmoothingConfig, CacheConfig, ModelConfig):
    """A class n-gram model."""

    kind: Literal["class_ngram"] = "class_ngram"
    """Which model this is."""
    order: int = Field(default=3, ge=1, le=20)
    """n: a class depends on those of the n - 1 words before it."""
    num_classes: int = Field(default=100, ge=1, le=5000)
    """Clusters of words; the time to find them grows with the square of their number."""

    def summary(self) -> str:
        """The model in a phrase, for reports."""
        return f"classes of words, {self.num_classes:,} of them, and of these {describe_ngrams(self.order, self, self)}"


class ClassNgram(Counting):
    """P(w_t | the classes of the last n - 1 words), counted."""

    Config = ClassNgramConfig
    papers = "class n-grams (Brown et al. 1992)"

    def __init__(self, config: ClassNgramConfig, vocabularies: Vocabularies) -> None:
        super().__init__(vocabularies)
        self.config = config
        one = Clustering(np.zeros(vocabularies.tgt_size, dtype=np.int64), np.empty((0, 2), dtype=np.int64), 0.0)
        classes = self._classes(one)
        model = uniform(np.arange(FIRST + 1) >= EOS, BOS, EOS)
        nothing = np.zeros_like(classes)
        self.hold(self._with_cache(ClassModel.of(classes, nothing, self.predictable, model, one)))

    def estimated(self, sequences: Iterable[Sequence[int]]) -> Predictor:
        """Cluster by the pairs of the text, then count its classes."""
        ids = self.vocabularies
        sentences = [list(sequence) for sequence in sequences]
        counts = NgramCounts.of(sentences, 2, ids.tgt_size, ids.bos_id, ids.eos_id, ids.pad_id)
        clustering = cluster_words(_pairs(counts), self.config.num_classes, (ids.bos_id, ids.eos_id))
        classes = self._classes(clustering)
        num_classes = self.config.num_classes + FIRST
        class_of = classes.tolist()
        in_classes = ([class_of[word] for word in sentence] for sentence in sentences)
        of_classes = NgramCounts.of(in_classes, self.config.order, num_classes, BOS, EOS, PAD)
        model = estimate(of_classes, self.config, np.arange(num_classes) >= EOS)
        frequencies = counts.levels[0].counts
        return self._with_cache(ClassModel.of(classes, frequencies, self.predictable, model, clustering))

    def restored(self, arrays: Arrays) -> Predictor:
        """The classes and the tree of their n-grams."""
        return self._with_cache(ClassModel.from_arrays(arrays, self.vocabularies.tgt_size, self.config.num_classes))

    def _classes(self, clustering: Clustering) -> Ints:
        """The class of each word; one that was not seen joins the last class, which is that of rare words."""
        ids = self.vocabularies
        unseen = max(0, int(clustering.clusters.max(initial=0)))
        classes = np.where(clustering.clusters < 0, unseen, clustering.clusters) + FIRST
        classes[[ids.pad_id, ids.bos_id, ids.eos_id]] = PAD, BOS, EOS
        return classes

    def _with_cache(self, model: ClassModel) -> Predictor:
        ids = self.vocabularies
        if not self.config.cache_share:
            return model
        return Cached(model, self.config, ids.eos_id, (ids.pad_id, ids.bos_id, ids.eos_id))


def _pairs(counts: NgramCounts) -> Pairs:
    level = counts.levels[1]
    return Pairs(level.parents, level.words, level.counts, counts.vocab_size)
