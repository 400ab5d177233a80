"""From lines of text to lines of text with any model: what `translate`, `evaluate`, `score` and `serve` know.

A line's output never depends on the other lines: lines are sorted and grouped only for speed, identical
lines are computed once, and the order is put back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Protocol

import torch

from heed.core.errors import DataError, UsageError
from heed.data.batch import collate
from heed.decoding.beam import Watch
from heed.decoding.confidence import Confidence
from heed.decoding.departure import Departure, departure
from heed.decoding.guard import Guard, fallback_searches, longest_repeat
from heed.decoding.hypothesis import Hypothesis, single_spaced
from heed.decoding.long_lines import MAX_CHARACTERS, MAX_TOKENS, split_if_long, translate_apart
from heed.decoding.mbr import by_utility
from heed.decoding.memory import in_parts_that_fit
from heed.decoding.options import SearchOptions
from heed.decoding.request import Constraints, Request, groups
from heed.decoding.roles import BOS_ID, EOS_ID, PAD_ID, UNK_ID, Roles
from heed.decoding.scoring import token_log_probs
from heed.decoding.search import search
from heed.decoding.stops import cut
from heed.decoding.text_form import without_what_was_cut
from heed.nn.contract import Autoregressive, Trace
from heed.text.line_ends import LineEnd
from heed.text.normalise import Normaliser
from heed.text.tokenizers import Tokenizer

Find = Callable[[Sequence[Request], SearchOptions], dict[Request, Hypothesis]]
"""Finds the best hypothesis of each request, with its alternatives."""

MAX_BATCH_POSITIONS = 64_000
"""Bound on rows × longest line of one search or scoring: long lines come in smaller groups."""

MAX_SCORED_ROWS = 64
"""Texts scored at once."""

MAX_SCORED_TOKENS = 10_000
"""Of the longest text that is scored: attention takes the square of it. A model that counts takes any length."""


class Translator(Protocol):
    """Anything that turns lines into lines: a model that is a chain rule, or a system of another kind."""

    def translate(self, lines: Sequence[str], options: SearchOptions) -> list[Hypothesis]:
        """One hypothesis for each line, in order; more in its `alternatives` when n-best is asked for."""
        ...


@dataclass(frozen=True)
class TokenScores:
    """How likely each token of a text is: ids with end of sentence, and log-probabilities in nats."""

    ids: tuple[int, ...]
    log_probs: tuple[float, ...]

    @property
    def log_prob(self) -> float:
        """The sum over the text, end of sentence included."""
        return sum(self.log_probs)


@dataclass(frozen=True)
class Judgement:
    """What is known of a run's outputs beside what the search says. Each part may be missing."""

    guard: Guard | None = None
    """Tells outputs that cannot be right."""
    confidence: Confidence | None = None
    """Tells how likely an output is good."""
    lm: Autoregressive | None = None
    """A language model that takes part in the search, and whose share is to be told."""
    tgt_lang: str = ""
    """The target's language, for measures that cut words."""


class ModelTranslator:
    """A model with its tokenizers. `src_tokenizer` is None for a language model."""

    def __init__(
        self, model: Autoregressive, src_tokenizer: Tokenizer | None, tgt_tokenizer: Tokenizer,
        normaliser: Normaliser, device: torch.device | None = None, judgement: Judgement | None = None,
        before_source: Sequence[int] = (), line_end: LineEnd | None = None,
    ) -> None:  # fmt: skip
        self.model = model
        self.src_tokenizer = src_tokenizer
        self.tgt_tokenizer = tgt_tokenizer
        self.normaliser = normaliser
        self.device = device or torch.device("cpu")
        self.judgement = judgement or Judgement()
        self.before_source = list(before_source)
        """The ids of the tag that stands before each source."""
        self.roles = Roles(tgt_tokenizer, self.device, line_end, normaliser)
        self._find: Find = self.in_batches

    def translate(
        self, lines: Sequence[str], options: SearchOptions, constraints: Sequence[Constraints] | None = None
    ) -> list[Hypothesis]:
        """The best hypothesis for each line; a line of nothing but space stays as it is.

        `constraints`: what each line's output must keep to. Raises UsageError where options and constraints, or
        options and model, do not go together.
        """
        if any(len(line) > MAX_CHARACTERS for line in lines):
            return self._with_long_lines(lines, options, constraints)
        requests = self.requests(lines, constraints, options.ban)
        if any(len(request.source) > MAX_TOKENS for request in requests):
            return self._with_long_lines(lines, options, constraints)
        distinct = sorted({request for request in requests if request.source})
        found = self._judged(self._find(distinct, options), options)
        return [
            found[request] if request.source else Hypothesis((), 0.0, 0.0, text=line)
            for line, request in zip(lines, requests, strict=True)
        ]

    def generate(self, prompts: Sequence[str], options: SearchOptions, first: int = 0) -> list[list[Hypothesis]]:
        """Continuations of each prompt: the prompt and such a text read right together.

        Of draws `options.nbest`, of a beam at most so many, as each text comes once.

        `first`: how many prompts came before, as each has random numbers of its own. Raises UsageError for a beam over
        text without ends.
        """
        if self.roles.form.line_end not in (None, "eos") and not options.sample and options.width > 1:
            raise UsageError("this model's text has no ends that a beam could come to: draw, or take a beam of 1.")
        requests = [self.request_of(prompt, draw) for draw, prompt in enumerate(prompts, start=first)]
        found = self._find(requests, options)
        several = [[replace(best, alternatives=()), *best.alternatives] for best in map(found.__getitem__, requests)]
        form = self.roles.form
        return [
            [form.behind(prompt, hypothesis) for hypothesis in hypotheses]
            for prompt, hypotheses in zip(prompts, several, strict=True)
        ]

    def request_of(self, prompt: str, draw: int = 0) -> Request:
        """What is asked of a language model. `draw`: which of several draws for the same prompt."""
        return Request((), tuple(self.roles.form.read(prompt, self.normaliser)), draw=draw)

    def score(self, targets: Sequence[str], sources: Sequence[str] | None = None) -> list[TokenScores]:
        """Log-probabilities of each target's tokens, given its source where the model has one."""
        tgt_ids = self._encode(self.tgt_tokenizer, targets)
        src_ids = None
        if self.src_tokenizer is not None:
            if sources is None:
                raise ValueError("a translation model scores a target given its source")
            src_ids = self._encode_sources(sources)
        lengths = [max(len(ids), len(src_ids[i]) if src_ids else 0) + 1 for i, ids in enumerate(tgt_ids)]
        longest = max(lengths, default=0)
        if longest > MAX_SCORED_TOKENS and not self.model.count_based:
            raise DataError(
                f"a line has {longest:,} tokens, and at most {MAX_SCORED_TOKENS:,} are scored at once: "
                "cut it into sentences."
            )
        order = sorted(range(len(targets)), key=lambda i: (-lengths[i], len(tgt_ids[i])))
        out: dict[int, TokenScores] = {}

        def scored(rows: Sequence[int]) -> list[TokenScores]:
            sides = [src_ids[i] for i in rows] if src_ids is not None else None
            return self._scored(sides, [tgt_ids[i] for i in rows])

        for place in groups([lengths[i] for i in order], MAX_SCORED_ROWS, MAX_BATCH_POSITIONS):
            out.update(zip(order[place], in_parts_that_fit(order[place], scored), strict=True))
        return [out[i] for i in range(len(targets))]

    def _scored(self, src_ids: list[list[int]] | None, tgt_ids: list[list[int]]) -> list[TokenScores]:
        batch = collate(src_ids, tgt_ids, range(len(tgt_ids)), BOS_ID, EOS_ID, PAD_ID).to(self.device)
        found = token_log_probs(self.model, batch.source, batch.tgt_in, batch.tgt_out).cpu().tolist()
        return [
            TokenScores((*ids, EOS_ID), tuple(row[: len(ids) + 1])) for ids, row in zip(tgt_ids, found, strict=True)
        ]

    def trace(self, source: str, target: str) -> tuple[Trace, list[int], list[int]]:
        """Attention weights of one pair under teacher forcing, with the ids of both sides (each with its end)."""
        if self.src_tokenizer is None:
            raise ValueError("only a model with a source attends to one")
        src_ids = self._encode_sources([source])[0]
        tgt_ids = self._encode(self.tgt_tokenizer, [target])[0]
        batch = collate([src_ids], [tgt_ids], [0], BOS_ID, EOS_ID, PAD_ID).to(self.device)
        trace = Trace()
        with torch.inference_mode():
            self.model.advance(batch.tgt_in, self.model.start(batch.source), trace)
        return trace, [*src_ids, EOS_ID], [*tgt_ids, EOS_ID]

    def watched(self, line: str, options: SearchOptions, watch: Watch) -> Hypothesis:
        """What the search alone, without the guard, finds for a line; `watch` sees each step of a beam."""
        return self._search(self.requests([line], None), options, watch)[0]

    def encoded(self, source: str | None, target: str) -> tuple[list[int], list[int]]:
        """The ids of both sides as the model gets them, without their ends; a language model has no source."""
        src_ids = self._encode_sources([source])[0] if source is not None else []
        return src_ids, self._encode(self.tgt_tokenizer, [target])[0]

    def _encode(self, tokenizer: Tokenizer, lines: Sequence[str]) -> list[list[int]]:
        distinct = list(dict.fromkeys(lines))
        ids = tokenizer.encode([self.normaliser.apply(line) for line in distinct])
        ids_of = dict(zip(distinct, ids, strict=True))
        return [ids_of[line] for line in lines]

    def _encode_sources(self, lines: Sequence[str]) -> list[list[int]]:
        """With the tag before each, but for a source without a token."""
        assert self.src_tokenizer is not None
        return [[*self.before_source, *ids] if ids else [] for ids in self._encode(self.src_tokenizer, lines)]

    def num_source_tokens(self, line: str) -> int:
        """Tokens of a line as the model gets it, without its end."""
        return len(self._encode_sources([line])[0])

    def _with_long_lines(
        self, lines: Sequence[str], options: SearchOptions, constraints: Sequence[Constraints] | None
    ) -> list[Hypothesis]:
        """Lines that are too long are translated in pieces, the first of which keeps to what the line must keep to."""
        pieces = [split_if_long(line, self.num_source_tokens) for line in lines]
        flat = None
        if constraints is not None:
            sentences = [[piece for piece in parts if piece.is_sentence] for parts in pieces]
            given = zip(sentences, constraints, strict=True)
            flat = [Constraints() if place else wanted for parts, wanted in given for place, _ in enumerate(parts)]
        return translate_apart(pieces, lambda texts: self.translate(texts, options, flat), bool(options.mbr))

    # --- from lines to requests, from requests to hypotheses ---------------------------------------------

    def requests(
        self, lines: Sequence[str], constraints: Sequence[Constraints] | None, banned: tuple[str, ...] = ()
    ) -> list[Request]:
        if self.src_tokenizer is None:
            raise ValueError("a language model generates; it does not translate")
        encoded = self._encode_sources(lines)
        sources = [tuple(ids) if line.strip() else () for line, ids in zip(lines, encoded, strict=True)]
        if constraints is None:
            return [Request(ids) for ids in sources]
        self.roles.require_allowed(banned, (self.normaliser.apply(wanted.prefix) for wanted in constraints))
        prefixes = self._encode(self.tgt_tokenizer, [wanted.prefix.rstrip() for wanted in constraints])
        for wanted, ids in zip(constraints, prefixes, strict=True):
            if UNK_ID in ids:
                raise DataError(
                    f"this run's vocabulary cannot write the prefix {wanted.prefix.rstrip()!r}. Leave it out, or train "
                    "with a tokenizer that can write any text (bpe)."
                )
            if len(ids) > MAX_TOKENS:
                raise DataError(
                    f"a prefix has {len(ids):,} tokens, and at most {MAX_TOKENS:,} are read: {wanted.prefix[:60]!r}. "
                    "Give how the sentence begins, and what is behind it as a line of its own."
                )
        return [
            Request(ids, tuple(prefix), tuple(dict.fromkeys(map(self.normaliser.apply, wanted.terms))))
            for ids, prefix, wanted in zip(sources, prefixes, constraints, strict=True)
        ]

    def searched_by(self, find: Find) -> ModelTranslator:
        """The same translator, but for its searches, which someone else makes: a server for all its clients."""
        other = copy(self)
        other._find = find
        return other

    def in_batches(self, requests: Sequence[Request], options: SearchOptions) -> dict[Request, Hypothesis]:
        """What the search finds for each; those that need a tensor of one shape are searched together."""
        alike: dict[tuple[int, int], list[Request]] = {}
        for request in requests:
            alike.setdefault((len(request.prefix), self.num_steps(request)), []).append(request)
        found: dict[Request, Hypothesis] = {}
        for (_, num_steps), rows in alike.items():
            rows.sort(key=lambda request: (-len(request.source), request))
            lengths = [len(request.source) + len(request.prefix) + 1 for request in rows]
            for place in groups(lengths, options.batch_size, MAX_BATCH_POSITIONS // (options.width + num_steps)):
                batch = rows[place]
                hypotheses = in_parts_that_fit(batch, lambda part: self._search(part, options))
                found.update(zip(batch, hypotheses, strict=True))
        return found

    def num_steps(self, request: Request) -> int:
        """The steps towards its terms: by so many places its beam is wider."""
        return self.roles.terms(request.terms).num_steps if request.terms else 0

    def _search(
        self, requests: Sequence[Request], options: SearchOptions, watch: Watch | None = None
    ) -> list[Hypothesis]:
        """One batch: prefixes of one length, and terms of as many steps."""
        start = self.departure(requests, options)
        start.chooser.watch = watch
        found = search(self.model, start.source, start.chooser, start.filters, start.begin, start.limit, start.trace)
        return [self.best_of(hypotheses, options) for hypotheses in found]

    def departure(self, requests: Sequence[Request], options: SearchOptions) -> Departure:
        """What the search of one batch starts from: prefixes of one length, and terms of as many steps."""
        return departure(self.model, self.roles, requests, options, self.src_tokenizer is not None)

    def best_of(self, hypotheses: Sequence[Hypothesis], options: SearchOptions) -> Hypothesis:
        """The best of what a search found for one request, the others as its alternatives."""
        best, *others = self._ranked(hypotheses, options)
        return replace(best, alternatives=tuple(others))

    def _ranked(self, hypotheses: Sequence[Hypothesis], options: SearchOptions) -> list[Hypothesis]:
        """With their texts, and chosen by utility if that is wanted."""
        found = self._with_texts(hypotheses, options.stop)
        if options.mbr:
            return by_utility(found, options.mbr, options.sample, self.judgement.tgt_lang)[: options.nbest]
        if options.sample:  # draws are told as they fell
            return found
        of_text: dict[str, Hypothesis] = {}
        for hypothesis in found:  # one text may be cut into pieces in several ways
            text = hypothesis.text if self.src_tokenizer is None else single_spaced(hypothesis.text)
            of_text.setdefault(text, hypothesis)
        return list(of_text.values())

    def _with_texts(self, hypotheses: Sequence[Hypothesis], stop: Sequence[str]) -> list[Hypothesis]:
        texts = self.roles.form.texts([h.ids for h in hypotheses])
        found = [h.with_text(cut(text, stop)) for h, text in zip(hypotheses, texts, strict=True)]
        return [without_what_was_cut(self.roles.form, h) for h in found] if stop else found

    # --- what is known of the outputs --------------------------------------------------------------------

    def _judged(self, found: dict[Request, Hypothesis], options: SearchOptions) -> dict[Request, Hypothesis]:
        judgement = self.judgement
        if judgement.guard is not None and options.guard:
            found = self._guarded(judgement.guard, found, options)
        if judgement.confidence is not None and not options.sample:
            confidence, flags = judgement.confidence, {request: h.flags for request, h in found.items()}
            if judgement.guard is not None and not options.guard:  # a flag is a feature, whether it is shown or not
                flags = self._flags(judgement.guard, found)
            found = {
                request: replace(h, confidence=confidence.of(replace(h, flags=flags[request])))
                for request, h in found.items()
            }
        if judgement.lm is not None:
            found = dict(zip(found, self._with_lm(judgement.lm, list(found.values())), strict=True))
        return found

    def flags(self, lines: Sequence[str], outputs: Sequence[Hypothesis]) -> list[tuple[str, ...]]:
        """What the guard says of an output for each line, whether it is shown or not."""
        if self.judgement.guard is None:
            return [() for _ in lines]
        requests = self.requests(lines, None)
        texts = self._source_texts(dict.fromkeys(requests))
        return [self.judgement.guard.flags(texts[r], h.text) for r, h in zip(requests, outputs, strict=True)]

    def _source_texts(self, requests: Iterable[Request]) -> dict[Request, str]:
        """As the model gets them."""
        assert self.src_tokenizer is not None
        distinct = list(requests)
        return dict(zip(distinct, self.src_tokenizer.decode([request.source for request in distinct]), strict=True))

    def _flags(self, guard: Guard, found: Mapping[Request, Hypothesis]) -> dict[Request, tuple[str, ...]]:
        """What the guard says of the best hypothesis of each request."""
        texts = self._source_texts(found)
        return {request: guard.flags(texts[request], h.text) for request, h in found.items()}

    def _guarded(
        self, guard: Guard, found: dict[Request, Hypothesis], options: SearchOptions
    ) -> dict[Request, Hypothesis]:
        """The same with flags; where the best is flagged and there is a beam, another one in its place."""
        texts, flags = self._source_texts(found), self._flags(guard, found)
        checked, flagged = dict(found), [request for request in found if flags[request]]
        for again, flag in fallback_searches(options, longest_repeat(self.tgt_tokenizer)):
            for request, h in self._find([r for r in flagged if flag in flags[r] or not flag], again).items():
                for other in (h, *h.alternatives):
                    if other.finished and not guard.flags(texts[request], other.text):
                        checked[request] = _in_place_of(found[request], other, options.nbest)
                        break
            flagged = [request for request in flagged if not checked[request].fallback]
        return {request: replace(h, flags=flags[request]) for request, h in checked.items()}

    def _with_lm(self, lm: Autoregressive, found: Sequence[Hypothesis]) -> list[Hypothesis]:
        """What a language model gives each output: the same tokens, and its end where it has one."""
        out: list[Hypothesis] = []
        for begin in range(0, len(found), MAX_SCORED_ROWS):
            part = found[begin : begin + MAX_SCORED_ROWS]
            batch = collate(None, [h.ids for h in part], range(len(part)), BOS_ID, EOS_ID, PAD_ID).to(self.device)
            steps = token_log_probs(lm, None, batch.tgt_in, batch.tgt_out).tolist()
            out += [
                replace(h, lm_log_prob=sum(row[: len(h.ids) + h.finished])) for h, row in zip(part, steps, strict=True)
            ]
        return out


def _in_place_of(best: Hypothesis, chosen: Hypothesis, nbest: int) -> Hypothesis:
    """A hypothesis given in place of the best, which stays first among the others."""
    others = [replace(h, alternatives=()) for h in (best, *best.alternatives) if h.text != chosen.text]
    return replace(chosen, alternatives=tuple(others[: nbest - 1]), fallback=True)
