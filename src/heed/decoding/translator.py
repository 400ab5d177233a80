"""From lines of text to lines of text with any model: what `translate`, `evaluate`, `score` and `serve` know.

A line's output never depends on the other lines: lines are sorted and grouped only for speed, identical
lines are computed once, and the order is put back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import torch
from jaxtyping import Float, Int
from torch import Tensor

from heed.core.errors import DataError
from heed.data.batch import collate, source_from_ids
from heed.decoding.confidence import Confidence
from heed.decoding.coverage import Coverage
from heed.decoding.guard import Guard, fallback_searches
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.long_lines import MAX_CHARACTERS, translate_apart
from heed.decoding.mbr import by_utility
from heed.decoding.memory import in_parts_that_fit
from heed.decoding.options import SearchOptions
from heed.decoding.request import Constraints, Request, groups
from heed.decoding.roles import BOS_ID, EOS_ID, PAD_ID, Demand, Roles
from heed.decoding.scoring import token_log_probs
from heed.decoding.search import search
from heed.nn.contract import Autoregressive, Source, Trace
from heed.text.normalise import Normaliser
from heed.text.sentences import Piece, split_long
from heed.text.tokenizers import Tokenizer

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
    ) -> None:  # fmt: skip
        self.model = model
        self.src_tokenizer = src_tokenizer
        self.tgt_tokenizer = tgt_tokenizer
        self.normaliser = normaliser
        self.device = device or torch.device("cpu")
        self.judgement = judgement or Judgement()
        self._roles = Roles(tgt_tokenizer, self.device)

    def translate(
        self, lines: Sequence[str], options: SearchOptions, constraints: Sequence[Constraints] | None = None
    ) -> list[Hypothesis]:
        """The best hypothesis for each line; a line of nothing but space stays as it is.

        `constraints`: what each line's output must keep to. Raises UsageError where options and constraints, or
        options and model, do not go together.
        """
        if any(len(line) > MAX_CHARACTERS for line in lines):
            return self._with_long_lines(lines, options, constraints)
        requests = self._requests(lines, constraints)
        distinct = sorted({request for request in requests if request.source})
        found = self._judged(self._found(distinct, options), options)
        return [
            found[request] if request.source else Hypothesis((), 0.0, 0.0, text=line)
            for line, request in zip(lines, requests, strict=True)
        ]

    def generate(self, prompts: Sequence[str], options: SearchOptions) -> list[list[Hypothesis]]:
        """Continuations of each prompt, `options.nbest` of them; their text does not repeat the prompt."""
        encoded = self._encode(self.tgt_tokenizer, prompts)
        out: list[list[Hypothesis]] = []
        for index, ids in enumerate(encoded):
            chooser = self._roles.chooser(options, Demand([0], [index]))
            prefix = torch.tensor([[BOS_ID, *ids]] * chooser.rows_per_source, device=self.device)
            found = search(self.model, None, chooser, self._roles.filters(options, [0]), prefix, options.limit(0))
            out.append(self._ranked(found[0], options))
        return out

    def score(self, targets: Sequence[str], sources: Sequence[str] | None = None) -> list[TokenScores]:
        """Log-probabilities of each target's tokens, given its source where the model has one."""
        tgt_ids = self._encode(self.tgt_tokenizer, targets)
        src_ids = None
        if self.src_tokenizer is not None:
            if sources is None:
                raise ValueError("a translation model scores a target given its source")
            src_ids = self._encode(self.src_tokenizer, sources)
        lengths = [max(len(ids), len(src_ids[i]) if src_ids else 0) + 1 for i, ids in enumerate(tgt_ids)]
        longest = max(lengths, default=0)
        if longest > MAX_SCORED_TOKENS and not self.model.counted:
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
        src_ids = self._encode(self.src_tokenizer, [source])[0]
        tgt_ids = self._encode(self.tgt_tokenizer, [target])[0]
        batch = collate([src_ids], [tgt_ids], [0], BOS_ID, EOS_ID, PAD_ID).to(self.device)
        trace = Trace()
        with torch.inference_mode():
            self.model.advance(batch.tgt_in, self.model.start(batch.source), trace)
        return trace, [*src_ids, EOS_ID], [*tgt_ids, EOS_ID]

    def _encode(self, tokenizer: Tokenizer, lines: Sequence[str]) -> list[list[int]]:
        distinct = list(dict.fromkeys(lines))
        ids = tokenizer.encode([self.normaliser.apply(line) for line in distinct])
        ids_of = dict(zip(distinct, ids, strict=True))
        return [ids_of[line] for line in lines]

    def _with_long_lines(
        self, lines: Sequence[str], options: SearchOptions, constraints: Sequence[Constraints] | None
    ) -> list[Hypothesis]:
        """Lines that are too long are translated in pieces, the first of which keeps to what the line must keep to."""
        pieces = [
            split_long(line, MAX_CHARACTERS) if len(line) > MAX_CHARACTERS else [Piece(line, True)] for line in lines
        ]
        flat = None
        if constraints is not None:
            sentences = [[piece for piece in parts if piece.is_sentence] for parts in pieces]
            given = zip(sentences, constraints, strict=True)
            flat = [Constraints() if place else wanted for parts, wanted in given for place, _ in enumerate(parts)]
        return translate_apart(pieces, lambda texts: self.translate(texts, options, flat))

    # --- from lines to requests, from requests to hypotheses ---------------------------------------------

    def _requests(self, lines: Sequence[str], constraints: Sequence[Constraints] | None) -> list[Request]:
        if self.src_tokenizer is None:
            raise ValueError("a language model generates; it does not translate")
        encoded = self._encode(self.src_tokenizer, lines)
        sources = [tuple(ids) if line.strip() else () for line, ids in zip(lines, encoded, strict=True)]
        if constraints is None:
            return [Request(ids) for ids in sources]
        prefixes = self._encode(self.tgt_tokenizer, [wanted.prefix.rstrip() for wanted in constraints])
        return [
            Request(ids, tuple(prefix), tuple(dict.fromkeys(map(self.normaliser.apply, wanted.terms))))
            for ids, prefix, wanted in zip(sources, prefixes, constraints, strict=True)
        ]

    def _found(self, requests: Iterable[Request], options: SearchOptions) -> dict[Request, Hypothesis]:
        """What the search finds for each; those that need a tensor of one shape are searched together."""
        alike: dict[tuple[int, int], list[Request]] = {}
        for request in requests:
            alike.setdefault((len(request.prefix), self._num_steps(request)), []).append(request)
        found: dict[Request, Hypothesis] = {}
        for (_, num_steps), rows in alike.items():
            rows.sort(key=lambda request: (-len(request.source), request))
            lengths = [len(request.source) + 1 for request in rows]
            for place in groups(lengths, options.batch_size, MAX_BATCH_POSITIONS // (options.width + num_steps)):
                batch = rows[place]
                hypotheses = in_parts_that_fit(batch, lambda part: self._search(part, options))
                found.update(zip(batch, hypotheses, strict=True))
        return found

    def _num_steps(self, request: Request) -> int:
        return self._roles.terms(request.terms).num_steps if request.terms else 0

    def _search(self, requests: Sequence[Request], options: SearchOptions) -> list[Hypothesis]:
        """One batch: prefixes of one length, and terms of as many steps."""
        lengths = [len(request.source) for request in requests]
        terms = [self._roles.terms(request.terms) for request in requests if request.terms]
        streams = [request.stream for request in requests]
        demand = Demand(lengths, streams, terms, len(requests[0].prefix))
        source = source_from_ids([request.source for request in requests], EOS_ID, PAD_ID).to(self.device)
        trace = Trace() if options.coverage_penalty else None
        coverage = Coverage(options.coverage_penalty, trace, source.mask) if trace is not None else None
        chooser = self._roles.chooser(options, demand, coverage)
        prefixes = torch.tensor([request.prefix for request in requests], dtype=torch.long, device=self.device)
        if prefixes.shape[1]:
            chooser.begin_with(prefixes, self._prefix_log_probs(source, prefixes))
        begin = torch.nn.functional.pad(prefixes, (1, 0), value=BOS_ID).repeat_interleave(chooser.rows_per_source, 0)
        limit = max(map(options.limit, lengths)) + demand.num_needed
        found = search(self.model, source, chooser, self._roles.filters(options, lengths), begin, limit, trace)
        ranked = [self._ranked(hypotheses, options) for hypotheses in found]
        return [replace(best, alternatives=tuple(others)) for best, *others in ranked]

    def _prefix_log_probs(self, source: Source, prefixes: Int[Tensor, "N P"]) -> Float[Tensor, "N P"]:
        """log P of each token of the forced prefixes."""
        before = torch.nn.functional.pad(prefixes[:, :-1], (1, 0), value=BOS_ID)
        return token_log_probs(self.model, source, before, prefixes)

    def _ranked(self, hypotheses: Sequence[Hypothesis], options: SearchOptions) -> list[Hypothesis]:
        """With their texts, and chosen by utility if that is wanted."""
        found = self._with_texts(hypotheses)
        if options.mbr:
            found = by_utility(found, options.mbr, options.sample, self.judgement.tgt_lang)[: options.nbest]
        return found

    def _with_texts(self, hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
        texts = self.tgt_tokenizer.decode([h.ids for h in hypotheses])
        return [h.with_text(text.replace("\n", " ")) for h, text in zip(hypotheses, texts, strict=True)]

    # --- what is known of the outputs --------------------------------------------------------------------

    def _judged(self, found: dict[Request, Hypothesis], options: SearchOptions) -> dict[Request, Hypothesis]:
        judgement = self.judgement
        if judgement.guard is not None and options.guard:
            found = self._guarded(judgement.guard, found, options)
        if judgement.confidence is not None and not options.sample:
            confidence = judgement.confidence
            found = {request: replace(h, confidence=confidence.of(h)) for request, h in found.items()}
        if judgement.lm is not None:
            found = dict(zip(found, self._with_lm(judgement.lm, list(found.values())), strict=True))
        return found

    def _guarded(
        self, guard: Guard, found: dict[Request, Hypothesis], options: SearchOptions
    ) -> dict[Request, Hypothesis]:
        """The same with flags; where the best is flagged and there is a beam, another one in its place."""
        assert self.src_tokenizer is not None
        texts = dict(zip(found, self.src_tokenizer.decode([request.source for request in found]), strict=True))
        flags = {request: guard.flags(texts[request], h.text) for request, h in found.items()}
        checked, flagged = dict(found), [request for request in found if flags[request]]
        for again, flag in fallback_searches(options):
            for request, h in self._found([r for r in flagged if flag in flags[r] or not flag], again).items():
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
