"""Search factory: builds the strategy and the logit rules that the options of a search require.

An option that is off adds nothing to the search.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from heed.core.errors import UsageError
from heed.data.batch import source_from_ids
from heed.decoding.beam import BeamSearch, DiverseBeamSearch
from heed.decoding.constraints import ConstrainedBeamSearch, RequiredTerms, ends_word
from heed.decoding.cross_attention import Coverage
from heed.decoding.detokenizer import Detokenizer, StopTexts
from heed.decoding.engine import DecodingStrategy, SearchInputs
from heed.decoding.logit_rules import (
    BadWords,
    BannedPhrases,
    Forbidden,
    FrequencyPenalty,
    LogitBias,
    LogitRule,
    MinLength,
    NoRepeatNgram,
)
from heed.decoding.options import Request, SearchOptions, require_plain_beam
from heed.decoding.phrases import require_allowed
from heed.decoding.ranking import LengthPenalty
from heed.decoding.sampling import RandomDraw, Sampler, greedy
from heed.decoding.scoring import token_log_probs
from heed.nn.contract import Autoregressive, Source, Trace
from heed.text.normalise import Normaliser
from heed.text.vocabulary import BOS_ID, EOS_ID, PAD_ID, UNK_ID

MakeSource = Callable[[Sequence[tuple[int, ...]]], Source]
"""Makes the source that a model reads of the sources of several requests."""


def token_source(sources: Sequence[tuple[int, ...]]) -> Source:
    """Sources that are token ids."""
    return source_from_ids(sources, EOS_ID, PAD_ID)


@dataclass(frozen=True)
class BatchSpec:
    """Requirements of the sources of one batch."""

    lengths: Sequence[int]
    """Tokens of each source."""
    streams: Sequence[int]
    """The random stream of each."""
    terms: Sequence[RequiredTerms] = ()
    """The terms of each, or empty; all have the same number of steps."""
    prefix_length: int = 0
    """Tokens of the forced prefix, the same for all."""

    @property
    def num_steps(self) -> int:
        """Steps towards the terms, by which the beam is widened."""
        return self.terms[0].num_steps if self.terms else 0

    def limits(self, options: SearchOptions) -> list[int]:
        """The longest output of each source, end of sentence included; long enough for its prefix and terms."""
        required = [terms.num_pieces for terms in self.terms] or [0] * len(self.lengths)
        return [
            max(options.limit(length), self.prefix_length + pieces + 1)
            for length, pieces in zip(self.lengths, required, strict=True)
        ]


class SearchFactory:
    """Builds searches for one tokenizer."""

    def __init__(self, detokenizer: Detokenizer, device: torch.device, normaliser: Normaliser) -> None:
        """`normaliser`: applied to all text before the tokenizer."""
        self.detokenizer = detokenizer
        self.tokenizer = detokenizer.tokenizer
        self.normaliser = normaliser
        self.device = device
        self.banned = lru_cache(maxsize=8)(self._banned)  # remembers which tokens may follow which texts
        self.terms = lru_cache(maxsize=4096)(self._terms)

    def inputs(
        self, model: Autoregressive, requests: Sequence[Request], options: SearchOptions,
        make_source: MakeSource | None = None,
    ) -> SearchInputs:  # fmt: skip
        """One batch. Requests must have prefixes of one length, and terms with the same number of steps.

        `make_source` is None for a language model, whose prompts are prefixes.
        """
        if options.unknown == "replace" and make_source is not token_source:
            raise UsageError('unknown = "replace" needs words of a source, so it is for translators: leave it out.')
        prefixes = torch.tensor([request.prefix for request in requests], dtype=torch.long, device=self.device)
        if make_source is None:  # the prompts are read and are not part of the output
            spec = BatchSpec([0] * len(requests), [request.draw for request in requests])
            strategy = self.strategy(options, spec)
            return SearchInputs(
                None, strategy, self.rules(options, spec), _first_tokens(prefixes, strategy), options.limit(0)
            )
        terms = [self.terms(request.terms) for request in requests if request.terms]
        streams = [request.stream for request in requests]
        spec = BatchSpec([len(request.source) for request in requests], streams, terms, len(requests[0].prefix))
        source = make_source([request.source for request in requests]).to(self.device)
        trace = Trace() if options.coverage_penalty else None
        coverage = Coverage(options.coverage_penalty, trace, source.mask) if trace is not None else None
        strategy = self.strategy(options, spec, coverage)
        if prefixes.shape[1]:
            before = torch.nn.functional.pad(prefixes[:, :-1], (1, 0), value=BOS_ID)
            strategy.force_prefix(prefixes, token_log_probs(model, source, before, prefixes))
        begin, limit = _first_tokens(prefixes, strategy), max(spec.limits(options))
        return SearchInputs(source, strategy, self.rules(options, spec), begin, limit, trace)

    def rules(self, options: SearchOptions, spec: BatchSpec) -> list[LogitRule]:
        """The rules of a batch, in the order in which they are applied."""
        rules: list[LogitRule] = [Forbidden(self._never(options))]
        if options.min_tokens or options.min_ratio:
            rules.append(MinLength([options.least(length) for length in spec.lengths]))
        if options.no_repeat:
            rules.append(NoRepeatNgram(options.no_repeat, spec.terms))
        if options.ban:
            rules.append(BadWords(self.banned(options.ban), spec.limits(options)))
        if options.bias:
            rules.append(self._bias(options))
        if options.presence_penalty or options.frequency_penalty:
            rules.append(FrequencyPenalty(options.presence_penalty, options.frequency_penalty))
        return rules

    def _never(self, options: SearchOptions) -> Sequence[int]:
        """The tokens that are never generated. Raises UsageError if there are no unknown words to generate."""
        if options.unknown == "never":
            return self.detokenizer.never
        if not self.tokenizer.whole_words:
            raise UsageError(
                f'unknown = "{options.unknown}" needs a vocabulary of whole words (tokenizer.kind = "word"). This one '
                "has parts of words or characters, which spell other words too, so no word is unknown: leave it out."
            )
        return [id for id in self.detokenizer.never if id != UNK_ID]

    def strategy(self, options: SearchOptions, spec: BatchSpec, coverage: Coverage | None = None) -> DecodingStrategy:
        """Greedy search, sampling, or one of the beam searches."""
        penalty = LengthPenalty(options.length_penalty, options.length_norm)
        limits, width, nbest = spec.limits(options), options.width + spec.num_steps, options.num_searched
        if spec.terms:
            require_plain_beam(options)
            texts = (text for terms in spec.terms for text in terms.texts)
            require_allowed(options.ban, texts, self.normaliser.apply)
            return ConstrainedBeamSearch(
                width, limits, penalty, spec.terms, self._ends_word, nbest, self.device, coverage
            )
        if options.diversity:
            return DiverseBeamSearch(width, limits, penalty, nbest, options.diversity, self.device, coverage)
        if options.sample or width == 1:
            draw = RandomDraw(options.seed, options.temperature, options.top_k, options.top_p)
            pick = draw if options.sample else greedy
            text = self.detokenizer
            stops = StopTexts(options.stop, text.token_bytes, text.space_after_words) if options.stop else None
            return Sampler(width, limits, penalty, pick, spec.streams, coverage, stops, text.token_after_eos)
        return BeamSearch(width, limits, penalty, nbest, self.device, coverage)

    @cached_property
    def _ends_word(self) -> Bool[Tensor, " V"]:
        return torch.tensor(ends_word(self.detokenizer.token_bytes), device=self.device)

    def _banned(self, phrases: tuple[str, ...]) -> BannedPhrases:
        """The phrases, normalised like outputs; those that become empty are left out."""
        normalised = (self.normaliser.apply(phrase).strip() for phrase in phrases)
        return BannedPhrases([phrase for phrase in normalised if phrase], self.detokenizer.token_bytes)

    def _terms(self, terms: tuple[str, ...]) -> RequiredTerms:
        """Raises DataError for a term that cannot be written."""
        return RequiredTerms(terms, self.tokenizer, self.detokenizer.token_bytes)

    def _bias(self, options: SearchOptions) -> LogitBias:
        """Raises UsageError for an unknown token."""
        size = len(self.tokenizer.vocabulary)
        if unknown := [token for token, _ in options.bias if token >= size]:
            raise UsageError(
                f"bias contains token {unknown[0]:,}, but the last token of this vocabulary is {size - 1:,}."
            )
        return LogitBias(options.bias)


def _first_tokens(prefixes: Int[Tensor, "N P"], strategy: DecodingStrategy) -> Int[Tensor, "R P1"]:
    return torch.nn.functional.pad(prefixes, (1, 0), value=BOS_ID).repeat_interleave(strategy.rows_per_source, 0)
