"""Which filters, which chooser and which ranker do the options of a search ask for? What is off is not there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import torch
from jaxtyping import Bool
from torch import Tensor

from heed.core.errors import UsageError
from heed.decoding.ban import Ban, WithoutBanned
from heed.decoding.beam import BeamChooser
from heed.decoding.constrained import ConstrainedBeamChooser
from heed.decoding.coverage import Coverage
from heed.decoding.diverse import DiverseBeamChooser
from heed.decoding.filters import Filter, Forbid, MinTokens, NoRepeat
from heed.decoding.hypothesis import LengthPenalty
from heed.decoding.options import SearchOptions
from heed.decoding.pick import PickChooser, Sample, greedy
from heed.decoding.search import Chooser
from heed.decoding.shifts import Bias, SaidBefore
from heed.decoding.stops import Stops
from heed.decoding.terms import Terms, ends_word
from heed.decoding.text_form import TextForm
from heed.text.line_ends import LineEnd
from heed.text.normalise import Normaliser
from heed.text.tokenizers import Tokenizer
from heed.text.vocabulary import Vocabulary

PAD_ID, BOS_ID, EOS_ID, UNK_ID = Vocabulary.pad_id, Vocabulary.bos_id, Vocabulary.eos_id, Vocabulary.unk_id


@dataclass(frozen=True)
class Demand:
    """What the sources of one batch ask for: its length and its random numbers for each, and terms for all or none."""

    lengths: Sequence[int]
    """Tokens of each source."""
    streams: Sequence[int]
    """The key of the random draws of each."""
    terms: Sequence[Terms] = ()
    """The terms of each; all of them have as many steps."""
    prefix_length: int = 0
    """Tokens of the forced prefix, which is as long for all."""

    @property
    def num_steps(self) -> int:
        """The steps towards the terms: by so many places a beam is wider."""
        return self.terms[0].num_steps if self.terms else 0

    def limits(self, options: SearchOptions) -> list[int]:
        """The longest output of each source, its end of sentence included: never too short for what must be in it."""
        needed = [terms.num_pieces for terms in self.terms] or [0] * len(self.lengths)
        return [
            max(options.limit(length), self.prefix_length + pieces + 1)
            for length, pieces in zip(self.lengths, needed, strict=True)
        ]


def require_plain_beam(options: SearchOptions) -> None:
    """Raises UsageError for a search that cannot lead to given terms."""
    if options.sample or options.diversity:
        raise UsageError("terms that must stand in the output are for beam search: leave out --sample and --diversity.")


class Roles:
    """Makes the parts of a search for one tokenizer."""

    def __init__(
        self, tokenizer: Tokenizer, device: torch.device, line_end: LineEnd | None = None,
        normaliser: Normaliser | None = None,
    ) -> None:  # fmt: skip
        """`normaliser`: of all text that the tokenizer gets."""
        self.tokenizer = tokenizer
        self.normaliser = normaliser or Normaliser()
        self.form = TextForm(tokenizer, line_end)
        self.device = device
        self.ban = lru_cache(maxsize=8)(self._ban)  # finding out what may follow what is worth remembering
        self.terms = lru_cache(maxsize=4096)(self._terms)

    @cached_property
    def _spelled(self) -> list[bytes]:
        """What each token adds to a text; an output is one line."""
        ids = range(len(self.tokenizer.vocabulary))
        return [piece.replace(b"\n", b" ") for piece in self.tokenizer.bytes_of(ids)]

    @cached_property
    def _ends_word(self) -> Bool[Tensor, " V"]:
        return torch.tensor(ends_word(self.form.spelled), device=self.device)

    def _ban(self, phrases: tuple[str, ...]) -> Ban:
        """Phrases as outputs are written; what is nothing then is in none of them."""
        normalised = (self.normaliser.apply(phrase).strip() for phrase in phrases)
        return Ban([phrase for phrase in normalised if phrase], self.form.spelled, EOS_ID)

    def _terms(self, terms: tuple[str, ...]) -> Terms:
        """The terms of a source, as they are followed. Raises DataError for one that cannot be written."""
        return Terms(terms, self.tokenizer, self.form.spelled)

    def require_allowed(self, banned: tuple[str, ...], demanded: Iterable[str]) -> None:
        """Raises UsageError for a text that no output may hold."""
        for text in dict.fromkeys(demanded) if banned else ():
            for phrase in self.ban(banned).found_in(text):
                raise UsageError(f"an output must hold {text!r}, and {phrase!r} is banned: take one of them out.")

    def filters(self, options: SearchOptions, demand: Demand) -> list[Filter]:
        """The rules for the sources of a batch, in the order in which they work."""
        filters: list[Filter] = [Forbid(self.form.never)]
        if options.min_tokens or options.min_ratio:
            filters.append(MinTokens([options.least(length) for length in demand.lengths], EOS_ID))
        if options.no_repeat:
            filters.append(NoRepeat(options.no_repeat, demand.terms))
        if options.ban:
            filters.append(WithoutBanned(self.ban(options.ban), demand.limits(options)))
        if options.bias:
            filters.append(self._bias(options))
        if options.presence_penalty or options.frequency_penalty:
            filters.append(SaidBefore(options.presence_penalty, options.frequency_penalty))
        return filters

    def _bias(self, options: SearchOptions) -> Bias:
        """Raises UsageError for a token that is none."""
        size = len(self.tokenizer.vocabulary)
        if unknown := [token for token, _ in options.bias if token >= size]:
            raise UsageError(f"bias is about token {unknown[0]:,}, and the last of this vocabulary is {size - 1:,}.")
        return Bias(options.bias)

    def chooser(self, options: SearchOptions, demand: Demand, coverage: Coverage | None = None) -> Chooser:
        """Greedy, drawing, or one of the beams."""
        penalty = LengthPenalty(options.length_penalty, options.length_norm)
        limits = demand.limits(options)
        size, width, nbest = len(limits), options.width + demand.num_steps, options.num_searched
        if demand.terms:
            require_plain_beam(options)
            self.require_allowed(options.ban, (text for of_source in demand.terms for text in of_source.texts))
            return ConstrainedBeamChooser(
                size, width, EOS_ID, penalty, limits, demand.terms, self._ends_word, nbest, self.device, coverage
            )
        if options.diversity:
            strength = options.diversity
            return DiverseBeamChooser(size, width, EOS_ID, penalty, limits, nbest, strength, self.device, coverage)
        if options.sample or width == 1:
            pick = Sample(options.seed, options.temperature, options.top_k, options.top_p) if options.sample else greedy
            stops = Stops(options.stop, self.form.spelled, self.form.spaced) if options.stop else None
            end = self.form.read_for_end
            return PickChooser(size, width, EOS_ID, pick, penalty, limits, demand.streams, coverage, stops, end)
        return BeamChooser(size, width, EOS_ID, penalty, limits, nbest, self.device, coverage)
