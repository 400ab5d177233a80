"""Rule-based translation model: a dictionary from word alignments and transfer rules that are data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
import torch
from torch import Tensor

from heed.core.config import KeyOf
from heed.core.errors import DataError
from heed.models.model import DerivingModel, ModelConfig
from heed.nn.contract import Vocabularies
from heed.statistical.alignment import ALIGNERS
from heed.statistical.derivation import Bitext, Derivation, Forced
from heed.statistical.rules.rule_file import read_rules
from heed.statistical.rules.translator import WEIGHTS, RuleTranslator, estimate_rule_translator


class RuleBasedConfig(ModelConfig):
    """A rule-based translator."""

    kind: Literal["rule_based"] = "rule_based"
    """Kind of model: the key in `MODELS`."""
    rules: str = "en-de"
    """Rule file: a built-in one by its name, or a path. The run keeps a copy."""
    aligner: Annotated[str, KeyOf(ALIGNERS)] = "diagonal"
    """Word aligner whose links the dictionary is counted from."""

    def summary(self) -> str:
        dictionary = f"a dictionary from the links of the {self.aligner} aligner"
        return f"a rule-based translator: the rules {self.rules}, {dictionary}"


class RuleBased(DerivingModel):
    """Words from a dictionary, in the order and the forms that rules give them."""

    Config = RuleBasedConfig
    config: RuleBasedConfig
    papers = "transfer by rules, with a dictionary from word alignments (Och & Ney 2003)"

    def __init__(self, config: RuleBasedConfig, vocabularies: Vocabularies) -> None:
        super().__init__()
        self.config = config
        self.vocabularies = vocabularies
        self._translator: RuleTranslator | None = None

    @property
    def translator(self) -> RuleTranslator:
        """What was estimated. Raises DataError before."""
        if self._translator is None:
            raise DataError("the rule-based model is not estimated yet.")
        return self._translator

    def estimate(self, bitext: Bitext) -> None:
        self._translator = estimate_rule_translator(bitext, read_rules(self.config.rules), self.config.aligner)

    def derive(self, source: Sequence[int], width: int, number: int, forced: Sequence[Forced] = ()) -> list[Derivation]:
        return self.translator.derive(source, width, number, forced)

    def weights_by_name(self) -> dict[str, float]:
        return dict(WEIGHTS)

    def state_dict(self, *arguments: Any, **keywords: Any) -> dict[str, Tensor]:  # type: ignore[override]
        """The arrays of the translator as tensors."""
        arrays = self.translator.arrays()
        return {name: torch.from_numpy(np.array(array)) for name, array in arrays.items()}

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """Restore what `state_dict` returned. Raises DataError for other arrays."""
        arrays = {name: tensor.cpu().numpy() for name, tensor in state_dict.items()}
        self._translator = RuleTranslator.from_arrays(arrays, self.vocabularies.tgt_size)
