"""What can a person choose about the search?"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from heed.core.config import Config


class SearchOptions(Config):
    """How outputs are searched or drawn."""

    beam_size: int = Field(default=5, ge=1, le=1000)
    """Hypotheses kept alive for each sentence (1 is greedy)."""
    length_penalty: float = Field(default=0.6, ge=0, le=10)
    """α of the length penalty; 0 ranks by probability alone."""
    length_norm: Literal["gnmt", "mean"] = "gnmt"
    """Divide by ((5 + |y|) / 6)^α or by |y|^α."""
    nbest: int = Field(default=1, ge=1, le=1000)
    """How many hypotheses to give for each sentence."""
    sample: bool = False
    """Draw from the model instead of searching for the most likely output."""
    temperature: float = Field(default=1.0, gt=0, le=100)
    """Sampling: below 1 sharpens the distribution, above 1 flattens it."""
    top_k: int = Field(default=0, ge=0)
    """Sampling: only the k most likely tokens (0: all)."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Sampling: only the most likely tokens that together have this probability."""
    min_tokens: int = Field(default=0, ge=0)
    """At least so many tokens before the end of sentence."""
    max_tokens: int = Field(default=0, ge=0)
    """At most so many tokens (0: twice the source plus 20)."""
    seed: int = 1
    """Sampling: the same seed draws the same output, whatever the batch."""
    batch_size: int = Field(default=64, ge=1)
    """Sentences searched at once; it changes the speed, never the text."""

    @model_validator(mode="after")
    def _check(self) -> SearchOptions:
        if not self.sample and self.nbest > self.beam_size:
            raise ValueError(f"nbest must not be above beam_size, got {self.nbest} and {self.beam_size}")
        if 0 < self.max_tokens < self.min_tokens:
            raise ValueError(f"min_tokens must not be above max_tokens, got {self.min_tokens} and {self.max_tokens}")
        return self

    def limit(self, source_length: int) -> int:
        """The longest output for a source of so many tokens: tokens, and one for the end of sentence."""
        return (self.max_tokens or 2 * source_length + 20) + 1
