"""Perplexity and bits of text, in units that compare across tokenizers.

Perplexity per token depends on the tokenizer; per word, per character and per byte it does not, as long as the text is
the same and its ends are counted alike. Here the end of every sentence counts as one more of each unit (an
end-of-sentence word; the line break as a character and a byte), since the model predicts it. Text that is scored as one
stream, without ends, has `num_sentences` 0.
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
    """The log-probability of a text, and the counts to divide it by. Likelihoods of two texts can be added."""

    log_prob_sum: float = 0.0
    """Natural logarithm (nats), end-of-sentence tokens included."""
    num_tokens: int = 0
    """Predicted tokens, end-of-sentence tokens included."""
    num_words: int = 0
    """Words separated by white space, without the ends of sentences; likewise characters and bytes."""
    num_characters: int = 0
    num_bytes: int = 0
    num_sentences: int = 0
    """Number of predicted ends of sentences."""
    num_unknown: int = 0
    """Predicted `<unk>` tokens, whose probability is that of all unknown words together."""

    @classmethod
    def of_sentence(
        cls, text: str, log_prob: float, num_tokens: int, num_unknown: int = 0, ends: bool = True
    ) -> TextLikelihood:
        """One sentence: its log-probability in nats and its number of tokens; `ends`: its end was predicted."""
        return cls(log_prob, num_tokens, len(text.split()), len(text), len(text.encode()), int(ends), num_unknown)

    def __add__(self, other: TextLikelihood) -> TextLikelihood:
        return TextLikelihood(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    def perplexity(self, unit: str) -> float:
        """exp(-log p / n), n the number of a unit (see `count`). Raises DataError for an empty text.

        Per token it compares only models with the same tokenizer.
        """
        nats = self._nats_per(unit)
        return math.exp(nats) if nats < 709 else math.inf  # where a float overflows

    def bits(self, unit: str) -> float:
        """-log2 p / n, as `perplexity`."""
        return self._nats_per(unit) / math.log(2)

    def count(self, unit: str) -> int:
        """The number of tokens, words, characters or bytes; the end of each sentence counts as one."""
        counts = {"word": self.num_words, "character": self.num_characters, "byte": self.num_bytes}
        return self.num_tokens if unit == "token" else counts[unit] + self.num_sentences

    def _nats_per(self, unit: str) -> float:
        if not self.count(unit):
            raise DataError(f"the text has no {unit}s, so there is nothing to divide by. Give text to score.")
        return -self.log_prob_sum / self.count(unit)


@dataclass(frozen=True)
class LikelihoodStatistics:
    """The likelihoods of one model for the sentences of a text, for paired tests of bits per byte."""

    rows: NDArray[np.float64]
    """[S sentences or blocks, K]: the fields of `TextLikelihood`."""

    @classmethod
    def of(cls, sentences: Sequence[TextLikelihood], lines_per_block: int = 1) -> LikelihoodStatistics:
        """From sentences in order, or blocks of neighbouring ones."""
        rows = np.array([astuple(sentence) for sentence in sentences], dtype=np.float64)
        return cls(np.add.reduceat(rows, np.arange(0, len(rows), lines_per_block)) if lines_per_block > 1 else rows)

    def value(self, totals: NDArray[np.float64]) -> float:
        """Bits per byte of the summed statistics [K]; 0 for a draw of blank lines alone, whose ends do not count."""
        text = TextLikelihood(*totals.tolist())
        return text.bits("byte") if text.count("byte") else 0.0


class LikelihoodMetric(Metric):
    """A metric that is computed from the likelihood of a text."""

    higher_is_better = False
    needs = "likelihoods"
    unit: ClassVar[str]
    """`token`, `word`, `character` or `byte`."""

    @abstractmethod
    def value(self, text: TextLikelihood) -> float:
        """The score of a text. Raises DataError for an empty one."""


class Perplexity(LikelihoodMetric):
    """exp(-log p / n), n the number of a unit, ends of sentences included (see `TextLikelihood.count`)."""

    def value(self, text: TextLikelihood) -> float:
        return text.perplexity(self.unit)


class PerplexityPerToken(Perplexity):
    title, unit = "perplexity per token", "token"


class PerplexityPerWord(Perplexity):
    title, unit = "perplexity per word", "word"


class PerplexityPerCharacter(Perplexity):
    title, unit = "perplexity per character", "character"


class Bits(LikelihoodMetric):
    """-log2 p / n, likewise."""

    def value(self, text: TextLikelihood) -> float:
        return text.bits(self.unit)


class BitsPerCharacter(Bits):
    title, unit = "bits per character", "character"


class BitsPerByte(Bits):
    title, unit = "bits per byte", "byte"
