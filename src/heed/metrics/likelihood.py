"""How well does a model predict text, in units that compare across tokenisers?

Perplexity per token depends on what a token is; per word, per character and per byte it does not, as long as the
text is the same and its ends are counted alike. Here the end of every sentence counts: the model predicts it, and
in each unit it is one more (an end-of-sentence word; the line break as a character and a byte). Text that is
scored as one stream, without ends, has `num_sentences` 0.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from heed.core.errors import DataError
from heed.metrics.metric import Metric


@dataclass(frozen=True)
class TextLikelihood:
    """The log-probability of some text and what it is divided by. Likelihoods of two texts can be added."""

    log_prob_sum: float = 0.0
    """Natural logarithm (nats), end-of-sentence tokens included."""
    num_tokens: int = 0
    """Predicted tokens, end-of-sentence tokens included."""
    num_words: int = 0
    """Words between blanks, ends not included; the same for characters and bytes."""
    num_characters: int = 0
    num_bytes: int = 0
    num_sentences: int = 0
    """How many ends of sentences were predicted."""
    num_unknown: int = 0
    """Predicted tokens that stand for any unknown word: their probability is that of the whole class."""

    @classmethod
    def of_sentence(
        cls, text: str, log_prob: float, num_tokens: int, num_unknown: int = 0, ends: bool = True
    ) -> TextLikelihood:
        """One sentence: its log-probability in nats and its number of tokens, with the end where it was predicted."""
        return cls(log_prob, num_tokens, len(text.split()), len(text), len(text.encode()), int(ends), num_unknown)

    def __add__(self, other: TextLikelihood) -> TextLikelihood:
        return TextLikelihood(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    @property
    def perplexity_per_token(self) -> float:
        """exp(-log p / tokens). Compares only between models with the same tokeniser."""
        return _exp(self._nats_per("token"))

    @property
    def perplexity_per_word(self) -> float:
        """exp(-log p / (words + sentences))."""
        return _exp(self._nats_per("word"))

    @property
    def perplexity_per_character(self) -> float:
        """exp(-log p / (characters + sentences))."""
        return _exp(self._nats_per("character"))

    @property
    def bits_per_character(self) -> float:
        """-log2 p / (characters + sentences)."""
        return self._nats_per("character") / math.log(2)

    @property
    def bits_per_byte(self) -> float:
        """-log2 p / (bytes + sentences)."""
        return self._nats_per("byte") / math.log(2)

    def count(self, unit: str) -> int:
        """How many of a unit (token, word, character, byte) the text has, ends of sentences counted."""
        counts = {"word": self.num_words, "character": self.num_characters, "byte": self.num_bytes}
        return self.num_tokens if unit == "token" else counts[unit] + self.num_sentences

    def _nats_per(self, unit: str) -> float:
        if not self.count(unit):
            raise DataError(f"the text has no {unit}s, so there is nothing to divide by. Give text to score.")
        return -self.log_prob_sum / self.count(unit)


@dataclass(frozen=True)
class LikelihoodStatistics:
    """The likelihoods of one model for the sentences of a text, as paired tests take them: by bits per byte."""

    rows: NDArray[np.float64]
    """[S sentences or blocks, K]: the fields of `TextLikelihood`."""

    @classmethod
    def of(cls, sentences: Sequence[TextLikelihood], lines_per_block: int = 1) -> LikelihoodStatistics:
        """Those of sentences in their order, or of blocks of neighbours."""
        rows = np.array([astuple(sentence) for sentence in sentences], dtype=np.float64)
        return cls(np.add.reduceat(rows, np.arange(0, len(rows), lines_per_block)) if lines_per_block > 1 else rows)

    def value(self, totals: NDArray[np.float64]) -> float:
        """Bits per byte of the summed statistics [K]."""
        return TextLikelihood(*totals.tolist()).bits_per_byte


class LikelihoodMetric(Metric):
    """A function of the likelihood of a text."""

    higher_is_better = False
    needs = "likelihoods"
    unit: ClassVar[str]
    """What it is per: `token`, `word`, `character` or `byte`."""

    @abstractmethod
    def value(self, text: TextLikelihood) -> float:
        """The score of a text. Raises DataError for an empty one."""


class PerplexityPerToken(LikelihoodMetric):
    """exp(-log p / tokens)."""

    title, unit = "perplexity per token", "token"

    def value(self, text: TextLikelihood) -> float:
        """The score of a text."""
        return text.perplexity_per_token


class PerplexityPerWord(LikelihoodMetric):
    """exp(-log p / (words + sentences))."""

    title, unit = "perplexity per word", "word"

    def value(self, text: TextLikelihood) -> float:
        """The score of a text."""
        return text.perplexity_per_word


class PerplexityPerCharacter(LikelihoodMetric):
    """exp(-log p / (characters + sentences))."""

    title, unit = "perplexity per character", "character"

    def value(self, text: TextLikelihood) -> float:
        """The score of a text."""
        return text.perplexity_per_character


class BitsPerCharacter(LikelihoodMetric):
    """-log2 p / (characters + sentences)."""

    title, unit = "bits per character", "character"

    def value(self, text: TextLikelihood) -> float:
        """The score of a text."""
        return text.bits_per_character


class BitsPerByte(LikelihoodMetric):
    """-log2 p / (bytes + sentences)."""

    title, unit = "bits per byte", "byte"

    def value(self, text: TextLikelihood) -> float:
        """The score of a text."""
        return text.bits_per_byte


def _exp(nats: float) -> float:
    """exp, infinite where a float ends."""
    return math.exp(nats) if nats < 709 else math.inf
