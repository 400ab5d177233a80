"""Model translator: translations, continuations of prompts and scores by any model, searched by PyTorch.

Lines are sorted by length and batched only for speed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache

import torch

from heed.data.batch import collate
from heed.decoding.beam import Watch
from heed.decoding.cross_attention import cross_attention
from heed.decoding.detokenizer import TextStreamer
from heed.decoding.engine import SearchInputs, search, steps
from heed.decoding.factory import MakeSource, SearchFactory, token_source
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.options import Request, SearchOptions
from heed.decoding.scoring import (
    MAX_POSITIONS,
    TokenScores,
    batches,
    forced_pass,
    halve_on_oom,
    score_rows,
    score_targets,
)
from heed.inference.line_translator import LineTranslator
from heed.inference.output_checks import OutputChecks
from heed.inference.unknown_words import UnknownWords
from heed.nn.contract import Autoregressive, Trace
from heed.text.normalise import Normaliser
from heed.text.readers.dictionary import read_dictionary
from heed.text.tokenizers import LineEnd, Tokenizer
from heed.text.vocabulary import BOS_ID, EOS_ID, PAD_ID

GPU_BATCHES = 8
"""How many times as many sentences a GPU searches at once, because its steps take much less than as many times as long.
"""


class ModelTranslator(LineTranslator):
    """A model with its tokenizers. `src_tokenizer` is None for a language model."""

    def __init__(
        self, model: Autoregressive, src_tokenizer: Tokenizer | None, tgt_tokenizer: Tokenizer,
        normaliser: Normaliser, device: torch.device | None = None, checks: OutputChecks | None = None,
        before_source: Sequence[int] = (), line_end: LineEnd | None = None, lm: Autoregressive | None = None,
        max_positions: int | None = None,
    ) -> None:  # fmt: skip
        """`lm`: the language model of a shallow fusion, whose log-probability is reported."""
        super().__init__(
            src_tokenizer, tgt_tokenizer, normaliser, self.search_in_batches, checks, before_source, line_end,
            max_positions,
        )  # fmt: skip
        self.model = model
        self.lm = lm
        self.device = device or torch.device("cpu")
        self.factory = SearchFactory(self.detokenizer, self.device, normaliser)
        self._dictionary = lru_cache(maxsize=1)(self._read_dictionary)
        self.make_source: MakeSource | None = None if src_tokenizer is None else token_source

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
        if rest := text.rest(self.best_of(inputs.strategy.hypotheses(0), options)):
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

    def score_all(self, source: str, targets: Sequence[str]) -> list[float] | None:
        """Log-probability in nats of each target of one source; None if the source or a target is too long."""
        ids = self.encoded_all(source, targets)
        return score_targets(self.model, *ids, self.device) if ids is not None else None

    def trace(self, source: str, target: str) -> tuple[Trace, list[int], list[int]]:
        """Attention weights of one pair under teacher forcing, and the ids of both sides with their ends."""
        if self.src_tokenizer is None:
            raise ValueError("attention to the source needs a model with a source")
        src_ids, tgt_ids = self.encoded(source, target)
        return self._trace_of_ids(src_ids, tgt_ids), [*src_ids, EOS_ID], [*tgt_ids, EOS_ID]

    def _trace_of_ids(self, src_ids: Sequence[int], tgt_ids: Sequence[int]) -> Trace:
        batch = collate([src_ids], [tgt_ids], [0], BOS_ID, EOS_ID, PAD_ID).to(self.device)
        trace = Trace()
        forced_pass(self.model, batch.source, batch.tgt_in, trace)
        return trace

    # --- unknown words -----------------------------------------------------------------------------------

    def unknown_words(self, options: SearchOptions) -> UnknownWords | None:
        """What replaces unknown words. Raises UsageError for a model without attention to its source."""
        if options.unknown != "replace":
            return None
        cross_attention(self.trace("", "")[0])  # whether or not an output has unknown words
        dictionary = self._dictionary(options.dictionary) if options.dictionary else {}
        return UnknownWords(self.attended_words, self.normaliser.apply, dictionary)

    def _read_dictionary(self, path: str) -> dict[str, str]:
        return read_dictionary(path, self.normaliser.apply)

    def attended_words(self, source: str, ids: Sequence[int]) -> list[int]:
        """For each token of an output, the number of the source word with the most attention in that step.

        Each output is read by itself, so nothing depends on a batch. Attention is averaged as in `cross_attention`, and
        summed over the tokens of a word.
        """
        assert self.src_tokenizer is not None
        words = self.src_tokenizer.word_ids(self.normaliser.apply(source))
        [src_ids] = self._encode_sources([source])
        weights = cross_attention(self._trace_of_ids(src_ids, ids))[0, : len(ids)].double().cpu()
        columns = [(len(self.before_source) + token, word) for token, word in enumerate(words) if word is not None]
        tokens, numbers = torch.tensor(columns).unbind(1)
        by_word = weights.new_zeros(len(ids), int(numbers.max()) + 1).index_add_(1, numbers, weights[:, tokens])
        return by_word.argmax(dim=1).tolist()  # the first of equal ones

    def watched(self, line: str, options: SearchOptions, watch: Watch) -> Hypothesis:
        """The best hypothesis without output checks; `watch` is called at each step of the beam."""
        return self._search(self.requests([line], None), options, watch)[0]

    # --- requests and searches ---------------------------------------------------------------------------

    def search_in_batches(self, requests: Sequence[Request], options: SearchOptions) -> dict[Request, Hypothesis]:
        """The best hypothesis of each request; requests with tensors of the same shapes are searched together."""
        by_shape: dict[tuple[int, int], list[Request]] = {}
        for request in requests:
            by_shape.setdefault((len(request.prefix), self.num_steps(request)), []).append(request)
        best: dict[Request, Hypothesis] = {}
        for (_, num_steps), rows in by_shape.items():
            rows.sort(key=lambda request: (-len(request.source), request))
            lengths = [len(request.source) + len(request.prefix) + 1 for request in rows]
            times = GPU_BATCHES if self.device.type == "cuda" else 1
            most = times * MAX_POSITIONS // (options.width + num_steps)
            for part in batches(lengths, times * options.batch_size, most):
                hypotheses = halve_on_oom(rows[part], lambda some: self._search(some, options))
                best.update(zip(rows[part], hypotheses, strict=True))
        return best

    def num_steps(self, request: Request) -> int:
        """Steps towards the required terms: the beam is wider by as many hypotheses."""
        return self.factory.terms(request.terms).num_steps if request.terms else 0

    def search_inputs(self, requests: Sequence[Request], options: SearchOptions) -> SearchInputs:
        """The inputs of one search. Requests must have equally long prefixes and terms with equally many steps."""
        return self.factory.inputs(self.model, requests, options, self.make_source)

    def _search(
        self, requests: Sequence[Request], options: SearchOptions, watch: Watch | None = None
    ) -> list[Hypothesis]:
        inputs = self.search_inputs(requests, options)
        inputs.strategy.watch = watch
        return [self.best_of(hypotheses, options) for hypotheses in search(self.model, inputs)]

    def _checked(self, best: dict[Request, Hypothesis], options: SearchOptions) -> dict[Request, Hypothesis]:
        """As the base class does, with log-probabilities of the fused language model, if there is one."""
        best = super()._checked(best, options)
        if self.lm is None:
            return best
        scores = score_rows(self.lm, [hypothesis.ids for hypothesis in best.values()], self.device)
        return {
            request: replace(h, lm_log_prob=sum(score.log_probs[: len(h.token_log_probs)]))
            for (request, h), score in zip(best.items(), scores, strict=True)
        }
