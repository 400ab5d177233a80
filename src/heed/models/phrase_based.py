"""Phrase-based translation model (Koehn, Och & Marcu 2003): phrase pairs, an n-gram model, and tuned weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from heed.core.errors import DataError
from heed.models.model import DerivingModel, ModelConfig
from heed.nn.contract import Vocabularies
from heed.statistical.derivation import Bitext, Derivation, Forced
from heed.statistical.phrases.features import FEATURES
from heed.statistical.phrases.search import Limits
from heed.statistical.phrases.settings import PhraseSettings
from heed.statistical.phrases.training import estimate_translator
from heed.statistical.phrases.translator import PhraseTranslator


class PhraseBasedConfig(PhraseSettings, ModelConfig):
    """A phrase-based translator."""

    kind: Literal["phrase_based"] = "phrase_based"
    """Kind of model: the key in `MODELS`."""

    def summary(self) -> str:
        phrases = f"phrases of up to {self.max_phrase} words from the links of the {self.aligner} aligner"
        return f"a phrase-based translator: {phrases}, a {self.lm_order}-gram model"


class PhraseBased(DerivingModel):
    """The best derivation by a weighted sum of features."""

    Config = PhraseBasedConfig
    config: PhraseBasedConfig
    papers = "phrase-based translation (Koehn et al. 2003; Och 2003)"

    def __init__(self, config: PhraseBasedConfig, vocabularies: Vocabularies) -> None:
        super().__init__()
        self.config = config
        self.vocabularies = vocabularies
        self._translator: PhraseTranslator | None = None

    @property
    def translator(self) -> PhraseTranslator:
        """What was estimated. Raises DataError before."""
        if self._translator is None:
            raise DataError("the phrase-based model is not estimated yet.")
        return self._translator

    def hold(self, translator: PhraseTranslator) -> None:
        """Use this translator from now on."""
        self._translator = translator

    def estimate(self, bitext: Bitext) -> None:
        self.hold(estimate_translator(bitext, self.config))

    def derive(self, source: Sequence[int], width: int, number: int, forced: Sequence[Forced] = ()) -> list[Derivation]:
        return self.translator.derive(source, width, number, forced)

    def weights_by_name(self) -> dict[str, float]:
        return dict(zip(FEATURES, self.translator.weights.tolist(), strict=True))

    def state_dict(self, *arguments: Any, **keywords: Any) -> dict[str, Tensor]:  # type: ignore[override]
        """The arrays of the translator as tensors."""
        arrays = self.translator.arrays()
        return {name: torch.from_numpy(np.ascontiguousarray(array)) for name, array in arrays.items()}

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Restore what `state_dict` returned. Raises DataError for other arrays."""
        arrays = {name: tensor.cpu().numpy() for name, tensor in state_dict.items()}
        ids, config = self.vocabularies, self.config
        limits = Limits(config.tuning_width, config.stack_threshold, config.distortion_limit)
        self._translator = PhraseTranslator.from_arrays(
            arrays, ids.tgt_size, ids.bos_id, ids.eos_id, config.options_per_phrase, limits
        )
