"""Lempel and Ziv's second code (1978) as a language model: the phrases of the training text and their continuations."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from heed.models.counting import Counting
from heed.models.model import ModelConfig
from heed.statistical.lempel_ziv import PhraseTree
from heed.statistical.predictor import Predictor
from heed.statistical.saved_arrays import Arrays


class Lz78Config(ModelConfig):
    """Lempel-Ziv has no settings. It is meant for characters and bytes, since phrases of words rarely recur."""

    kind: Literal["lz78"] = "lz78"
    """Kind of model: the key in `MODELS`."""

    def summary(self) -> str:
        return "an LZ78 phrase tree"


class Lz78(Counting):
    """P(w_t | the current phrase), from the tree of phrases of the training text, which no longer grows."""

    Config = Lz78Config
    config: Lz78Config
    papers = "Lempel-Ziv as a predictor (Ziv & Lempel 1978; Langdon 1983)"

    def estimated(self, sequences: Iterable[Sequence[int]]) -> Predictor:
        """The phrases of the sentences."""
        return PhraseTree.learn(sequences, self.predictable, self.vocabularies.eos_id)

    def restored(self, arrays: Arrays) -> Predictor:
        """The tree of phrases."""
        return PhraseTree.from_arrays(arrays, self.predictable, self.vocabularies.eos_id)
