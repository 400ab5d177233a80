"""Deriving translator: translations by a model that searches over whole derivations.

Such a model (`heed.statistical.derivation.Derives`) has no P(w_t | w_<t) that the common search could extend, so
options and constraints that act on single steps of that search are refused. `decoding.beam_size` is the number of its
active hypotheses; n-best lists, minimum Bayes risk and output checks work as with any other search. This module and all
that it imports do without PyTorch.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate

from heed.core.errors import UsageError
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.options import Request, SearchOptions
from heed.decoding.phrases import Glossary
from heed.inference.line_translator import LineTranslator
from heed.inference.output_checks import OutputChecks
from heed.statistical.derivation import Derivation, Derives, Forced, derive_all
from heed.text.normalise import Normaliser
from heed.text.tokenizers import Tokenizer
from heed.text.tokenizers.byte_level import words_of_pieces

_REFUSED = (
    "sample", "diversity", "coverage_penalty", "length_norm", "length_penalty", "min_tokens", "min_ratio",
    "max_tokens", "max_ratio", "max_extra", "no_repeat", "unknown", "ban", "presence_penalty", "frequency_penalty",
    "bias", "stop",
)  # fmt: skip
"""Options of a search that generates word by word."""


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
    """The search of a model that derives (`heed.inference.engine_contract.Engine`)."""

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
        sources = [(request.source, self._forced(request)) for request in requests]
        found = dict(zip(requests, derive_all(self.model, sources, options.width, options.num_searched), strict=True))
        return {
            request: [
                Hypothesis(each.ids, each.score, each.score, links=self._word_links(request.source, each))
                for each in derivations
            ]
            for request, derivations in found.items()
        }

    def _forced(self, request: Request) -> list[Forced]:
        """The parts of the source that required terms translate. Raises UsageError for a term without a place."""
        if not request.terms:
            return []
        parts = self._src_tokenizer.bytes_of(request.source)
        matches = list(Glossary(dict(request.term_pairs)).matches(b"".join(parts).decode()))
        missing = set(request.terms) - {target for _, _, target in matches}
        if missing:
            raise UsageError(
                f"the required term {min(missing)!r}: this translator must know what it translates in the line. Give "
                "it in a glossary, with a source that is in the line and is not part of another term."
            )
        bounds = [0, *accumulate(map(len, parts))]
        return [
            Forced(
                bisect_right(bounds, begin) - 1, bisect_left(bounds, end), tuple(self._tgt_tokenizer.encode([text])[0])
            )
            for begin, end, text in _replaced(b"".join(parts), bounds, matches)
        ]

    def _word_links(self, source: Sequence[int], derivation: Derivation) -> tuple[tuple[int, int], ...]:
        """The links between the words of a source and of what was derived from it."""
        src = words_of_pieces(self._src_tokenizer.bytes_of(source))
        tgt = words_of_pieces(self._tgt_tokenizer.bytes_of(derivation.ids))
        linked = {(src[i], tgt[j]) for i, j in derivation.links}
        return tuple(sorted((i, j) for i, j in linked if i is not None and j is not None))


def _replaced(
    line: bytes, bounds: Sequence[int], matches: Sequence[tuple[int, int, str]]
) -> Iterator[tuple[int, int, str]]:
    """The first byte of the tokens of each term, the byte after them, and their text with its target in its place.

    `bounds`: the tokens of the line. So the rest of a token that contains a term is kept, and so is the space before
    the term. Terms that share a token are in one part.
    """
    text = line.decode()
    cuts = [place for place in bounds if place == len(line) or not 0x80 <= line[place] < 0xC0]  # between characters
    parts: list[tuple[int, int, list[tuple[int, int, str]]]] = []
    for first, last, target in matches:
        begin, end = (len(text[:place].encode()) for place in (first, last))
        replacement = begin, end, target
        begin = cuts[bisect_right(cuts, begin - (text[:first][-1:] == " ")) - 1]
        end = cuts[bisect_left(cuts, end)]
        if parts and begin < parts[-1][1]:
            begin, _, replacements = parts.pop()
            parts.append((begin, end, [*replacements, replacement]))
        else:
            parts.append((begin, end, [replacement]))
    for begin, end, replacements in parts:
        written, done = b"", begin
        for first, last, target in replacements:
            written += line[done:first] + target.encode()
            done = last
        written += line[done:end]
        space = b"" if begin or written.startswith(b" ") else b" "
        yield begin, end, (space + written).decode()


class DerivingTranslator(LineTranslator):
    """A model that derives, with its tokenizers."""

    def __init__(
        self, model: Derives, src_tokenizer: Tokenizer, tgt_tokenizer: Tokenizer, normaliser: Normaliser,
        checks: OutputChecks | None = None,
    ) -> None:  # fmt: skip
        checks = checks or OutputChecks(can_avoid_loops=False)
        super().__init__(src_tokenizer, tgt_tokenizer, normaliser, self._search, checks)
        self.engine = DerivationEngine(model, src_tokenizer, tgt_tokenizer)

    def _search(self, requests: Sequence[Request], options: SearchOptions) -> dict[Request, Hypothesis]:
        searched = self.engine.search(requests, options)
        return {request: self.best_of(hypotheses, options) for request, hypotheses in searched.items()}

    def derivations(self, line: str, width: int, number: int) -> list[Derivation]:
        """The best derivations of a line, without output checks."""
        [request] = self.requests([line], None)
        return self.engine.model.derive(request.source, width, number) if request.source else []
