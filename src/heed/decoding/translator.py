"""Model translator: translations, continuations of prompts, scores and word alignments, for any model.

A line's output never depends on the other lines: lines are sorted and batched only for speed, identical lines are
computed once, and results come in the order of the input.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace

import torch
from jaxtyping import Float
from torch import Tensor

from heed.core.errors import DataError, UsageError
from heed.data.batch import collate
from heed.decoding.beam import Watch
from heed.decoding.detokenizer import TextStreamer
from heed.decoding.engine import SearchInputs, search, steps
from heed.decoding.factory import SearchFactory
from heed.decoding.hypothesis import Hypothesis, single_spaced
from heed.decoding.options import Constraints, Request, SearchOptions
from heed.decoding.output_checks import OutputChecks, Searcher, no_repeat_size
from heed.decoding.ranking import cross_attention, minimum_bayes_risk
from heed.decoding.scoring import MAX_POSITIONS, TokenScores, batches, halve_on_oom, score_rows
from heed.decoding.sentences import MAX_CHARACTERS, MAX_TOKENS, split_if_long, translate_pieces
from heed.nn.contract import Autoregressive, Trace
from heed.text.normalise import Normaliser
from heed.text.tokenizers import LineEnd, Tokenizer
from heed.text.vocabulary import BOS_ID, EOS_ID, PAD_ID, UNK_ID


class ModelTranslator:
    """A model with its tokenizers. `src_tokenizer` is None for a language model."""

    def __init__(
        self, model: Autoregressive, src_tokenizer: Tokenizer | None, tgt_tokenizer: Tokenizer,
        normaliser: Normaliser, device: torch.device | None = None, checks: OutputChecks | None = None,
        before_source: Sequence[int] = (), line_end: LineEnd | None = None,
    ) -> None:  # fmt: skip
        self.model = model
        self.src_tokenizer = src_tokenizer
        self.tgt_tokenizer = tgt_tokenizer
        self.normaliser = normaliser
        self.device = device or torch.device("cpu")
        self.checks = checks or OutputChecks()
        self.before_source = list(before_source)
        """Ids of the tag before each source."""
        self.factory = SearchFactory(tgt_tokenizer, self.device, line_end, normaliser)
        self.detokenizer = self.factory.detokenizer
        self._searcher: Searcher = self.search_in_batches

    def translate(
        self, lines: Sequence[str], options: SearchOptions, constraints: Sequence[Constraints] | None = None
    ) -> list[Hypothesis]:
        """The best hypothesis for each line; a line of white space is returned unchanged.

        `constraints`: one for each line. Raises UsageError if options, constraints and model are incompatible.
        """
        if any(len(line) > MAX_CHARACTERS for line in lines):
            return self._translate_long(lines, options, constraints)
        requests = self.requests(lines, constraints, options.ban)
        if any(len(request.source) > MAX_TOKENS for request in requests):
            return self._translate_long(lines, options, constraints)
        distinct = sorted({request for request in requests if request.source})
        hypotheses = self._checked(self._searcher(distinct, options), options)
        return [
            hypotheses[request] if request.source else Hypothesis((), 0.0, 0.0, text=line)
            for line, request in zip(lines, requests, strict=True)
        ]

    def _translate_long(
        self, lines: Sequence[str], options: SearchOptions, constraints: Sequence[Constraints] | None
    ) -> list[Hypothesis]:
        """Split lines that are too long; the constraints of a line apply to its first sentence."""
        pieces = [split_if_long(line, self.num_source_tokens) for line in lines]
        flat = None
        if constraints is not None:
            counts = [sum(piece.is_sentence for piece in parts) for parts in pieces]
            flat = [Constraints() if i else own for n, own in zip(counts, constraints, strict=True) for i in range(n)]
        return translate_pieces(pieces, lambda texts: self.translate(texts, options, flat), bool(options.mbr))

    def generate(self, prompts: Sequence[str], options: SearchOptions, first: int = 0) -> list[list[Hypothesis]]:
        """Continuations of each prompt, with texts that can be appended to it.

        Sampling returns `options.nbest` of them; a beam may return fewer, since it returns each text once. `first`: the
        number of earlier prompts, since each prompt has its own random stream. Raises UsageError for a beam search over
        text without ends.
        """
        if self.detokenizer.line_end not in (None, "eos") and not options.sample and options.width > 1:
            raise UsageError(
                "beam search needs a model of texts that end, which this is not: use sampling or a beam size of 1."
            )
        requests = [self.prompt_request(prompt, draw) for draw, prompt in enumerate(prompts, start=first)]
        best = self._searcher(requests, options)
        ranked = [[replace(best[request], alternatives=()), *best[request].alternatives] for request in requests]
        return [
            [self.detokenizer.continuation(prompt, hypothesis) for hypothesis in hypotheses]
            for prompt, hypotheses in zip(prompts, ranked, strict=True)
        ]

    def stream(self, prompt: str, options: SearchOptions, draw: int = 0) -> Iterator[str]:
        """The continuation of a prompt piece by piece; joined, it equals number `draw` of `generate`.

        `options` must request one hypothesis, sampled or greedy, since a beam revises its choices.
        """
        assert options.width == 1
        inputs = self.search_inputs([self.prompt_request(prompt, draw)], options)
        text, num_read = TextStreamer(self.detokenizer, prompt, options.stop), 0
        for _ in steps(self.model, inputs):
            for token in inputs.strategy.row_tokens()[:1, num_read:].flatten().tolist():
                num_read += 1
                if piece := text.add(self.detokenizer.token_bytes[token]):
                    yield piece
        if rest := text.rest(self.best_of(inputs.strategy.hypotheses(0), options).text):
            yield rest

    # --- forced scoring and attention --------------------------------------------------------------------

    def score(self, targets: Sequence[str], sources: Sequence[str] | None = None) -> list[TokenScores]:
        """Log-probabilities of each target's tokens, given its source if the model has one."""
        tgt_ids = self._encode(self.tgt_tokenizer, targets)
        if self.src_tokenizer is None:
            return score_rows(self.model, tgt_ids, self.device)
        if sources is None:
            raise ValueError("a translation model needs a source for each target to score")
        return score_rows(self.model, tgt_ids, self.device, self._encode_sources(sources))

    def trace(self, source: str, target: str) -> tuple[Trace, list[int], list[int]]:
        """Attention weights of one pair under teacher forcing, and the ids of both sides with their ends."""
        if self.src_tokenizer is None:
            raise ValueError("attention to the source needs a model with a source")
        src_ids, tgt_ids = self.encoded(source, target)
        batch = collate([src_ids], [tgt_ids], [0], BOS_ID, EOS_ID, PAD_ID).to(self.device)
        trace = Trace()
        with torch.inference_mode():
            self.model.advance(batch.tgt_in, self.model.start(batch.source), trace)
        return trace, [*src_ids, EOS_ID], [*tgt_ids, EOS_ID]

    def watched(self, line: str, options: SearchOptions, watch: Watch) -> Hypothesis:
        """The best hypothesis without output checks; `watch` is called at each step of the beam."""
        return self._search(self.requests([line], None), options, watch)[0]

    # --- text to ids -------------------------------------------------------------------------------------

    def encoded(self, source: str | None, target: str) -> tuple[list[int], list[int]]:
        """The ids of both sides as the model reads them, without their ends; none for a missing source."""
        src_ids = self._encode_sources([source])[0] if source is not None else []
        return src_ids, self._encode(self.tgt_tokenizer, [target])[0]

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

    # --- requests and searches ---------------------------------------------------------------------------

    def prompt_request(self, prompt: str, draw: int = 0) -> Request:
        """A request to a language model. `draw`: the number of this sample among those of the same prompt."""
        return Request((), tuple(self.detokenizer.encode_prompt(prompt, self.normaliser)), draw=draw)

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
        self.factory.require_allowed(banned, (self.normaliser.apply(own.prefix) for own in constraints))
        prefixes = self._encode(self.tgt_tokenizer, [own.prefix.rstrip() for own in constraints])
        for own, ids in zip(constraints, prefixes, strict=True):
            _require_usable(own.prefix, ids)
        return [
            Request(ids, tuple(prefix), tuple(dict.fromkeys(map(self.normaliser.apply, own.terms))))
            for ids, prefix, own in zip(sources, prefixes, constraints, strict=True)
        ]

    def searched_by(self, searcher: Searcher) -> ModelTranslator:
        """A copy that uses another searcher, such as the scheduler of a server."""
        other = copy(self)
        other._searcher = searcher
        return other

    def search_in_batches(self, requests: Sequence[Request], options: SearchOptions) -> dict[Request, Hypothesis]:
        """The best hypothesis of each request; requests with tensors of the same shapes are searched together."""
        by_shape: dict[tuple[int, int], list[Request]] = {}
        for request in requests:
            by_shape.setdefault((len(request.prefix), self.num_steps(request)), []).append(request)
        best: dict[Request, Hypothesis] = {}
        for (_, num_steps), rows in by_shape.items():
            rows.sort(key=lambda request: (-len(request.source), request))
            lengths = [len(request.source) + len(request.prefix) + 1 for request in rows]
            for part in batches(lengths, options.batch_size, MAX_POSITIONS // (options.width + num_steps)):
                hypotheses = halve_on_oom(rows[part], lambda some: self._search(some, options))
                best.update(zip(rows[part], hypotheses, strict=True))
        return best

    def num_steps(self, request: Request) -> int:
        """Steps towards the required terms: the beam is wider by as many hypotheses."""
        return self.factory.terms(request.terms).num_steps if request.terms else 0

    def search_inputs(self, requests: Sequence[Request], options: SearchOptions) -> SearchInputs:
        """The inputs of one search. Requests must have equally long prefixes and terms with equally many steps."""
        return self.factory.inputs(self.model, requests, options, self.src_tokenizer is not None)

    def _search(
        self, requests: Sequence[Request], options: SearchOptions, watch: Watch | None = None
    ) -> list[Hypothesis]:
        inputs = self.search_inputs(requests, options)
        inputs.strategy.watch = watch
        return [self.best_of(hypotheses, options) for hypotheses in search(self.model, inputs)]

    def best_of(self, hypotheses: Sequence[Hypothesis], options: SearchOptions) -> Hypothesis:
        """The best hypothesis of one request, with the others as its alternatives."""
        best, *others = self.ranked(hypotheses, options)
        return replace(best, alternatives=tuple(others))

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

    # --- output checks -----------------------------------------------------------------------------------

    def flags(self, lines: Sequence[str], outputs: Sequence[Hypothesis]) -> list[tuple[str, ...]]:
        """The guard's flags for the output of each line, whatever the options."""
        assert self.src_tokenizer is not None
        if self.checks.guard is None:
            return [() for _ in lines]
        sources = self.src_tokenizer.decode(self._encode_sources(lines))
        return [self.checks.guard.flags(text, h.text) for text, h in zip(sources, outputs, strict=True)]

    def _checked(self, best: dict[Request, Hypothesis], options: SearchOptions) -> dict[Request, Hypothesis]:
        """Add flags, replacements, confidences, and log-probabilities of a fused language model."""
        assert self.src_tokenizer is not None
        texts = self.src_tokenizer.decode([request.source for request in best])
        sources = dict(zip(best, texts, strict=True))
        best = self.checks.apply(best, sources, options, no_repeat_size(self.tgt_tokenizer), self._searcher)
        return self.checks.with_lm_log_probs(best, self.device)


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


def mean_attention(translator: ModelTranslator, source: str, target: str) -> Float[Tensor, "T S"]:
    """Mean cross-attention of one pair: target tokens and their end by source tokens and their end."""
    trace, _, _ = translator.trace(source, target)
    return cross_attention(trace)[0]


def word_links(translator: ModelTranslator, source: str, target: str) -> list[tuple[int, int]]:
    """Word alignment by attention: (source word, target word) links, words separated by white space and counted from 0.

    Cross-attention under teacher forcing, averaged over the heads and blocks of the decoder's second half, is summed
    over the tokens of a source word and averaged over those of a target word; each target word links to its strongest
    source word. A line that is translated in sentences has no links.
    """
    if translator.src_tokenizer is None:
        raise ValueError("alignment needs a model with a source")
    src_words = translator.src_tokenizer.word_ids(translator.normaliser.apply(source))
    src_words = [*(None for _ in translator.before_source), *src_words]
    tgt_words = translator.tgt_tokenizer.word_ids(translator.normaliser.apply(target))
    if not any(word is not None for word in src_words) or len(source) > MAX_CHARACTERS:
        return []
    weights = mean_attention(translator, source, target)
    by_source: dict[int, Tensor] = {}
    for column, word in enumerate(src_words):
        if word is not None:
            by_source[word] = by_source.get(word, torch.zeros(weights.shape[0])) + weights[:, column].cpu()
    links = []
    for word in sorted({word for word in tgt_words if word is not None}):
        rows = [row for row, word_of_row in enumerate(tgt_words) if word_of_row == word]
        best = max(by_source, key=lambda source_word: float(by_source[source_word][rows].mean()))
        links.append((best, word))
    return links
