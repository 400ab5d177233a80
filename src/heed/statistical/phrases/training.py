"""Estimation of a phrase-based translator from sentence pairs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice

import numpy as np

from heed.statistical.alignment import align
from heed.statistical.alignment.smoothing import Smoothing
from heed.statistical.backoff import BackoffModel
from heed.statistical.derivation import Bitext
from heed.statistical.estimation import estimate
from heed.statistical.ngram_counts import NgramCounts
from heed.statistical.phrases.casing import SentenceCase
from heed.statistical.phrases.derivations import Derivation
from heed.statistical.phrases.extraction import LinkedText
from heed.statistical.phrases.features import beginning_weights
from heed.statistical.phrases.search import Limits
from heed.statistical.phrases.settings import PhraseSettings
from heed.statistical.phrases.table import score_phrases
from heed.statistical.phrases.translator import PhraseTranslator
from heed.statistical.phrases.tuning import NBEST, tune
from heed.statistical.predictor import Floats
from heed.statistical.smoothing import SmoothingConfig
from heed.text.vocabulary import BOS_ID, EOS_ID, PAD_ID

Sentences = list[list[int]]
_SEED = 1
_SMOOTHING = Smoothing("variational")
"""Of the aligner's table: with the collapsed one, phrases have 0.5 BLEU less before tuning (docs/results.md)."""


def estimate_translator(bitext: Bitext, settings: PhraseSettings) -> PhraseTranslator:
    """Align the words, extract and count the phrases, estimate the language model, and tune the weights."""
    num_words = len(bitext.tokenizer.vocabulary)
    case = SentenceCase.none(num_words)
    if settings.truecase:
        case = SentenceCase.of(bitext.tokenizer, [side for pair in bitext.pairs for side in pair])
    sources, targets = (_inside(case, side) for side in zip(*bitext.pairs, strict=True))
    bitext.report(f"aligning the words of {len(sources):,} pairs ({settings.aligner})")
    links = align(_spelled(sources), _spelled(targets), settings.aligner, smoothing=_SMOOTHING)
    text = LinkedText.of(zip(sources, targets, strict=True), links, settings.max_phrase)
    table = score_phrases(text, num_words)
    bitext.report(f"{len(table):,} phrase pairs of {len(text.spans):,} occurrences")
    language = language_model(targets, settings.lm_order, num_words)
    limits = Limits(settings.tuning_width, settings.stack_threshold, settings.distortion_limit)
    untuned = PhraseTranslator(table, language, case, beginning_weights(), settings.options_per_phrase, limits)
    return tuned(untuned, bitext, settings.tuning_rounds)


def tuned(translator: PhraseTranslator, bitext: Bitext, rounds: int) -> PhraseTranslator:
    """The translator with weights tuned on the validation pairs."""
    if not rounds or not bitext.valid:
        return translator
    sources = [translator.case.enter(source)[0] for source, _ in bitext.valid]
    references = [translator.case.enter(reference)[0] for _, reference in bitext.valid]

    def translate(weights: Floats) -> list[list[Derivation]]:
        trial = translator.with_weights(weights)
        return [list(islice(trial.all(words), NBEST)) for words in sources]

    words_of = translator.case.words
    weights = tune(translate, references, words_of, translator.weights, rounds, _SEED, bitext.report)
    return translator.with_weights(weights)


def language_model(sentences: Sequence[Sequence[int]], order: int, num_words: int) -> BackoffModel:
    """The n-gram model of the target with modified Kneser-Ney smoothing."""
    counts = NgramCounts.of(sentences, order, num_words, BOS_ID, EOS_ID, PAD_ID)
    predictable = np.ones(num_words, dtype=np.bool_)
    predictable[[PAD_ID, BOS_ID]] = False
    return estimate(counts, SmoothingConfig(), predictable)


def _inside(case: SentenceCase, sentences: Iterable[Sequence[int]]) -> Sentences:
    """The tokens of sentences, the first word of each as it is inside one."""
    return [[id for word in case.enter(ids)[0] for id in word] for ids in sentences]


def _spelled(sentences: Sentences) -> list[list[str]]:
    """Tokens as the words of an aligner."""
    return [[str(id) for id in ids] for ids in sentences]
