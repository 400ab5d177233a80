"""CTranslate2 engine: greedy and beam search by CTranslate2, with the hypotheses and the ranking of heed's own search.

Both programs extend beams in the same way and stop when as many hypotheses have ended as the beam is wide. (heed stops
earlier where nothing better can come, which changes no result.) CTranslate2 returns the best of the hypotheses that
ended by log P(y) / |y|^α, which is heed's length penalty "mean"; with another one, PyTorch searches.

CTranslate2 has one maximum length for a batch, where heed has one for each source, and it lets outputs that reach it
compete with those that ended, where heed ranks them last. Requests of which this matters are searched again, in batches
of one maximum length. And CTranslate2 cannot forbid tokens without normalising over the others, so nothing is
forbidden: tokens such as the unknown piece have next to no probability in a model whose tokenizer can write any text.
Where an output has one, the request is left to PyTorch's search.

CTranslate2 does not count the probability of a forced prefix, and its beam misses most outputs that end right after
one. heed adds both, and searches with beams that cannot end there: the probabilities of all other outputs then have one
factor in common. Where heed's beam would have such an end, CTranslate2 stops one hypothesis earlier, as heed does.

Each worker of CTranslate2 has one thread and searches batches of its own, since threads inside matrix products gain
little with models of this size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock, Semaphore
from typing import Any

from heed.decoding.hypothesis import Hypothesis
from heed.decoding.options import Request, SearchOptions
from heed.decoding.ranking import LengthPenalty, by_score
from heed.inference.engine_contract import Engine
from heed.inference.output_checks import Searcher
from heed.text.vocabulary import EOS_ID, Vocabulary

_OBEYED = {"beam_size", "nbest", "length_penalty", "length_norm", "max_tokens", "max_ratio", "max_extra"}
_WITHOUT_EFFECT = {"guard", "seed", "batch_size", "temperature", "top_k", "top_p", "candidates", "mbr"}
"""Options that do not affect a beam search, or only what happens with its hypotheses."""

_NEARLY_CERTAIN = -1e-3
"""Where the end has this log-probability, that of all other tokens together is not known exactly."""
_ROUNDING = 1e-6
"""Difference of two scores that are equal."""
_SUPPRESSED = 1e-3
"""Log-probability that a token gains, on average, where forbidden tokens are probable and others take their share."""
_SMALLEST_PENALTY = 1e-6
"""With a length penalty of 0, CTranslate2 stops before all n-best hypotheses are complete."""


def can_search(options: SearchOptions) -> bool:
    """Whether the engine can do what the options ask for; PyTorch's search can do everything."""
    defaults = SearchOptions()
    obeyed = _OBEYED | ({"no_repeat"} if options.width == 1 else set())  # a beam keeps other candidates
    is_known = all(
        name in obeyed or name in _WITHOUT_EFFECT or value == getattr(defaults, name) for name, value in options
    )
    return is_known and (options.length_norm == "mean" or options.length_penalty == 0 or options.width == 1)


class CTranslate2Engine:
    """A model in CTranslate2's format with its vocabularies."""

    def __init__(
        self, folder: Path, num_positions: int, vocabularies: Sequence[Vocabulary], never: Sequence[int],
        num_workers: int = 1, compute_type: str = "float32",
    ) -> None:  # fmt: skip
        """Load a model.

        Args:
            folder: A folder that `heed.export.ctranslate2` has written.
            num_positions: The longest source or output, in tokens.
            vocabularies: Those of source and target, or that of a language model.
            never: Target ids that no output may contain.
            num_workers: Batches that are searched at the same time.
            compute_type: Number format of the products ("float32", "int8", ...).
        """
        source, target = vocabularies[0], vocabularies[-1]
        self.num_positions = num_positions
        self._pieces = [source.piece(id) for id in range(len(source))]
        self._ids = {target.piece(id): id for id in range(len(target))}
        self._targets = list(self._ids)
        self._never = {target.piece(id) for id in never}
        self.num_workers = num_workers
        """Batches that are searched at the same time."""
        how: dict[str, Any] = {"compute_type": compute_type, "inter_threads": num_workers, "intra_threads": 1}
        with ThreadPoolExecutor(1) as pool:  # CTranslate2 sets OpenMP's number of threads in the thread that loads
            self._model = pool.submit(self._opened, str(folder), device="cpu", **how).result()

    def _opened(self, folder: str, **how: Any) -> Any:
        """CTranslate2's object for a model of this kind."""
        import ctranslate2

        return ctranslate2.Translator(folder, **how)

    def can_search(self, options: SearchOptions) -> bool:
        return can_search(options)

    def search(
        self, requests: Sequence[Request], options: SearchOptions, with_tokens: bool = True, num_batches: int = 0
    ) -> dict[Request, list[Hypothesis]]:
        """The hypotheses of each request, best first and without texts.

        A request that PyTorch's search must handle is missing from the result: it has terms; it is too long; a
        hypothesis contains a token that no output may contain, or is cut off where such tokens are probable; or the
        best ones after a prefix are not certain, as in most lists of more than half of the beam, or are longer than the
        options allow.
        `with_tokens`: compute the log-probability of each token, which takes about as long as greedy search.
        `num_batches`: into how many batches the requests are split, unless they need more (0: one for each worker).
        """
        num_batches = num_batches or self.num_workers
        rows = [request for request in requests if self._fits(request, options)] if self.can_search(options) else []
        if not rows:
            return {}
        alpha = max(options.length_penalty, _SMALLEST_PENALTY)
        begun = self._begun(rows, options, num_batches)
        results = self._searched(rows, begun, options, alpha, num_batches)
        penalty = LengthPenalty(options.length_penalty, options.length_norm)
        searched: dict[Request, list[Hypothesis]] = {}
        cut_off: dict[Request, list[Hypothesis]] = {}
        at_limit: list[Request] = []
        for request, found in zip(rows, results, strict=True):
            if self._are_forbidden(found):
                continue
            best, limit = [self._hypothesis(*each, alpha, penalty) for each in found], self._limit(request, options)
            if request in begun:
                best = best_after_prefix(best, begun[request], options.num_searched, penalty)
            ended = [hypothesis for hypothesis in best if len(hypothesis.ids) < limit][: options.num_searched]
            if len(ended) == options.num_searched:
                searched[request] = ended
            elif options.width == 1 and best:
                cut_off[request] = [replace(best[0], ids=best[0].ids[: limit - 1], finished=False)]
            elif request not in begun:
                at_limit.append(request)
        to_limit = self._searched_to_limit(at_limit, options, alpha, num_batches)
        if with_tokens or options.no_repeat:  # whose scores are normalised over the tokens that may follow
            return self._with_tokens(searched | cut_off, options, penalty, num_batches) | to_limit
        return searched | self._with_tokens(cut_off, options, penalty, num_batches) | to_limit

    def log_probs(self, source: Sequence[int], targets: Sequence[Sequence[int]]) -> list[float]:
        """The log-probability in nats of each target of one source, given without ends, of which none is too long."""
        request = Request(tuple(source))
        pairs = [(request, Hypothesis(tuple(ids), 0.0, 0.0)) for ids in targets]
        return [*map(math.fsum, self._scored(pairs, len(pairs)))]

    def _are_forbidden(self, found: Iterable[tuple[list[str], float]]) -> bool:
        """Whether hypotheses contain a token that no output may contain."""
        return any(not self._never.isdisjoint(pieces) for pieces, _ in found)

    def _begun(self, rows: Sequence[Request], options: SearchOptions, num_batches: int) -> dict[Request, Begun]:
        """The beginning of each output with a prefix."""
        requests = [request for request in rows if request.prefix]
        pairs = [(request, Hypothesis(request.prefix, 0.0, 0.0)) for request in requests]
        scored = self._scored(pairs, batch_size(len(pairs), num_batches, options))
        worst = self._worst_next(requests, options, num_batches) if options.width > 1 else {}
        return {
            request: Begun(request.prefix, math.fsum(log_probs[:-1]), log_probs[-1], worst.get(request))
            for request, log_probs in zip(requests, scored, strict=True)
        }

    def _worst_next(
        self, requests: Sequence[Request], options: SearchOptions, num_batches: int
    ) -> dict[Request, float]:
        """The log-probability of the last of the best W tokens after each prefix, given that it does not end there."""
        pending: dict[Request, Any] = {}
        for numbers in alike(requests, lambda request: len(request.prefix)):
            some = [requests[number] for number in numbers]
            started = self._model.translate_batch(
                [self._source(request) for request in some], [self._target(request.prefix) for request in some],
                beam_size=1, num_hypotheses=options.width, return_alternatives=True, max_input_length=0,
                max_decoding_length=len(some[0].prefix) + 1, return_scores=True, asynchronous=True,
                max_batch_size=batch_size(len(some), num_batches, options),
            )  # fmt: skip
            pending |= zip(some, started, strict=True)
        return {request: result.result().scores[-1] for request, result in pending.items()}

    def _searched(
        self, rows: Sequence[Request], begun: Mapping[Request, Begun], options: SearchOptions, alpha: float,
        num_batches: int,
    ) -> list[list[tuple[list[str], float]]]:  # fmt: skip
        """The pieces and the score of each hypothesis of each request, best first."""

        def group(request: Request) -> tuple[int, bool]:
            begin = begun.get(request) if options.width > 1 else None
            return (len(begin.prefix), begin.may_end) if begin is not None else (0, False)

        pending: dict[int, Any] = {}
        for numbers in alike(rows, group):
            some, (length, may_end) = [rows[number] for number in numbers], group(rows[numbers[0]])
            num_ended = options.width - may_end
            started = self._model.translate_batch(
                [self._source(request) for request in some], [self._target(request.prefix) for request in some],
                beam_size=options.width, num_hypotheses=num_ended, patience=num_ended / options.width,
                length_penalty=alpha, min_decoding_length=length and length + 1,
                max_decoding_length=max(self._limit(request, options) for request in some), max_input_length=0,
                return_scores=True, max_batch_size=batch_size(len(some), num_batches, options),
                no_repeat_ngram_size=options.no_repeat, asynchronous=True,
            )  # fmt: skip
            pending |= zip(numbers, started, strict=True)
        results = [pending[number].result() for number in range(len(rows))]
        return [[*zip(result.hypotheses, result.scores, strict=True)] for result in results]

    def _searched_to_limit(
        self, rows: Sequence[Request], options: SearchOptions, alpha: float, num_batches: int
    ) -> dict[Request, list[Hypothesis]]:
        """The hypotheses of requests whose beams reach the maximum length, with the log-probabilities of their tokens.

        Those that ended are before those cut off. What ends is found by a search of this length, and what is cut off,
        which has no end, by one that is shorter by a token. Both return two beams of hypotheses, more than there can
        be, so CTranslate2 drops none.

        A model that does not learn to end an output may give forbidden tokens a probability, too. So these searches do
        without them, and a request is missing where that raises the probabilities of the other tokens.
        """
        found: dict[Request, list[Hypothesis]] = {}
        penalty = LengthPenalty(options.length_penalty, options.length_norm)
        for numbers in alike(rows, lambda request: self._limit(request, options)):
            some, limit = [rows[number] for number in numbers], self._limit(rows[numbers[0]], options)
            searched = [
                self._model.translate_batch(
                    [*map(self._source, some)], beam_size=options.width, num_hypotheses=2 * options.width, patience=2,
                    length_penalty=alpha, min_decoding_length=0, max_decoding_length=length, max_input_length=0,
                    suppress_sequences=[[piece] for piece in self._never], return_scores=True,
                    max_batch_size=batch_size(len(some), num_batches, options),
                )
                for length in (limit, limit - 1)
            ]  # fmt: skip
            for request, *results in zip(some, *searched, strict=True):
                to_limit, shorter = ([*zip(each.hypotheses, each.scores, strict=True)] for each in results)
                hypotheses = [self._hypothesis(*each, alpha, penalty) for each in to_limit]
                ended = {each.ids: each for each in hypotheses if len(each.ids) < limit}
                active = [self._hypothesis(*each, alpha, penalty, finished=False) for each in shorter]
                cut_off = [each for each in active if len(each.ids) == limit - 1 and each.ids not in ended]
                found[request] = [*ended.values(), *cut_off][: options.num_searched]
        scored = self._with_tokens(found, options, penalty, num_batches)
        return {
            request: best
            for request, best in scored.items()
            if all(
                suppressed.log_prob - hypothesis.log_prob <= _SUPPRESSED * max(1, len(hypothesis.token_log_probs))
                for suppressed, hypothesis in zip(found[request], best, strict=True)
            )
        }

    def _with_tokens(
        self,
        searched: dict[Request, list[Hypothesis]],
        options: SearchOptions,
        penalty: LengthPenalty,
        num_batches: int,
    ) -> dict[Request, list[Hypothesis]]:
        """The same hypotheses with the log-probabilities of their tokens, and scores that are made of them."""
        pairs = [(request, hypothesis) for request, best in searched.items() for hypothesis in best]
        scored = self._scored(pairs, batch_size(len(pairs), num_batches, options))
        with_tokens: dict[Request, list[Hypothesis]] = {request: [] for request in searched}
        for (request, hypothesis), log_probs in zip(pairs, scored, strict=True):
            tokens = tuple(log_probs[: None if hypothesis.finished else -1])  # without an end that it has not
            log_prob = math.fsum(tokens)
            score = log_prob / penalty.divisor(len(tokens))
            with_tokens[request].append(replace(hypothesis, log_prob=log_prob, score=score, token_log_probs=tokens))
        return with_tokens

    def _scored(self, pairs: Sequence[tuple[Request, Hypothesis]], most: int) -> list[list[float]]:
        """The log-probabilities of the tokens of each hypothesis and of its end, in batches of at most `most`."""
        scored = self._model.score_batch(
            [self._source(request) for request, _ in pairs],
            [self._target(hypothesis.ids) for _, hypothesis in pairs],
            max_input_length=0, max_batch_size=most,
        )  # fmt: skip
        return [result.log_probs for result in scored]

    def _fits(self, request: Request, options: SearchOptions) -> bool:
        limit = self._limit(request, options)
        has_room = options.width >= 2 * options.num_searched and len(request.prefix) + 1 < limit
        after_prefix = options.width == 1 or has_room
        is_possible = not request.terms and (after_prefix or not request.prefix)
        return is_possible and max(len(request.source), limit) + 1 <= self.num_positions

    def _limit(self, request: Request, options: SearchOptions) -> int:
        """Maximum number of tokens of an output, end of sentence included; long enough for its prefix."""
        return max(options.limit(len(request.source)), len(request.prefix) + 1)

    def _source(self, request: Request) -> list[str]:
        return [*map(self._pieces.__getitem__, request.source), self._pieces[EOS_ID]]

    def _target(self, ids: Sequence[int]) -> list[str]:
        return [*map(self._targets.__getitem__, ids)]

    def _hypothesis(
        self, pieces: Sequence[str], score: float, alpha: float, penalty: LengthPenalty, finished: bool = True
    ) -> Hypothesis:
        """From CTranslate2's score, log P(y) / |y|^α, in which |y| counts the end of a hypothesis that has one."""
        ids, length = tuple(map(self._ids.__getitem__, pieces)), len(pieces) + finished
        log_prob = score * length**alpha
        return Hypothesis(ids, log_prob, log_prob / penalty.divisor(length), finished=finished)


@dataclass(frozen=True)
class Begun:
    """The beginning of an output with a forced prefix."""

    prefix: tuple[int, ...]
    log_prob: float
    """Of the prefix."""
    end: float
    """The log-probability of an end right after it."""
    worst_next: float | None
    """That of the last of the best W other tokens after it, given that one of them follows; None for greedy search."""

    @property
    def more(self) -> float:
        """The log-probability that another token follows."""
        return math.log1p(-math.exp(self.end)) if self.end < _NEARLY_CERTAIN else -math.inf

    @property
    def may_end(self) -> bool:
        """Whether the end is among the first of a beam."""
        return self.worst_next is not None and self.end > self.worst_next + self.more


def best_after_prefix(found: Sequence[Hypothesis], begun: Begun, num: int, penalty: LengthPenalty) -> list[Hypothesis]:
    """The best `num` hypotheses after a forced prefix; none where PyTorch's search may find others.

    `found`: the hypotheses of the search, with the log-probabilities of what follows the prefix, in a beam given that
    something does. Where more of them end in the last step than it needs, CTranslate2 drops the worst, which it
    compares without the prefix. So the best are certain if none of those can be better.
    """

    def with_prefix(ids: tuple[int, ...], log_prob: float) -> Hypothesis:
        return Hypothesis(ids, log_prob, log_prob / penalty.divisor(len(ids) + 1))

    if begun.worst_next is None:
        return [with_prefix(found[0].ids, begun.log_prob + found[0].log_prob)]
    before = begun.log_prob + begun.more
    hypotheses = [with_prefix(each.ids, before + each.log_prob) for each in found]
    if begun.may_end:
        hypotheses.append(with_prefix(begun.prefix, begun.log_prob + begun.end))
    longest = max(len(each.ids) for each in found) + 1
    dropped = before / penalty.divisor(longest) + min(each.score for each in found)
    best = by_score(hypotheses)[:num]
    return best if len(best) == num and best[-1].score > dropped - _ROUNDING > -math.inf else []


def alike(rows: Sequence[Request], key: Callable[[Request], object]) -> Iterable[list[int]]:
    """The numbers of the requests that have the same key, for each key."""
    groups: dict[object, list[int]] = {}
    for number, request in enumerate(rows):
        groups.setdefault(key(request), []).append(number)
    return groups.values()


def batch_size(num_rows: int, num_batches: int, options: SearchOptions) -> int:
    """Rows of a batch, so that there are `num_batches` or, if those were too large, more."""
    return max(1, min(options.batch_size, -(-num_rows // num_batches)))


def searcher_with_fallback(
    engine: Engine, best_of: Callable[[Sequence[Hypothesis], SearchOptions], Hypothesis],
    fallback: Searcher, with_tokens: bool,
) -> Searcher:  # fmt: skip
    """A searcher that uses the engine where it can; `fallback` for all other requests.

    `best_of`: see `heed.inference.line_translator.LineTranslator`. `with_tokens`: see `CTranslate2Engine.search`.
    Several threads may search at once. The fallback is called by as many as the engine has workers, but at first by
    one, since it may load a model.
    """
    first, places = Lock(), Semaphore(engine.num_workers)
    is_loaded = False

    def search_rest(requests: Sequence[Request], options: SearchOptions) -> dict[Request, Hypothesis]:
        nonlocal is_loaded
        with first if not is_loaded else places:
            found = fallback(requests, options)
            is_loaded = True
        return found

    def search(requests: Sequence[Request], options: SearchOptions) -> dict[Request, Hypothesis]:
        searched = engine.search(requests, options, with_tokens)
        best = {request: best_of(hypotheses, options) for request, hypotheses in searched.items()}
        if rest := [request for request in requests if request not in best]:
            best.update(search_rest(rest, options))
        return best

    return search
