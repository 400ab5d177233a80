"""Search options, constraints and requests: everything that determines an output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import Field, NonNegativeInt, model_validator

from heed.core.config import Config, Document, build
from heed.core.errors import UsageError
from heed.text.normalise import Normaliser

USUAL_LENGTH = 200
"""Default length of a generated text, in tokens."""


class SearchOptions(Config):
    """Options of a search or of sampling."""

    beam_size: int = Field(default=5, ge=1, le=1000)
    """Active hypotheses for each sentence (1 is greedy search)."""
    length_penalty: float = Field(default=0.6, ge=0, le=10)
    """α of the length penalty; 0 ranks by probability alone."""
    length_norm: Literal["gnmt", "mean"] = "gnmt"
    """Divide by ((5 + |y|) / 6)^α or by |y|^α."""
    coverage_penalty: float = Field(default=0.0, ge=0, le=10)
    """β of the coverage penalty for source words with little attention, added to the score (0: none)."""
    nbest: int = Field(default=1, ge=1, le=1000)
    """Hypotheses to return for each sentence."""
    diversity: float = Field(default=0.0, ge=0, le=1000)
    """λ of diverse beam search: the penalty on tokens that other n-best groups use (0: plain beam search)."""
    sample: bool = False
    """Sample from the model instead of beam search."""
    temperature: float = Field(default=1.0, gt=0, le=100)
    """Sampling: below 1 sharpens the distribution, above 1 flattens it."""
    top_k: int = Field(default=0, ge=0)
    """Sampling: only the k most likely tokens (0: all)."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Sampling: only the most likely tokens that together have this probability."""
    mbr: Literal["", "chrf", "bleu"] = ""
    """Choose the hypothesis most similar to the others by this metric (minimum Bayes risk); empty: by score."""
    candidates: int = Field(default=20, ge=2, le=1000)
    """With mbr: hypotheses to compare, from the beam (all of them if beam_size is smaller) or sampled."""
    min_tokens: int = Field(default=0, ge=0)
    """Minimum number of tokens before the end of sentence ..."""
    min_ratio: float = Field(default=0.0, ge=0, le=100)
    """... plus this many for each token of the source."""
    max_tokens: int = Field(default=0, ge=0)
    """Maximum number of tokens, whatever the source (0: max_ratio and max_extra determine it)."""
    max_ratio: float = Field(default=2.0, ge=0, le=100)
    """Maximum number of tokens for each token of the source ..."""
    max_extra: int = Field(default=20, ge=1)
    """... plus this many."""
    no_repeat: int = Field(default=0, ge=0)
    """No n-gram of this size twice in one output (0: no limit)."""
    unknown: Literal["never", "keep", "replace"] = "never"
    """Words outside a vocabulary of whole words: never generated; kept as `<unk>`; or each replaced by the source word
    with the most attention, as `dictionary` translates it."""
    dictionary: str = ""
    """With unknown = "replace": a file of source words and their translations (empty: source words are copied)."""
    ban: tuple[str, ...] = ()
    """Words and phrases that no output may contain; one in lower case is banned in any case."""
    presence_penalty: float = Field(default=0.0, ge=-10, le=10)
    """Subtracted from the log-probability of each token that the output already contains."""
    frequency_penalty: float = Field(default=0.0, ge=-10, le=10)
    """Subtracted once for each time that the output already contains the token."""
    bias: tuple[tuple[NonNegativeInt, float], ...] = ()
    """(token id, value added to its log-probability) pairs, each token at most once."""
    guard: bool = True
    """Flag loops, copies and implausible lengths, and return the next good hypothesis of the beam instead."""
    stop: tuple[str, ...] = ()
    """Texts that end an output, which is cut before them."""
    seed: int = 1
    """Sampling: the same seed gives the same output in any batch (up to rounding, see `sampling.py`)."""
    batch_size: int = Field(default=64, ge=1)
    """Sentences searched at once (eight times as many on a GPU); affects speed, not output (for samples up to rounding,
    as with `seed`)."""

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
            wrong.append("diversity needs beam search with several hypotheses: set nbest or mbr, and not sample")
        raised = min(self.presence_penalty, self.frequency_penalty) < 0 or any(value > 0 for _, value in self.bias)
        if raised and not self.sample and self.width > 1:  # a beam ends early because scores only fall
            wrong.append("penalties below 0 and bias above 0 need sampling or beam_size 1")
        if len({token for token, _ in self.bias}) < len(self.bias):
            wrong.append("bias contains a token twice")
        if not all(Normaliser().apply(phrase).strip() for phrase in self.ban):  # control characters are removed
            wrong.append("ban contains an empty phrase")
        if self.dictionary and self.unknown != "replace":
            wrong.append('a dictionary replaces unknown words: set unknown = "replace", or leave the dictionary out')
        if self.ban and self.unknown == "replace":
            wrong.append('unknown = "replace" may write a word that ban forbids: leave one of the two out')
        if not all(self.stop):
            wrong.append("stop contains an empty text")
        if wrong:
            raise ValueError("; ".join(wrong))
        return self

    def of_text(
        self, usual_length: int = USUAL_LENGTH, at_most: int = 0, max_tokens: int | None = None, **given: object
    ) -> SearchOptions:
        """These options adapted to a language model's text, overridden by `given` values that are not None.

        `sample` is off unless given. `usual_length`: the maximum length if neither these options nor the caller set
        one; `at_most`: an upper bound on it (0: none). The minimum length never exceeds the maximum.
        Raises UsageError for an invalid combination.
        """
        for_translation_only = {
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
        overrides = {name: value for name, value in given.items() if value is not None}
        return build(SearchOptions, Document({**self.model_dump(), **for_translation_only, **overrides, **lengths}))

    def greedy(self) -> SearchOptions:
        """Greedy search by probability alone, with the same limits of length."""
        kept = {"min_tokens", "min_ratio", "max_tokens", "max_ratio", "max_extra"}
        return SearchOptions(beam_size=1, **self.model_dump(include=kept))

    def of_beam(self, beam_size: int) -> dict[str, object]:
        """The changes for a beam of this size: minimum Bayes risk compares at most as many hypotheses."""
        if self.sample or not self.mbr or beam_size >= self.candidates:
            return {"beam_size": beam_size}
        return {"beam_size": beam_size, **({"candidates": beam_size} if beam_size > 1 else {"mbr": ""})}

    @property
    def num_searched(self) -> int:
        """Hypotheses that the search returns for a sentence, before ranking."""
        return max(self.nbest, self.candidates) if self.mbr else self.nbest

    @property
    def width(self) -> int:
        """Hypotheses of a sentence that are active at once, or sampled."""
        return self.num_searched if self.sample else max(self.beam_size, self.num_searched)

    def _most(self, source_length: int) -> int:
        return self.max_tokens or int(self.max_ratio * source_length) + self.max_extra

    def least(self, source_length: int) -> int:
        """Minimum number of tokens of an output for a source of this length; never above the maximum."""
        return min(self.min_tokens + int(self.min_ratio * source_length), self._most(source_length))

    def limit(self, source_length: int) -> int:
        """Maximum number of tokens of an output for a source of this length, end of sentence included."""
        return self._most(source_length) + 1


def validated(options: object) -> SearchOptions:
    """Options that a caller may have changed with `model_copy`, which checks nothing. Raises UsageError.

    Lists become tuples, and a beam is at least as wide as the list that it returns.
    """
    if not isinstance(options, SearchOptions):
        raise UsageError(f"options must be a heed.SearchOptions, got {type(options).__name__}.")
    values = dict(vars(options))
    if not options.sample and not options.mbr and isinstance(options.nbest, int) and isinstance(options.beam_size, int):
        values["beam_size"] = max(options.beam_size, options.nbest)
    return SearchOptions(**values)


def require_plain_beam(options: SearchOptions) -> None:
    """Raises UsageError for a search that cannot satisfy required terms."""
    if options.sample or options.diversity:
        raise UsageError("required terms need plain beam search: leave out --sample and --diversity.")


@dataclass(frozen=True)
class Constraints:
    """Required text in the output of one line."""

    prefix: str = ""
    """Its beginning; spaces at the end are ignored."""
    terms: tuple[str, ...] = ()
    """Words and phrases that it must contain, exactly as written (see `constraints.py`)."""
    sources: tuple[str, ...] = ()
    """What each term translates in the line, where a glossary says it; a term may have several."""

    @staticmethod
    def of(prefix: str, pairs: Sequence[tuple[str, str]]) -> Constraints:
        """From what is translated in the line, and the term for it."""
        return Constraints(prefix, tuple(target for _, target in pairs), tuple(source for source, _ in pairs))


@dataclass(frozen=True, order=True)
class Request:
    """A line as it is searched. Equal requests have the same output and are searched once."""

    source: tuple[int, ...]
    """Token ids of the source without its end, empty for a line of white space; or another source's own numbers."""
    prefix: tuple[int, ...] = ()
    """Token ids that the output begins with; for a language model the prompt."""
    terms: tuple[str, ...] = ()
    term_pairs: tuple[tuple[str, str], ...] = ()
    """What is translated in the source, and the term for it, where a glossary says it."""
    draw: int = 0
    """For a language model: the number of this sample among those of the same prompt."""

    @property
    def stream(self) -> int:
        """The random stream of its samples, which depends on nothing but the source."""
        stream = 0
        for token in self.source:
            stream = (stream * 1_000_003 + token + 1) & ((1 << 62) - 1)
        return stream
