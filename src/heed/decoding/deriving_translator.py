"""Deriving translator: translations by a model that searches over whole derivations.

Such a model (`heed.statistical.derivation.Derives`) has no P(w_t | w_<t) that the common search could extend, so
options and constraints that act on single steps of that search are refused. `decoding.beam_size` is the number of its
active hypotheses; n-best lists, minimum Bayes risk and output checks work as with any other search. This module and all
that it imports do without PyTorch.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

from heed.core.errors import UsageError
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.line_translator import LineTranslator
from heed.decoding.options import Constraints, Request, SearchOptions
from heed.decoding.output_checks import OutputChecks
from heed.statistical.derivation import Derivation, Derives, Forced
from heed.text.normalise import Normaliser
from heed.text.tokenizers import Tokenizer

_REFUSED = (
    "sample", "diversity", "coverage_penalty", "min_tokens", "min_ratio", "max_tokens", "no_repeat", "ban",
    "presence_penalty", "frequency_penalty", "bias", "stop",
)  # fmt: skip
"""Options that act on the steps of the common search."""


def require_derivable(options: SearchOptions, requests: Sequence[Request] = ()) -> None:
    """Raise UsageError for options and constraints that a search over derivations cannot honour."""
    defaults = SearchOptions()
    refused = [f"decoding.{name}" for name in _REFUSED if getattr(options, name) != getattr(defaults, name)]
    refused += ["a prefix"] * any(request.prefix for request in requests)
    if refused:
        raise UsageError(
            f"{', '.join(refused)}: this translator searches over whole derivations and not word by word, so it cannot "
            "honour that. Leave it out, or use a translator that generates word by word."
        )


class DerivationEngine:
    """The search of a model that derives (`heed.decoding.engine_contract.Engine`)."""

    num_workers = 1
    """Batches that are searched at the same time."""

    def __init__(self, model: Derives, src_tokenizer: Tokenizer, tgt_tokenizer: Tokenizer) -> None:
        self.model = model
        self._src_tokenizer, self._tgt_tokenizer = src_tokenizer, tgt_tokenizer

    def can_search(self, options: SearchOptions) -> bool:
        """Every search is its own; what it cannot do is refused by `search`."""
        return True

    def search(
        self, requests: Sequence[Request], options: SearchOptions, with_tokens: bool = True, num_batches: int = 0
    ) -> dict[Request, list[Hypothesis]]:
        """The hypotheses of each request, best first and without texts. Raises UsageError; see `require_derivable`."""
        require_derivable(options, requests)
        found = {
            request: self.model.derive(request.source, options.width, options.num_searched, self._forced(request))
            for request in requests
        }
        return {
            request: [Hypothesis(each.ids, each.score, each.score) for each in derivations]
            for request, derivations in found.items()
        }

    def _forced(self, request: Request) -> list[Forced]:
        """The parts of the source that required terms translate. Raises UsageError for terms of unknown places."""
        if len(request.term_sources) != len(request.terms):
            raise UsageError(
                "a required term: this translator must know what it translates in the source. Give it in a glossary."
            )
        parts = self._src_tokenizer.bytes_of(request.source)
        ends = list(accumulate(map(len, parts)))
        text = b"".join(parts)
        forced: list[Forced] = []
        for source, ids in zip(
            request.term_sources, self._tgt_tokenizer.encode([f" {t}" for t in request.terms]), strict=True
        ):
            for match in re.finditer(re.escape(source.encode()), text):
                begin, end = bisect_right(ends, match.start()), bisect_left(ends, match.end()) + 1
                if all(end <= part.begin or part.end <= begin for part in forced):
                    forced.append(Forced(begin, end, tuple(ids)))
                    break
            else:
                raise UsageError(
                    f"the source of the required term {source!r} is not in the line, or is part of another term."
                )
        return forced


class DerivingTranslator(LineTranslator):
    """A model that derives, with its tokenizers."""

    def __init__(
        self, model: Derives, src_tokenizer: Tokenizer, tgt_tokenizer: Tokenizer, normaliser: Normaliser,
        checks: OutputChecks | None = None,
    ) -> None:  # fmt: skip
        checks = checks or OutputChecks(can_avoid_loops=False)
        super().__init__(src_tokenizer, tgt_tokenizer, normaliser, self._search, checks)
        self.engine = DerivationEngine(model, src_tokenizer, tgt_tokenizer)

    def requests(
        self, lines: Sequence[str], constraints: Sequence[Constraints] | None, banned: tuple[str, ...] = ()
    ) -> list[Request]:
        """As those of other translators, with what required terms translate."""
        requests = super().requests(lines, constraints, banned)
        return [
            replace(request, term_sources=own.sources) if request.terms else request
            for request, own in zip(requests, constraints or [Constraints()] * len(requests), strict=True)
        ]

    def _search(self, requests: Sequence[Request], options: SearchOptions) -> dict[Request, Hypothesis]:
        searched = self.engine.search(requests, options)
        return {request: self.best_of(hypotheses, options) for request, hypotheses in searched.items()}

    def derivations(self, line: str, width: int, number: int) -> list[Derivation]:
        """The best derivations of a line, without output checks."""
        [request] = self.requests([line], None)
        return self.engine.model.derive(request.source, width, number) if request.source else []

    def derived_links(self, source: str, target: str) -> list[tuple[int, int]]:
        """The links of the best derivation that gives this target; none if no derivation does."""
        best = self.derivations(source, _WIDTH, _NUMBER)
        texts = self.detokenizer.texts([each.ids for each in best])
        return next((list(each.links) for each, text in zip(best, texts, strict=True) if text == target), [])


_WIDTH, _NUMBER = 100, 10
"""Of the search for links."""
