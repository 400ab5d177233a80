"""Settings of a phrase-based translator."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from heed.core.config import Config, KeyOf
from heed.statistical.alignment import ALIGNERS
from heed.statistical.phrases.search import Limits
from heed.statistical.phrases.table import MOST_LINKED


class PhraseSettings(Config):
    """What is estimated, and how it searches. The stack size of a search is `decoding.beam_size`."""

    aligner: Annotated[str, KeyOf(ALIGNERS)] = "diagonal"
    """Word aligner whose links the phrases come from; both directions are combined by grow-diag-final-and."""
    second_aligner: Annotated[str, KeyOf({"none": None, **ALIGNERS})] = "none"
    """A second aligner; the phrases from its links are counted too."""
    max_phrase: int = Field(default=MOST_LINKED, ge=1, le=MOST_LINKED)
    """Words of the longest phrase, on either side."""
    lm_order: int = Field(default=5, ge=1, le=20)
    """n of the n-gram model of the target."""
    word_classes: int = Field(default=0, ge=0, le=1000)
    """Classes of words, for a second n-gram model of the target (0: none)."""
    class_order: int = Field(default=5, ge=1, le=20)
    """n of the n-gram model of classes."""
    truecase: bool = True
    """Count the first word of a sentence as the same word inside one."""
    options_per_phrase: int = Field(default=20, ge=0)
    """Translations of a source phrase that the search tries, the best by their own features (0: all)."""
    distortion_limit: int = Field(default=6, ge=-1)
    """Most words that the search jumps over (0: monotone, -1: any number)."""
    stack_threshold: float = Field(default=0.0, ge=0)
    """Hypotheses that are further below the best one of their stack are dropped (0: none)."""
    tuning_rounds: int = Field(default=4, ge=0)
    """Rounds of n-best lists on the validation data, by which the weights are tuned for BLEU (0: not tuned)."""
    tuning_width: int = Field(default=30, ge=1, le=10_000)
    """Hypotheses of a stack while the weights are tuned."""

    @model_validator(mode="after")
    def _check_aligners(self) -> PhraseSettings:
        if self.second_aligner == self.aligner:
            raise ValueError(
                f'model.aligner and model.second_aligner are both "{self.aligner}": choose two different ones'
            )
        return self

    @property
    def aligners(self) -> list[str]:
        """The names of the word aligners."""
        return [name for name in (self.aligner, self.second_aligner) if name != "none"]

    @property
    def limits(self) -> Limits:
        """Those of a search while the weights are tuned; a translation sets its own width."""
        return Limits(self.tuning_width, self.stack_threshold, self.distortion_limit)
