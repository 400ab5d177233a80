"""Phrase-based translation model (Koehn, Och & Marcu 2003): phrase pairs, n-gram models, and tuned weights."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any, Literal, Self

from heed.models.model import DerivingModel, ModelConfig
from heed.statistical.derivation import Bitext
from heed.statistical.phrases.features import beginning_weights
from heed.statistical.phrases.settings import PhraseSettings
from heed.statistical.phrases.training import estimate_translator
from heed.statistical.phrases.translator import PhraseTranslator


class PhraseBasedConfig(PhraseSettings, ModelConfig):
    """A phrase-based translator."""

    kind: Literal["phrase_based"] = "phrase_based"
    """Kind of model: the key in `MODELS`."""

    def summary(self) -> str:
        aligners = " and ".join(self.aligners) + (" aligners" if len(self.aligners) > 1 else " aligner")
        phrases = f"phrases of up to {self.max_phrase} words from the links of the {aligners}"
        of_classes = f" and a {self.class_order}-gram model of {self.word_classes} word classes"
        models = f"a {self.lm_order}-gram model{of_classes if self.word_classes else ''}"
        return f"a phrase-based translator: {phrases}, {models}"


class PhraseBased(DerivingModel):
    """The best derivation by a weighted sum of features."""

    Config = PhraseBasedConfig
    config: PhraseBasedConfig
    proposes_several = True
    reads_target_text = True
    papers = "phrase-based translation (Koehn et al. 2003; Och 2003)"

    def estimated(self, bitext: Bitext) -> PhraseTranslator:
        return estimate_translator(bitext, self.config)

    def untuned(self) -> Self:
        beginning = beginning_weights(self.translator.classes is not None)
        if (self.translator.weights == beginning).all():
            return self
        other = copy(self)
        other.hold(self.translator.with_weights(beginning))
        return other

    def restored(self, arrays: Mapping[str, Any]) -> PhraseTranslator:
        ids, config = self.vocabularies, self.config
        return PhraseTranslator.from_arrays(
            arrays, ids.tgt_size, ids.bos_id, ids.eos_id, config.options_per_phrase, config.limits
        )
