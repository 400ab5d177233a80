"""How likely does a language model find a text? The one score: `heed score`, `heed evaluate` and validation.

However a model reads, it says how likely each token is; these are added up by lines, so that any two models can be
compared on the same text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heed.data.text_stream import TextStream
from heed.decoding.reading import LogProbs, Reader
from heed.decoding.translator import TokenScores
from heed.metrics.likelihood import TextLikelihood
from heed.text.line_ends import LineEnd, encode_ended
from heed.text.normalise import Normaliser
from heed.text.tokenizers import Tokenizer
from heed.text.vocabulary import Vocabulary


@dataclass(frozen=True)
class ScoredText:
    """The lines of a text as the model read them, and how likely each token was."""

    lines: Sequence[str]
    text: TextStream
    log_probs: LogProbs
    line_end: LineEnd

    def token_scores(self) -> list[TokenScores]:
        """Ids and log-probabilities of each line, with its end."""
        cuts = self.text.offsets[1:-1]
        rows = zip(np.split(self.text.ids, cuts), np.split(self.log_probs, cuts), strict=True)
        return [TokenScores(tuple(ids.tolist()), tuple(found.tolist())) for ids, found in rows][: len(self.lines)]

    def likelihoods(self) -> list[TextLikelihood]:
        """How likely each line is, with the counts of words, characters and bytes that convert perplexities."""
        sums = self._by_line(self.log_probs)
        unknown = self._by_line((self.text.ids == Vocabulary.unk_id).astype(np.float64)).astype(int)
        lengths = np.diff(self.text.offsets)
        columns = zip(self.lines, sums.tolist(), lengths.tolist(), unknown.tolist(), strict=True)
        return [TextLikelihood.of_sentence(*row, ends=self.line_end != "none") for row in columns]

    def _by_line(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sums over the tokens of each line; a line may have none."""
        line_of_token = np.repeat(np.arange(len(self.lines)), np.diff(self.text.offsets))
        return np.bincount(line_of_token, weights=values, minlength=len(self.lines)).astype(np.float64)


class TextScorer:
    """A language model with its tokenizer, reading one text."""

    def __init__(self, reader: Reader, tokenizer: Tokenizer, normaliser: Normaliser, line_end: LineEnd) -> None:
        self.reader, self.tokenizer, self.normaliser, self.line_end = reader, tokenizer, normaliser, line_end

    @property
    def signature(self) -> str:
        """How the text is read."""
        return self.reader.signature

    def score(self, lines: Sequence[str]) -> ScoredText:
        """The lines of a text, or the next lines of the text that is being read."""
        lines = [self.normaliser.apply(line) for line in lines]
        text = TextStream.of_lines(encode_ended(self.tokenizer, lines, self.line_end))
        return ScoredText(lines, text, self.reader.read(text), self.line_end)
