"""How well does a model predict text, in units that compare across tokenisers?

Perplexity per token depends on what a token is; per word, per character and per byte it does not, as long as the
text is the same and its ends are counted alike. Here the end of every sentence counts: the model predicts it, and
in each unit it is one more (an end-of-sentence word; the line break as a character and a byte). Text that is
scored as one stream, without ends, has `num_sentences` 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass

import numpy as np
from numpy.typing import NDArray

from heed.core.errors import DataError
from heed.metrics.bootstrap import SEED, interval, resampled_totals
from heed.metrics.score import Score


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

    def scores(self) -> list[Score]:
        """All measures, without intervals. Raises DataError when there is no text."""
        return evaluate_likelihood([self], intervals=0)

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


_Measure = Callable[[TextLikelihood], float]
_MEASURES: tuple[tuple[str, str, _Measure], ...] = (
    ("perplexity per token", "token", lambda text: text.perplexity_per_token),
    ("perplexity per word", "word", lambda text: text.perplexity_per_word),
    ("perplexity per character", "character", lambda text: text.perplexity_per_character),
    ("bits per character", "character", lambda text: text.bits_per_character),
    ("bits per byte", "byte", lambda text: text.bits_per_byte),
)


def evaluate_likelihood(
    sentences: Sequence[TextLikelihood], intervals: int = 1000, how: str = "", lines_per_block: int = 1
) -> list[Score]:
    """Every measure over all sentences together, with 95 % intervals of `intervals` draws (0: without).

    The signature gives the unit, its number, whether ends of sentences are among them, how many tokens stood for
    unknown words, and `how` the text was read. Blocks of `lines_per_block` lines are drawn together: neighbours are
    not independent where a model reads across lines. Text that a model holds impossible has infinite perplexity and no
    interval. Raises DataError when there is no text.
    """
    total = sum(sentences, start=TextLikelihood())
    draws: list[TextLikelihood] = []
    if intervals and len(sentences) and math.isfinite(total.log_prob_sum):
        rows = LikelihoodStatistics.of(sentences, lines_per_block).rows
        draws = [TextLikelihood(*row) for row in resampled_totals(rows, intervals).tolist()]
    scores = []
    for name, unit, measure in _MEASURES:
        ends = "yes" if total.num_sentences else "no"
        signature = f"unit:{unit}|n:{total.count(unit)}|eos:{ends}|unk:{total.num_unknown}" + (how and f"|{how}")
        low = high = None
        if draws:
            signature += f"|bs:{intervals}|seed:{SEED}" + (f"|block:{lines_per_block}" if lines_per_block > 1 else "")
            low, high = interval([measure(draw) for draw in draws])
        scores.append(Score(name, measure(total), signature, low, high))
    return scores


def perplexity_per_word_from_bpc(bits_per_character: float, num_characters: float, num_words: float) -> float:
    """2^(bits per character · characters / words): the same probability of the same text, per word.

    Ends of sentences are counted in both numbers or in neither. Raises DataError without words.
    """
    if not num_words:
        raise DataError("perplexity per word needs at least one word.")
    return _exp(bits_per_character * num_characters / num_words * math.log(2))


def bpc_from_perplexity_per_word(perplexity: float, num_characters: float, num_words: float) -> float:
    """log2(perplexity) · words / characters: the way back. Raises DataError without characters."""
    if not num_characters:
        raise DataError("bits per character need at least one character.")
    return math.log2(perplexity) * num_words / num_characters


def _exp(nats: float) -> float:
    """exp, infinite where a float ends."""
    return math.exp(nats) if nats < 709 else math.inf
