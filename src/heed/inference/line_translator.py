"""Line translator: lines of text to hypotheses, whichever engine searches.

A line's output never depends on the other lines: identical lines are searched once, and results come in the order of
the input. This module and all that it imports do without PyTorch, so a translator whose engine needs no PyTorch starts
without it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Self

from heed.core.errors import DataError, UsageError
from heed.decoding.detokenizer import Detokenizer
from heed.decoding.hypothesis import Hypothesis, single_spaced
from heed.decoding.options import Constraints, Request, SearchOptions, validated
from heed.decoding.phrases import Glossary, require_allowed
from heed.decoding.ranking import minimum_bayes_risk
from heed.inference.output_checks import OutputChecks, Searcher, no_repeat_size
from heed.inference.sentences import MAX_CHARACTERS, MAX_TOKENS, split_if_long, translate_pieces
from heed.inference.unknown_words import UnknownWords
from heed.text.normalise import Normaliser
from heed.text.tokenizers import LineEnd, Tokenizer
from heed.text.vocabulary import UNK_ID


class LineTranslator:
    """Tokenizers, normaliser and output checks around a search. `src_tokenizer` is None for a language model."""

    def __init__(
        self, src_tokenizer: Tokenizer | None, tgt_tokenizer: Tokenizer, normaliser: Normaliser, searcher: Searcher,
        checks: OutputChecks | None = None, before_source: Sequence[int] = (), line_end: LineEnd | None = None,
        max_positions: int | None = None,
    ) -> None:  # fmt: skip
        """`before_source`: ids of the tag before each source. `searcher` may be replaced by `searched_by`.

        `max_positions`: of the model (see `ModelConfig`). Longer lines than it can read are split.
        """
        self.src_tokenizer = src_tokenizer
        self.tgt_tokenizer = tgt_tokenizer
        self.normaliser = normaliser
        self.checks = checks or OutputChecks()
        self.before_source = list(before_source)
        self.detokenizer = Detokenizer(tgt_tokenizer, line_end)
        self.longest = MAX_TOKENS if max_positions is None else min(MAX_TOKENS, max_positions - 1)
        """Most tokens that are read at once, the tag of a source included and its end not."""
        self._searcher = searcher
        self._num_threads = self._num_batches = 1

    def searched_by(self, searcher: Searcher, num_threads: int = 1, num_batches: int = 1) -> Self:
        """A copy that uses another searcher, such as the scheduler of a server.

        `num_threads`: in which many lines are searched; each thread takes lines for `num_batches` batches at once.
        """
        other = copy(self)
        other._searcher, other._num_threads, other._num_batches = searcher, num_threads, num_batches
        return other

    def translate(
        self, lines: Sequence[str], options: SearchOptions, constraints: Sequence[Constraints] | None = None
    ) -> list[Hypothesis]:
        """The best hypothesis for each line; a line of white space is returned unchanged.

        `constraints`: one for each line. Raises UsageError if options, constraints and model are incompatible.
        """
        options = validated(options)
        if any(len(line) > MAX_CHARACTERS for line in lines):
            return self._translate_long(lines, options, constraints)
        requests = self.requests(lines, constraints, options.ban)
        if any(len(r.source) > self.longest and len(line) > 1 for line, r in zip(lines, requests, strict=True)):
            return self._translate_long(lines, options, constraints)
        unknown = self.unknown_words(options)
        hypotheses = self._best({request for request in requests if request.source}, options)
        found = [
            hypotheses[request] if request.source else Hypothesis((), 0.0, 0.0, text=line)
            for line, request in zip(lines, requests, strict=True)
        ]
        return found if unknown is None else [*map(unknown.replaced, lines, found)]

    def unknown_words(self, options: SearchOptions) -> UnknownWords | None:
        """What replaces unknown words in outputs; None if nothing does. Raises UsageError and what reading raises."""
        return None

    def generate(self, prompts: Sequence[str], options: SearchOptions, first: int = 0) -> list[list[Hypothesis]]:
        """Continuations of each prompt, with texts that can be appended to it.

        Sampling returns `options.nbest` of them; a beam may return fewer, since it returns each text once. `first`: the
        number of earlier prompts, since each prompt has its own random stream. Raises UsageError for a beam search over
        text without ends.
        """
        options = validated(options)
        if self.detokenizer.line_end not in (None, "eos") and not options.sample and options.width > 1:
            raise UsageError(
                "beam search needs a model that has learned where texts end, and this one has not: use sampling or a "
                "beam size of 1."
            )
        requests = [self.prompt_request(prompt, draw) for draw, prompt in enumerate(prompts, start=first)]
        best = self._searcher(requests, options)
        ranked = [[replace(best[request], alternatives=()), *best[request].alternatives] for request in requests]
        return [
            [self.detokenizer.continuation(prompt, hypothesis) for hypothesis in hypotheses]
            for prompt, hypotheses in zip(prompts, ranked, strict=True)
        ]

    def _best(self, distinct: Iterable[Request], options: SearchOptions) -> dict[Request, Hypothesis]:
        """The best hypothesis of each request, checked.

        Threads check some of many requests while others search. The flagged outputs of all are searched again together.
        """
        requests, size = sorted(distinct), self._num_batches * options.batch_size
        if self._num_threads == 1 or len(requests) <= size:
            return self._checked(self._searched(options, requests), options)
        requests.sort(key=lambda request: -len(request.source))  # the last to finish are short
        parts = [requests[first : first + size] for first in range(0, len(requests), size)]
        best: dict[Request, Hypothesis] = {}
        pool = ThreadPoolExecutor(self._num_threads)
        try:
            for part in pool.map(partial(self._searched, options), parts):
                best |= part
        finally:
            pool.shutdown(cancel_futures=True)
        return self._checked(best, options)

    def _searched(self, options: SearchOptions, requests: Sequence[Request]) -> dict[Request, Hypothesis]:
        """The best hypotheses with their flags."""
        return self.checks.flagged(self._searcher(requests, options), self._texts)

    def _translate_long(
        self, lines: Sequence[str], options: SearchOptions, constraints: Sequence[Constraints] | None
    ) -> list[Hypothesis]:
        """Split lines that are too long. A prefix is required of the first sentence."""
        pieces = [split_if_long(line, self.num_source_tokens, self.longest) for line in lines]
        flat = None
        if constraints is not None:
            flat = [
                part for parts, own in zip(pieces, constraints, strict=True)
                for part in self._divided(own, [piece.text for piece in parts if piece.is_sentence])
            ]  # fmt: skip
        return translate_pieces(pieces, lambda texts: self.translate(texts, options, flat), bool(options.mbr))

    def _divided(self, own: Constraints, sentences: Sequence[str]) -> list[Constraints]:
        """The constraints of each sentence of a line: its own terms, and the first has the prefix and all others."""
        glossary = Glossary(dict(zip(own.sources, own.terms, strict=False)))
        pairs = [list(glossary.pairs_for(self.normaliser.apply(sentence))) for sentence in sentences]
        found = {term for of_sentence in pairs for _, term in of_sentence}
        parts = [Constraints.of("" if n else own.prefix, of_sentence) for n, of_sentence in enumerate(pairs)]
        if parts and (others := tuple(term for term in own.terms if term not in found)):
            parts[0] = replace(parts[0], terms=(*parts[0].terms, *others))
        return parts

    # --- text to ids -------------------------------------------------------------------------------------

    def encoded(self, source: str | None, target: str) -> tuple[list[int], list[int]]:
        """The ids of both sides as the model reads them, without their ends; none for a missing source."""
        src_ids = self._encode_sources([source])[0] if source is not None else []
        return src_ids, self._encode(self.tgt_tokenizer, [target])[0]

    def encoded_all(self, source: str, targets: Sequence[str]) -> tuple[list[int], list[list[int]]] | None:
        """The ids of a source and of several targets as `encoded` returns them; None if one is too long to be read."""
        [src_ids] = self._encode_sources([source])
        tgt_ids = self._encode(self.tgt_tokenizer, targets)
        return (src_ids, tgt_ids) if max(map(len, (src_ids, *tgt_ids))) <= self.longest else None

    def num_source_tokens(self, line: str) -> int:
        """Tokens of a line as the model reads it, without its end."""
        return len(self._encode_sources([line])[0])

    def _encode(self, tokenizer: Tokenizer, lines: Sequence[str]) -> list[list[int]]:
        distinct = list(dict.fromkeys(lines))
        ids = tokenizer.encode([self.normaliser.apply(line) for line in distinct])
        ids_of = dict(zip(distinct, ids, strict=True))
        return [ids_of[line] for line in lines]

    def _encode_sources(self, lines: Sequence[str]) -> list[list[int]]:
        """The ids of each source after its tag; a source without tokens stays empty."""
        assert self.src_tokenizer is not None
        return [[*self.before_source, *ids] if ids else [] for ids in self._encode(self.src_tokenizer, lines)]

    def requests(
        self, lines: Sequence[str], constraints: Sequence[Constraints] | None, banned: tuple[str, ...] = ()
    ) -> list[Request]:
        """One request for each line; a line of white space has an empty source."""
        if self.src_tokenizer is None:
            raise ValueError("a language model has no source to translate: use `generate`")
        encoded = self._encode_sources(lines)
        sources = [tuple(ids) if line.strip() else () for line, ids in zip(lines, encoded, strict=True)]
        if constraints is None:
            return [Request(ids) for ids in sources]
        self.require_allowed(banned, (self.normaliser.apply(own.prefix) for own in constraints))
        prefixes = self._encode(self.tgt_tokenizer, [own.prefix.rstrip() for own in constraints])
        for own, ids in zip(constraints, prefixes, strict=True):
            _require_usable(own.prefix, ids)
        terms = [tuple(map(self.normaliser.apply, own.terms)) for own in constraints]
        return [
            Request(ids, tuple(prefix), tuple(dict.fromkeys(texts)), tuple(zip(own.sources, texts, strict=False)))
            for ids, prefix, texts, own in zip(sources, prefixes, terms, constraints, strict=True)
        ]

    def prompt_request(self, prompt: str, draw: int = 0) -> Request:
        """A request to a language model. `draw`: the number of this sample among those of the same prompt."""
        return Request((), tuple(self.detokenizer.encode_prompt(prompt, self.normaliser)), draw=draw)

    def require_allowed(self, banned: tuple[str, ...], required: Iterable[str]) -> None:
        """Raises UsageError for a required text that contains a banned phrase."""
        require_allowed(banned, required, self.normaliser.apply)

    def num_steps(self, request: Request) -> int:
        """Steps towards the required terms: the beam is wider by as many hypotheses."""
        return 0

    # --- ranking and output checks -----------------------------------------------------------------------

    def best_of(self, hypotheses: Sequence[Hypothesis], options: SearchOptions) -> Hypothesis:
        """The best hypothesis of one request, with the others as its alternatives."""
        best, *others = self.ranked(hypotheses, options)
        return replace(best, alternatives=tuple(others)) if others else best

    def ranked(self, hypotheses: Sequence[Hypothesis], options: SearchOptions) -> list[Hypothesis]:
        """The hypotheses with texts, by score or minimum Bayes risk; only samples may repeat a text."""
        hypotheses = self.detokenizer.with_texts(hypotheses, options.stop)
        if options.mbr:
            utilities = minimum_bayes_risk(hypotheses, options.mbr, options.sample, self.checks.tgt_lang)
            return utilities[: options.nbest]
        if options.sample:
            return hypotheses
        by_text: dict[str, Hypothesis] = {}
        for hypothesis in hypotheses:  # several tokenizations may give one text
            text = hypothesis.text if self.src_tokenizer is None else single_spaced(hypothesis.text)
            by_text.setdefault(text, hypothesis)
        return list(by_text.values())

    def flags(self, lines: Sequence[str], outputs: Sequence[Hypothesis]) -> list[tuple[str, ...]]:
        """The guard's flags for the output of each line, whatever the options."""
        assert self.src_tokenizer is not None
        if self.checks.guard is None:
            return [() for _ in lines]
        sources = self.src_tokenizer.decode(self._encode_sources(lines))
        return [self.checks.guard.flags(text, h.text) for text, h in zip(sources, outputs, strict=True)]

    def _texts(self, requests: Sequence[Request]) -> list[str]:
        assert self.src_tokenizer is not None
        return self.src_tokenizer.decode([request.source for request in requests])

    def _checked(self, best: dict[Request, Hypothesis], options: SearchOptions) -> dict[Request, Hypothesis]:
        """Add replacements and confidences."""
        return self.checks.apply(best, self._texts, options, no_repeat_size(self.tgt_tokenizer), self._searcher)


def _require_usable(prefix: str, ids: Sequence[int]) -> None:
    """Raises DataError for a prefix that cannot be written or is too long."""
    if UNK_ID in ids:
        raise DataError(
            f"this run's vocabulary cannot write the prefix {prefix.rstrip()!r}. Leave it out, or train with a "
            "tokenizer that can write any text (bpe)."
        )
    if len(ids) > MAX_TOKENS:
        raise DataError(
            f"a prefix has {len(ids):,} tokens, but at most {MAX_TOKENS:,} are allowed: {prefix[:60]!r}. Give only the "
            "beginning of the sentence, and the text before it as a separate line."
        )
