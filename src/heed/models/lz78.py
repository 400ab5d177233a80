"""Lempel and Ziv's second code (1978) as a language model: phrases of the training text, and what follows them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from heed.models.counting import Arrays, Counting
from heed.models.model import ModelConfig
from heed.nn.contract import Vocabularies
from heed.statistical.lempel_ziv import PhraseTree
from heed.statistical.predictor import Predictor


class Lz78Config(ModelConfig):
    """Lempel-Ziv has nothing to choose. It is meant for characters and bytes: a phrase of words hardly comes again."""

    kind: Literal["lz78"] = "lz78"
    """Which model this is."""

    def summary(self) -> str:
        """The model in a phrase, for reports."""
        return "the phrases of Lempel and Ziv's code of 1978"


class Lz78(Counting):
    """P(w_t | the phrase of the moment), from the tree of phrases of the training text, which does not grow further."""

    Config = Lz78Config
    papers = "Lempel-Ziv as a predictor (Ziv & Lempel 1978; Langdon 1983)"

    def __init__(self, config: Lz78Config, vocabularies: Vocabularies) -> None:
        super().__init__(vocabularies)
        self.config = config
        self.estimate(())

    def estimated(self, sequences: Iterable[Sequence[int]]) -> Predictor:
        """Cut the sentences into phrases."""
        return PhraseTree.learn(sequences, self.predictable, self.vocabularies.eos_id)

    def restored(self, arrays: Arrays) -> Predictor:
        """The tree."""
        return PhraseTree.from_arrays(arrays, self.predictable, self.vocabularies.eos_id)
