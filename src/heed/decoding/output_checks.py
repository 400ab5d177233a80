"""Output checks: flags with replacements, and the calibrated probability that an output is good.

Each flag of the guard (`guard.py`) is shown, and the next unflagged hypothesis of the beam replaces a flagged one.

Confidence: good means that the sentence chrF of the translation against its reference is at least the median of the
validation sentences, so that half of them are good. There are four features, which every search provides whatever its
beam: the mean log-probability of a token, that of the least likely token, the logarithm of the number of tokens, and
whether the guard flagged it. The margin over the second-best hypothesis is not a feature, since it depends on when the
search stopped. Defective outputs (flagged without a replacement, or cut off) are rare on validation data, and the model
is confident in loops, so their probability has an upper limit of its own. `heed evaluate --calibrate` writes the
calibration to `confidence.json` in the run folder.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import torch
from pydantic import Field

from heed.core.config import Config
from heed.core.errors import DataError
from heed.core.run_files import RunFiles
from heed.decoding.guard import Guard
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.options import Request, SearchOptions
from heed.decoding.scoring import score_rows
from heed.nn.contract import Autoregressive
from heed.text.tokenizers import Tokenizer

Best = dict[Request, Hypothesis]
Searcher = Callable[[Sequence[Request], SearchOptions], Best]
"""Finds the best hypothesis of each request, with its alternatives."""

CONFIDENCE = "confidence.json"
FEATURES = ("mean log-probability", "least log-probability", "log length", "flagged")

Features = tuple[float, float, float, float]


def features(hypothesis: Hypothesis) -> Features:
    """The values of FEATURES."""
    steps = hypothesis.token_log_probs
    if not steps:  # cut off before its first token
        return (hypothesis.log_prob, hypothesis.log_prob, 0.0, float(bool(hypothesis.flags)))
    mean = math.fsum(steps) / len(steps)
    return (mean, min(steps), math.log(len(steps)), float(bool(hypothesis.flags)))


def is_defective(hypothesis: Hypothesis) -> bool:
    """Whether an output is flagged and not replaced, or did not end."""
    return (bool(hypothesis.flags) and not hypothesis.fallback) or not hypothesis.finished


class Confidence(Config):
    """A logistic regression on the features, a limit for defective outputs, and their origin."""

    format: Literal[1] = 1
    """Version of the file format."""
    mean: Features
    """Mean of each feature on the validation data."""
    scale: Features
    """Standard deviation of each feature."""
    weights: Features
    """Weights of the standardised features."""
    bias: float
    """Intercept of the regression."""
    amiss_good: float = 0.1
    """The limit: the share of good outputs among the defective ones on validation, with one good and nine bad added."""
    good_chrf: float
    """Smallest sentence chrF of a good translation: the median on validation."""
    num_sentences: int = Field(ge=1)
    """Number of validation sentences."""
    beam_size: int = Field(ge=1)
    """Beam size of the search used for calibration."""
    calibration_error: float
    """Expected calibration error, by cross-validation."""

    def of(self, hypothesis: Hypothesis) -> float:
        """The probability that a hypothesis is good."""
        rows = zip(features(hypothesis), self.mean, self.scale, self.weights, strict=True)
        total = self.bias + sum(weight * (value - mean) / scale for value, mean, scale, weight in rows)
        probability = 0.5 * (1 + math.tanh(0.5 * total))
        return min(probability, self.amiss_good) if is_defective(hypothesis) else probability

    def write(self, folder: Path) -> Path:
        """Write to a run folder; returns the path."""
        with RunFiles(folder).write(CONFIDENCE, "w") as file:
            file.write(self.model_dump_json(indent=1) + "\n")
        return folder / CONFIDENCE

    @staticmethod
    def read(folder: Path) -> Confidence | None:
        """Read from a run folder; None if it has none. Raises DataError for a damaged file."""
        files, advice = RunFiles(folder), "Delete it, or write a new one with `heed evaluate RUN --calibrate`."
        if not files.has(CONFIDENCE):
            return None
        try:
            return Confidence.model_validate_json(files.read(CONFIDENCE, otherwise=advice))
        except ValueError as error:
            where = folder / CONFIDENCE
            raise DataError(
                f"{where} is damaged or was written by an incompatible version of heed. {advice}"
            ) from error


@dataclass(frozen=True)
class OutputChecks:
    """What a run knows of its outputs in addition to their scores. Each part is optional."""

    guard: Guard | None = None
    confidence: Confidence | None = None
    lm: Autoregressive | None = None
    """The language model of a shallow fusion, whose log-probability is reported."""
    tgt_lang: str = ""
    """The target language, for metrics that split words."""

    def apply(
        self, best: Best, sources: Mapping[Request, str], options: SearchOptions, no_repeat: int, searcher: Searcher
    ) -> Best:
        """The best hypotheses with flags, replacements and confidences.

        `sources`: their texts, needed by the guard. `no_repeat`: see `fallback_searches`.
        """
        flags: dict[Request, tuple[str, ...]] = dict.fromkeys(best, ())
        if self.guard is not None:
            flags = {request: self.guard.flags(sources[request], best[request].text) for request in best}
            if options.guard:
                best = self._with_replacements(self.guard, best, flags, sources, options, no_repeat, searcher)
        if self.confidence is None or options.sample:
            return best
        # Flags are a feature even where they are not shown.
        return {
            request: replace(h, confidence=self.confidence.of(replace(h, flags=flags[request])))
            for request, h in best.items()
        }

    @staticmethod
    def _with_replacements(
        guard: Guard, best: Best, flags: Mapping[Request, tuple[str, ...]], sources: Mapping[Request, str],
        options: SearchOptions, no_repeat: int, searcher: Searcher,
    ) -> Best:  # fmt: skip
        """With flags; a flagged hypothesis is replaced by the best one of the beam without a flag, if there is one."""
        checked, flagged = dict(best), [request for request in best if flags[request]]
        for fallback, flag in fallback_searches(options, no_repeat):
            again = [request for request in flagged if not flag or flag in flags[request]]
            for request, hypothesis in searcher(again, fallback).items():
                for other in (hypothesis, *hypothesis.alternatives):
                    if other.finished and not guard.flags(sources[request], other.text):
                        checked[request] = _replaced(best[request], other, options.nbest)
                        break
            flagged = [request for request in flagged if not checked[request].fallback]
        return {request: replace(hypothesis, flags=flags[request]) for request, hypothesis in checked.items()}

    def with_lm_log_probs(self, best: Best, device: torch.device) -> Best:
        """The same with log-probabilities of a fused language model, if there is one."""
        if self.lm is None:
            return best
        scores = score_rows(self.lm, [hypothesis.ids for hypothesis in best.values()], device)
        return {
            request: replace(h, lm_log_prob=sum(score.log_probs[: len(h.ids) + h.finished]))
            for (request, h), score in zip(best.items(), scores, strict=True)
        }


def _replaced(best: Hypothesis, chosen: Hypothesis, nbest: int) -> Hypothesis:
    """A hypothesis in place of the best, which becomes the first of the alternatives."""
    others = [replace(h, alternatives=()) for h in (best, *best.alternatives) if h.text != chosen.text]
    return replace(chosen, alternatives=tuple(others[: nbest - 1]), fallback=True)


NO_REPEAT = 2
"""n of the n-grams that may not repeat when a whole beam loops ..."""
NO_REPEAT_CHARACTERS = 8
"""... and where the tokens are characters: pairs of them repeat in any sentence."""


def no_repeat_size(tokenizer: Tokenizer) -> int:
    """Size of the n-grams that do not repeat in an output without loops."""
    most = tokenizer.max_token_characters
    return NO_REPEAT if most is None else NO_REPEAT_CHARACTERS // most


def fallback_searches(options: SearchOptions, no_repeat: int = NO_REPEAT) -> list[tuple[SearchOptions, str]]:
    """Searches to run when the best hypothesis is flagged, and the flag that each is for (empty: any).

    First the whole beam, with the same best hypothesis; then, if all of it loops, a beam in which no n-gram of size
    `no_repeat` repeats. Greedy search and sampling have no fallback.
    """
    if options.sample or options.width == 1:
        return []
    nbest = options.num_searched if options.diversity else options.width  # the groups of a diverse beam stay the same
    whole = options.model_copy(update={"nbest": nbest})
    return [(whole, ""), (whole.model_copy(update={"no_repeat": min(whole.no_repeat or no_repeat, no_repeat)}), "loop")]
