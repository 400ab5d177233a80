"""Rule-based translation model: a dictionary from word alignments and transfer rules that are data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from heed.core.config import KeyOf
from heed.models.model import DerivingModel, ModelConfig
from heed.statistical.alignment import ALIGNERS
from heed.statistical.derivation import Bitext
from heed.statistical.rules.rule_file import parse_rules, read_rules
from heed.statistical.rules.translator import RuleTranslator, estimate_rule_translator


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
    needs_words = True
    papers = "transfer by rules, with a dictionary from word alignments (Och & Ney 2003)"

    @classmethod
    def require_usable(cls, config: Any) -> None:
        parse_rules(read_rules(config.rules))

    def estimated(self, bitext: Bitext) -> RuleTranslator:
        return estimate_rule_translator(bitext, read_rules(self.config.rules), self.config.aligner)

    def restored(self, arrays: Mapping[str, Any]) -> RuleTranslator:
        return RuleTranslator.from_arrays(arrays, self.vocabularies.tgt_size)
