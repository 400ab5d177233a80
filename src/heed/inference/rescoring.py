"""Rescoring: the best derivations of one translator, ordered by the log-probabilities of others too.

A translator that derives proposes translations y of a source x. Translators that can score a text add to the score of
each, log-linearly (Och & Ney 2002, section 1.2): score(y) + w · (mean log p(y | x) + b · |y|), where |y| is its number
of words, or of characters in scripts that write no spaces. What is in parentheses is one more feature of the
derivation. They score text, so each may have its own vocabulary. This module and all that it imports do without
PyTorch.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace

import numpy as np

from heed.inference.target_scorer import Scorer
from heed.statistical.derivation import Derivation, DerivationStep, Derives, Forced, ForcedSource
from heed.statistical.predictor import Floats
from heed.text.language.scripts import is_unspaced
from heed.text.tokenizers import Tokenizer

SECOND_SCORE = "second score"
"""Name of the feature."""
NUM_CANDIDATES = 30
"""Derivations that are scored, and so the most that there are: the best never depends on how many are asked for."""
AHEAD = 4
"""Sources that are derived before an earlier one is scored."""
WEIGHT = 0.3
"""Weight of the second score."""
WORD = 1.0
"""What is added to the log-probability for each word, in nats: shorter translations have higher probabilities.

Both were chosen on validation data (docs/results/low-resource.md, "Phrases scored by a Transformer").
"""


class RescoredDerivations:
    """A translator that derives, and others that score its translations. It derives too (`DerivesTogether`)."""

    def __init__(
        self, model: Derives, src_tokenizer: Tokenizer, tgt_tokenizer: Tokenizer, scorers: Sequence[Scorer],
        num_threads: int = 1,
    ) -> None:  # fmt: skip
        """`num_threads`: with two, one of several sources is derived while another one is scored."""
        self._model = model
        self._src_tokenizer, self._tgt_tokenizer = src_tokenizer, tgt_tokenizer
        self._scorers = scorers
        self._num_threads = num_threads

    def derive(self, source: Sequence[int], width: int, number: int, forced: Sequence[Forced] = ()) -> list[Derivation]:
        """The best derivations by the sum of all scores; see `Derives`."""
        derivations = self._model.derive(source, width, NUM_CANDIDATES, forced)
        return self._rescored(source, derivations)[:number]

    def derive_all(self, sources: Sequence[ForcedSource], width: int, number: int) -> list[list[Derivation]]:
        """What `derive` returns for each source."""
        if len(sources) == 1 or self._num_threads == 1:
            return [self.derive(source, width, number, forced) for source, forced in sources]
        pool = ThreadPoolExecutor(1)
        try:
            ahead: deque[Future[list[Derivation]]] = deque()
            found: list[list[Derivation]] = []
            for place in range(len(sources) + AHEAD):  # few at once, since the candidates of many need much memory
                if place < len(sources):
                    source, forced = sources[place]
                    ahead.append(pool.submit(self._model.derive, source, width, NUM_CANDIDATES, forced))
                if place >= AHEAD:
                    source, _ = sources[place - AHEAD]
                    found.append(self._rescored(source, ahead.popleft().result())[:number])
            return found
        finally:
            pool.shutdown(cancel_futures=True)

    def weights_by_name(self) -> Mapping[str, float]:
        """The weights of the features of the derivations."""
        return with_second_score(self._model.weights_by_name())

    def _rescored(self, source: Sequence[int], derivations: Sequence[Derivation]) -> list[Derivation]:
        """The derivations with the second score, the best first."""
        [text] = self._src_tokenizer.decode([source])
        second = self._second_scores(text, self._tgt_tokenizer.decode([each.ids for each in derivations]))
        if second is not None:
            derivations = [_with(each, score, source) for each, score in zip(derivations, second.tolist(), strict=True)]
        return sorted(derivations, key=lambda each: -each.score)

    def _second_scores(self, source: str, targets: Sequence[str]) -> Floats | None:
        """The second score of each target; None if the source or a target is too long for all scorers."""
        scores = [scorer.score_all(source, targets) for scorer in self._scorers]
        read = [each for each in scores if each is not None]
        if not read:
            return None
        words = np.array([num_words(target) for target in targets])
        return np.asarray(np.mean(read, axis=0) + WORD * words, dtype=np.float64)


def num_words(text: str) -> int:
    """The words of a text; in scripts that write no spaces between them, each character counts as one."""
    return len("".join(f" {char} " if is_unspaced(char) else char for char in text).split())


def with_second_score(weights: Mapping[str, float]) -> Mapping[str, float]:
    """The weights of features, with that of the second score."""
    return {**weights, SECOND_SCORE: WEIGHT}


def _with(derivation: Derivation, second_score: float, source: Sequence[int]) -> Derivation:
    """The derivation with a last step, of the whole translation, that has the second score."""
    end = (len(source), len(source)), (len(derivation.ids), len(derivation.ids))
    step = DerivationStep(*end, {SECOND_SCORE: second_score})
    score = derivation.score + WEIGHT * second_score
    return replace(derivation, score=score, steps=(*derivation.steps, step))
