"""Estimation of a phrase-based translator from sentence pairs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice

import numpy as np

from heed.statistical.alignment.smoothing import Smoothing
from heed.statistical.backoff import BackoffModel
from heed.statistical.derivation import Bitext
from heed.statistical.estimation import estimate
from heed.statistical.interpolation import interpolated, interpolation_weights
from heed.statistical.ngram_counts import NgramCounts
from heed.statistical.phrases.aligned import AlignedBitext, inside
from heed.statistical.phrases.casing import SentenceCase
from heed.statistical.phrases.derivations import PhraseDerivation
from heed.statistical.phrases.extraction import LinkedText
from heed.statistical.phrases.features import beginning_weights
from heed.statistical.phrases.settings import PhraseSettings
from heed.statistical.phrases.table import score_phrases
from heed.statistical.phrases.translator import PhraseTranslator
from heed.statistical.phrases.tuning import NBEST, tune
from heed.statistical.phrases.word_classes import ClassLanguage, in_classes, word_classes
from heed.statistical.predictor import Floats
from heed.statistical.smoothing import SmoothingConfig
from heed.text.vocabulary import BOS_ID, EOS_ID, PAD_ID

_SEED = 1
_SMOOTHING = Smoothing("variational", 0.01)
"""Of the aligner's table: with the collapsed one, phrases have 0.5 BLEU less before tuning.

Measured in docs/results/translation-models.md."""


def estimate_translator(bitext: Bitext, settings: PhraseSettings) -> PhraseTranslator:
    """Align the words, extract and count the phrases, estimate the language models, and tune the weights."""
    num_words = len(bitext.tokenizer.vocabulary)
    case = SentenceCase.none(num_words)
    if settings.truecase:
        sides = (side for pair in bitext.pairs for side in pair)
        case = SentenceCase.of(bitext.tokenizer, [*sides, *chain.from_iterable(bitext.texts)], bitext.languages)
    aligned = [AlignedBitext.of(bitext, case, name, _SMOOTHING) for name in settings.aligners]
    pairs = chain.from_iterable(zip(each.sources, each.targets, strict=True) for each in aligned)
    linked = LinkedText.of(pairs, chain.from_iterable(each.links for each in aligned), settings.max_phrase)
    table = score_phrases(linked, num_words)
    bitext.report(f"{len(table):,} phrase pairs of {len(linked.spans):,} occurrences")
    language = language_model(aligned[0].targets, settings.lm_order, num_words)
    texts = [inside(case, text) for text in bitext.texts]
    references = inside(case, [reference for _, reference in bitext.valid]) if texts else []
    if texts:
        language = with_texts(language, settings.lm_order, texts, references, bitext.report)
    classes = None
    if settings.word_classes:
        bitext.report(f"dividing the words of the targets into {settings.word_classes} classes (Brown clustering)")
        classes = class_language(aligned[0].targets, texts, references, case, settings)
    del texts, references
    untuned = PhraseTranslator(
        table, language, classes, case, beginning_weights(classes is not None), settings.options_per_phrase,
        settings.limits,
    )  # fmt: skip
    return tuned(untuned, bitext, settings.tuning_rounds)


def tuned(translator: PhraseTranslator, bitext: Bitext, rounds: int) -> PhraseTranslator:
    """The translator with weights tuned on the validation pairs."""
    if not rounds or not bitext.valid:
        return translator
    sources = [translator.case.enter(source)[0] for source, _ in bitext.valid]
    references = [translator.case.enter(reference)[0] for _, reference in bitext.valid]

    def translate(weights: Floats) -> Iterator[list[PhraseDerivation]]:
        trial = translator.with_weights(weights)
        return (list(islice(trial.all(words), NBEST)) for words in sources)

    words_of = translator.case.words
    weights = tune(translate, references, words_of, translator.weights, rounds, _SEED, bitext.report, bitext.is_late)
    return translator.with_weights(weights)


def class_language(
    targets: Sequence[Sequence[int]], texts: Sequence[Sequence[Sequence[int]]], references: Sequence[Sequence[int]],
    case: SentenceCase, settings: PhraseSettings,
) -> ClassLanguage:  # fmt: skip
    """The model of the classes of words of the pairs' targets and of the texts."""
    classes = word_classes(targets, case.is_letter, settings.word_classes)
    own, *others = (in_classes(classes, sentences) for sentences in (targets, *texts))
    model = language_model(own, settings.class_order, int(classes.max()) + 1)
    if others:
        model = with_texts(model, settings.class_order, others, in_classes(classes, references))
    return ClassLanguage(classes, model)


def with_texts(
    language: BackoffModel, order: int, texts: Sequence[Sequence[Sequence[int]]],
    references: Sequence[Sequence[int]], report: Callable[[str], None] | None = None,
) -> BackoffModel:  # fmt: skip
    """The n-gram model of the pairs' targets, interpolated with one of each text for the validation references.

    `order`: of the models of the texts; that of the targets is lower if these are short.
    """
    models = [language, *(language_model(text, order, language.vocab_size) for text in texts)]
    weights = interpolation_weights(models, references)
    if report is not None:
        shares = ", ".join(
            f"{weight:.0%} {len(text):,} lines" for text, weight in zip(texts, weights[1:].tolist(), strict=True)
        )
        report(f"language model: {weights[0]:.0%} the pairs' targets, {shares} of text in the target language")
    return interpolated(models, weights)


def language_model(sentences: Sequence[Sequence[int]], order: int, num_words: int) -> BackoffModel:
    """The n-gram model of the target with modified Kneser-Ney smoothing."""
    counts = NgramCounts.of(sentences, order, num_words, BOS_ID, EOS_ID, PAD_ID)
    predictable = np.ones(num_words, dtype=np.bool_)
    predictable[[PAD_ID, BOS_ID]] = False
    return estimate(counts, SmoothingConfig(), predictable)
