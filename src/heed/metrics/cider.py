"""CIDEr-D, a metric of image captions (Vedantam, Zitnick & Parikh 2015, sections 3 and 5).

For n-grams of one length, g(s) has for each n-gram of a sentence its count times log N / df, where N is the number of
images and df that of images with the n-gram in a reference. With the lengths l (in bigrams, as in the published code):

    CIDEr-D_n(c, refs) = 10 / m Σ_j exp(-(l_c - l_j)² / (2 · 6²)) · min(g(c), g(r_j)) · g(r_j) / (‖g(c)‖ ‖g(r_j)‖)

and CIDEr-D is the mean over n = 1 to 4 and over all images, times 100 as papers write it. Words are in lower case and
without punctuation; they are not stemmed, as in the published code. The frequencies df are those of the test set, so
scores on different test sets, or on parts of one, are not comparable.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heed.metrics.metric import OutputMetric, Rows
from heed.metrics.significance import SEED
from heed.metrics.translation import bleu_tokenizer, word_cutter

LONGEST = 4
SIGMA = 6.0
Ngram = tuple[str, ...]


@dataclass(frozen=True)
class _Vectors:
    """The weighted n-grams of a sentence by their length, their norms, and the number of bigrams."""

    weights: Sequence[Mapping[Ngram, float]]
    norms: Sequence[float]
    length: int


@dataclass(frozen=True)
class CiderD(OutputMetric):
    """CIDEr-D: similarity of the n-grams of a caption and its references, which count less the commoner they are."""

    title = "CIDEr-D"

    def counts(self, outputs: Sequence[str], references: Sequence[str]) -> Rows:
        return self.counts_of_several(outputs, [[reference] for reference in references])

    def counts_of_several(self, outputs: Sequence[str], references: Sequence[Sequence[str]]) -> Rows:
        """The score of each sentence, and 1."""
        cut = word_cutter(bleu_tokenizer(self.language, self.tokenised))

        def ngrams(text: str) -> Counter[Ngram]:
            words = [word for word in cut(text.lower()) if any(map(str.isalnum, word))]
            return Counter(tuple(words[i : i + n]) for n in range(1, LONGEST + 1) for i in range(len(words) - n + 1))

        counted = [[ngrams(text) for text in of_one] for of_one in references]
        images_with = Counter(ngram for of_one in counted for ngram in set().union(*of_one))
        of_images = math.log(len(references))
        rarity = {ngram: of_images - math.log(count) for ngram, count in images_with.items()}
        rows = []
        for output, of_one in zip(outputs, counted, strict=True):
            candidate = _vectors(ngrams(output), rarity, of_images)
            similarities = [_similarity(candidate, _vectors(each, rarity, of_images)) for each in of_one]
            rows.append([1000 * sum(similarities) / len(similarities), 1.0])
        return rows

    def value(self, totals: NDArray[np.float64]) -> float:
        return float(totals[0] / totals[1])

    def signature(self, intervals: int) -> str:
        tokenizer = bleu_tokenizer(self.language, self.tokenised)
        text = (
            f"nrefs:{self.num_references or 'var'}|case:lc|tok:{tokenizer}|punct:no|n:{LONGEST}|sigma:{SIGMA:g}|df:test"
        )
        return text + (f"|bs:{intervals}|seed:{SEED}" if intervals else "")


def _vectors(counts: Counter[Ngram], rarity: Mapping[Ngram, float], unseen: float) -> _Vectors:
    """`unseen`: the weight of an n-gram that is in no reference."""
    weights: list[dict[Ngram, float]] = [{} for _ in range(LONGEST)]
    for ngram, count in counts.items():
        weights[len(ngram) - 1][ngram] = count * rarity.get(ngram, unseen)
    norms = [math.sqrt(sum(weight * weight for weight in of_n.values())) for of_n in weights]
    length = sum(count for ngram, count in counts.items() if len(ngram) == 2)
    return _Vectors(weights, norms, length)


def _similarity(candidate: _Vectors, reference: _Vectors) -> float:
    """The mean over the lengths of n-grams, from 0 to 1."""
    total = 0.0
    for of_c, of_r, norm_c, norm_r in zip(
        candidate.weights, reference.weights, candidate.norms, reference.norms, strict=True
    ):
        common = sum(min(weight, of_r[ngram]) * of_r[ngram] for ngram, weight in of_c.items() if ngram in of_r)
        total += common / (norm_c * norm_r) if norm_c and norm_r else 0.0
    return total / LONGEST * math.exp(-((candidate.length - reference.length) ** 2) / (2 * SIGMA**2))
