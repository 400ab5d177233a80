"""What can a person choose about the search?"""

from __future__ import annotations

from typing import Literal

from pydantic import Field, NonNegativeInt, model_validator

from heed.core.config import Config, Document, build
from heed.text.normalise import Normaliser

USUAL_LENGTH = 200
"""Tokens of a text that goes on from a prompt, where nobody says it."""


class SearchOptions(Config):
    """How outputs are searched or drawn."""

    beam_size: int = Field(default=5, ge=1, le=1000)
    """Hypotheses kept alive for each sentence (1 is greedy)."""
    length_penalty: float = Field(default=0.6, ge=0, le=10)
    """α of the length penalty; 0 ranks by probability alone."""
    length_norm: Literal["gnmt", "mean"] = "gnmt"
    """Divide by ((5 + |y|) / 6)^α or by |y|^α."""
    coverage_penalty: float = Field(default=0.0, ge=0, le=10)
    """β of the coverage penalty, for source words that got little attention (0: none), added to the score."""
    nbest: int = Field(default=1, ge=1, le=1000)
    """How many hypotheses to give for each sentence."""
    diversity: float = Field(default=0.0, ge=0, le=1000)
    """λ of diverse beam search: how much the n-best shun one another's tokens (0: plain beam search)."""
    sample: bool = False
    """Draw from the model instead of searching for the most likely output."""
    temperature: float = Field(default=1.0, gt=0, le=100)
    """Sampling: below 1 sharpens the distribution, above 1 flattens it."""
    top_k: int = Field(default=0, ge=0)
    """Sampling: only the k most likely tokens (0: all)."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Sampling: only the most likely tokens that together have this probability."""
    mbr: Literal["", "chrf", "bleu"] = ""
    """Choose the hypothesis most like the others by this measure (minimum Bayes risk); empty: the best score."""
    candidates: int = Field(default=20, ge=2, le=1000)
    """With mbr: how many hypotheses are compared, of the beam (where a smaller one is said, all it has) or drawn."""
    min_tokens: int = Field(default=0, ge=0)
    """At least so many tokens before the end of sentence."""
    min_ratio: float = Field(default=0.0, ge=0, le=100)
    """And at least so many more for each token of the source."""
    max_tokens: int = Field(default=0, ge=0)
    """At most so many tokens, whatever the source (0: max_ratio and max_extra decide)."""
    max_ratio: float = Field(default=2.0, ge=0, le=100)
    """At most so many tokens for each token of the source ..."""
    max_extra: int = Field(default=20, ge=1)
    """... and so many more."""
    no_repeat: int = Field(default=0, ge=0)
    """No run of so many tokens twice in one output (0: anything may come again)."""
    ban: tuple[str, ...] = ()
    """Words and phrases that no output holds; in lower case they stand for every case."""
    presence_penalty: float = Field(default=0.0, ge=-10, le=10)
    """Taken off the log-probability of a token that the output has already."""
    frequency_penalty: float = Field(default=0.0, ge=-10, le=10)
    """The same for each time that the output has it."""
    bias: tuple[tuple[NonNegativeInt, float], ...] = ()
    """Tokens by number, each once, and what is added to the log-probability of each."""
    guard: bool = True
    """Tell loops, copies and outputs of a strange length, and give the next hypothesis of the beam instead."""
    stop: tuple[str, ...] = ()
    """Texts before which an output ends."""
    seed: int = 1
    """Sampling: the same seed draws the same output, whatever the batch (but for its last bits: `pick.py`)."""
    batch_size: int = Field(default=64, ge=1)
    """Sentences searched at once; it changes the speed, not the text (but for the last bits of draws: `seed`)."""

    @model_validator(mode="after")
    def _check(self) -> SearchOptions:
        wrong = []
        if not self.sample and not self.mbr and self.nbest > self.beam_size:
            wrong.append(f"nbest must not be above beam_size, got {self.nbest} and {self.beam_size}")
        if 0 < self.max_tokens < self.min_tokens:
            wrong.append(f"min_tokens must not be above max_tokens, got {self.min_tokens} and {self.max_tokens}")
        if not self.max_tokens and self.min_ratio > self.max_ratio:
            wrong.append(f"min_ratio must not be above max_ratio, got {self.min_ratio} and {self.max_ratio}")
        if self.diversity and (self.sample or self.num_searched < 2):
            wrong.append("diversity is for several hypotheses of a beam: give nbest (or mbr), and no sample")
        raised = min(self.presence_penalty, self.frequency_penalty) < 0 or any(value > 0 for _, value in self.bias)
        if raised and not self.sample and self.width > 1:  # a beam ends early because scores only fall
            wrong.append("penalties below 0 and bias above 0 are for drawing and for beam_size 1")
        if len({token for token, _ in self.bias}) < len(self.bias):
            wrong.append("bias says a token twice")
        if not all(Normaliser().apply(phrase).strip() for phrase in self.ban):  # of control characters nothing is left
            wrong.append("ban has an empty phrase")
        if not all(self.stop):
            wrong.append("stop has an empty text")
        if wrong:
            raise ValueError("; ".join(wrong))
        return self

    def of_text(
        self, usual_length: int = USUAL_LENGTH, at_most: int = 0, max_tokens: int | None = None, **said: object
    ) -> SearchOptions:
        """The same rules for a language model's text, with what is said (not None) over them.

        Whether it draws has to be said. `usual_length`: the most tokens where neither the rules nor the caller say it;
        `at_most`: and never more than so many (0: no such bound). The least are no more than the most.
        Raises UsageError for what does not go together.
        """
        of_translations = {
            "beam_size": 1,
            "nbest": 1,
            "sample": False,
            "mbr": "",
            "diversity": 0,
            "coverage_penalty": 0,
        }
        most = max_tokens or self.max_tokens or max(usual_length, self.min_tokens)
        most = min(most, at_most or most)
        lengths = {"max_tokens": most, "min_tokens": min(self.min_tokens, most)}
        given = {name: value for name, value in said.items() if value is not None}
        return build(SearchOptions, Document({**self.model_dump(), **of_translations, **given, **lengths}))

    def greedy(self) -> SearchOptions:
        """Beam 1 within the same limits of length, by nothing but probability."""
        kept = {"min_tokens", "min_ratio", "max_tokens", "max_ratio", "max_extra"}
        return SearchOptions(beam_size=1, **self.model_dump(include=kept))

    def of_beam(self, beam_size: int) -> dict[str, object]:
        """What a beam of this size changes: minimum Bayes risk chooses among no more hypotheses than are kept alive."""
        if self.sample or not self.mbr or beam_size >= self.candidates:
            return {"beam_size": beam_size}
        return {"beam_size": beam_size, **({"candidates": beam_size} if beam_size > 1 else {"mbr": ""})}

    @property
    def num_searched(self) -> int:
        """How many hypotheses of a sentence the search gives, before any of them is chosen."""
        return max(self.nbest, self.candidates) if self.mbr else self.nbest

    @property
    def width(self) -> int:
        """How many hypotheses of a sentence are kept alive, or drawn."""
        return self.num_searched if self.sample else max(self.beam_size, self.num_searched)

    def _most(self, source_length: int) -> int:
        return self.max_tokens or int(self.max_ratio * source_length) + self.max_extra

    def least(self, source_length: int) -> int:
        """The tokens of the shortest output for a source of so many tokens; never more than those of the longest."""
        return min(self.min_tokens + int(self.min_ratio * source_length), self._most(source_length))

    def limit(self, source_length: int) -> int:
        """The longest output for a source of so many tokens: tokens, and one for the end of sentence."""
        return self._most(source_length) + 1
