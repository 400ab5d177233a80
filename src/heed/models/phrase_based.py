"""Phrase-based translation model (Koehn, Och & Marcu 2003): phrase pairs, an n-gram model, and tuned weights."""

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
        return f"a phrase-based translator: {phrases}, a {self.lm_order}-gram model"


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
        if (self.translator.weights == beginning_weights()).all():
            return self
        other = copy(self)
        other.hold(self.translator.with_weights(beginning_weights()))
        return other

    def restored(self, arrays: Mapping[str, Any]) -> PhraseTranslator:
        ids, config = self.vocabularies, self.config
        return PhraseTranslator.from_arrays(
            arrays, ids.tgt_size, ids.bos_id, ids.eos_id, config.options_per_phrase, config.limits
        )
