"""From lines of text to lines of text with any model: what `translate`, `evaluate`, `score` and `serve` know.

A line's output never depends on the other lines: lines are sorted and grouped only for speed, identical
lines are computed once, and the order is put back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import torch

from heed.data.batch import collate, source_from_ids
from heed.decoding.beam import BeamChooser
from heed.decoding.filters import Filter, Forbid, MinTokens
from heed.decoding.hypothesis import Hypothesis, LengthPenalty
from heed.decoding.options import SearchOptions
from heed.decoding.pick import PickChooser, Sample, greedy
from heed.decoding.scoring import token_log_probs
from heed.decoding.search import Chooser, search
from heed.nn.contract import Autoregressive, Trace
from heed.text.normalise import Normaliser
from heed.text.tokenizers import Tokenizer
from heed.text.vocabulary import Vocabulary

PAD_ID, BOS_ID, EOS_ID, UNK_ID = Vocabulary.pad_id, Vocabulary.bos_id, Vocabulary.eos_id, Vocabulary.unk_id

MAX_BATCH_POSITIONS = 64_000
"""Bound on rows × longest line of one search or scoring: long lines come in smaller groups."""

MAX_SCORED_ROWS = 64
"""Texts scored at once."""


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


class ModelTranslator:
    """A model with its tokenizers. `src_tokenizer` is None for a language model."""

    def __init__(
        self, model: Autoregressive, src_tokenizer: Tokenizer | None, tgt_tokenizer: Tokenizer,
        normaliser: Normaliser, device: torch.device | None = None,
    ) -> None:  # fmt: skip
        self.model = model
        self.src_tokenizer = src_tokenizer
        self.tgt_tokenizer = tgt_tokenizer
        self.normaliser = normaliser
        self.device = device or torch.device("cpu")

    def translate(self, lines: Sequence[str], options: SearchOptions) -> list[Hypothesis]:
        """The best hypothesis for each line; a line of nothing but space stays as it is."""
        if self.src_tokenizer is None:
            raise ValueError("a language model generates; it does not translate")
        encoded = self._encode(self.src_tokenizer, lines)
        sources = [tuple(ids) if line.strip() else () for line, ids in zip(lines, encoded, strict=True)]
        distinct = sorted({ids for ids in sources if ids}, key=lambda ids: (-len(ids), ids))
        width = options.nbest if options.sample else options.beam_size
        found: dict[tuple[int, ...], Hypothesis] = {}
        for place in _groups([len(ids) + 1 for ids in distinct], options.batch_size, MAX_BATCH_POSITIONS // width):
            found.update(zip(distinct[place], self._search(distinct[place], options), strict=True))
        return [
            found[ids] if ids else Hypothesis((), 0.0, 0.0, text=line) for line, ids in zip(lines, sources, strict=True)
        ]

    def generate(self, prompts: Sequence[str], options: SearchOptions) -> list[list[Hypothesis]]:
        """Continuations of each prompt, `options.nbest` of them; their text does not repeat the prompt."""
        encoded = self._encode(self.tgt_tokenizer, prompts)
        out: list[list[Hypothesis]] = []
        for index, ids in enumerate(encoded):
            chooser = self._chooser(1, options, [options.limit(0)], [index])
            prefix = torch.tensor([[BOS_ID, *ids]] * chooser.rows_per_source, device=self.device)
            found = search(self.model, None, chooser, self._filters(options), prefix, options.limit(0))
            out.append(self._with_texts(found[0]))
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
        order = sorted(range(len(targets)), key=lambda i: (-lengths[i], len(tgt_ids[i])))
        out: dict[int, TokenScores] = {}
        for place in _groups([lengths[i] for i in order], MAX_SCORED_ROWS, MAX_BATCH_POSITIONS):
            rows = order[place]
            sides = [src_ids[i] for i in rows] if src_ids is not None else None
            batch = collate(sides, [tgt_ids[i] for i in rows], rows, BOS_ID, EOS_ID, PAD_ID).to(self.device)
            found = token_log_probs(self.model, batch.source, batch.tgt_in, batch.tgt_out).cpu()
            for row, log_probs in zip(rows, found.tolist(), strict=True):
                ids = (*tgt_ids[row], EOS_ID)
                out[row] = TokenScores(ids, tuple(log_probs[: len(ids)]))
        return [out[i] for i in range(len(targets))]

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
        return tokenizer.encode([self.normaliser.apply(line) for line in lines])

    def _search(self, sources: Sequence[Sequence[int]], options: SearchOptions) -> list[Hypothesis]:
        limits = [options.limit(len(ids)) for ids in sources]
        # A draw is keyed by its source, so that it is the same in any order and batch.
        chooser = self._chooser(len(sources), options, limits, [_stream(ids) for ids in sources])
        source = source_from_ids(sources, EOS_ID, PAD_ID).to(self.device)
        prefix = torch.full((len(sources) * chooser.rows_per_source, 1), BOS_ID, device=self.device)
        found = search(self.model, source, chooser, self._filters(options), prefix, max(limits))
        ranked = [self._with_texts(hypotheses) for hypotheses in found]
        return [replace(best, alternatives=tuple(others)) for best, *others in ranked]

    def _chooser(self, num_sources: int, options: SearchOptions, limits: list[int], streams: list[int]) -> Chooser:
        penalty = LengthPenalty(options.length_penalty, options.length_norm)
        if options.sample:
            pick = Sample(options.seed, options.temperature, options.top_k, options.top_p)
            return PickChooser(num_sources, options.nbest, EOS_ID, pick, penalty, limits, streams)
        if options.beam_size == 1:
            return PickChooser(num_sources, 1, EOS_ID, greedy, penalty, limits, streams)
        return BeamChooser(num_sources, options.beam_size, EOS_ID, penalty, limits, options.nbest, self.device)

    def _filters(self, options: SearchOptions) -> list[Filter]:
        filters: list[Filter] = [Forbid((PAD_ID, BOS_ID, UNK_ID))]
        if options.min_tokens:
            filters.append(MinTokens(options.min_tokens, EOS_ID))
        return filters

    def _with_texts(self, hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
        texts = self.tgt_tokenizer.decode([h.ids for h in hypotheses])
        return [h.with_text(text.replace("\n", " ")) for h, text in zip(hypotheses, texts, strict=True)]


def _groups(lengths: Sequence[int], max_rows: int, max_positions: int) -> Iterator[slice]:
    """Cuts through rows that come longest first: at most so many rows, and so many positions with padding."""
    begin = 0
    while begin < len(lengths):
        end = begin + max(1, min(max_rows, max_positions // lengths[begin]))
        yield slice(begin, end)
        begin = end


def _stream(ids: Sequence[int]) -> int:
    stream = 0
    for token in ids:
        stream = (stream * 1_000_003 + token + 1) & ((1 << 62) - 1)
    return stream
