"""Stack search over derivations (Koehn 2004): hypotheses that translate equally many words compete.

A hypothesis is extended by every option for words that it has not translated. Hypotheses that no further step can tell
apart are recombined: the better one is extended, the others are kept as further ways to reach it. A stack keeps its
best hypotheses by score and estimate of the rest (histogram pruning), and none that is too far below the best
(threshold pruning). Before the language model is asked, extensions are pruned in the same way by its estimate.

With the distortion limit d, a phrase begins at most d words from the end of the one before it, and a phrase that leaves
a gap on its left ends at most d words after the beginning of the gap, so that the search can return to it.

All hypotheses of a stack are extended at once, as arrays. Whether an option fits depends on its span alone, and with a
distortion limit only spans near the ends of the last phrases can fit, so the time of a search grows about linearly with
the words of the sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from heed.statistical.phrases.extraction import DISCONTINUOUS, MONOTONE, SWAP
from heed.statistical.phrases.features import DISTORTION, LANGUAGES
from heed.statistical.phrases.language import LanguageScorer
from heed.statistical.phrases.options import Options
from heed.statistical.predictor import Bools, Floats, Ints, members, starts

_BITS = 62
"""Words of a sentence in one integer."""
_BEFORE_LANGUAGE_MODEL = 5
"""The language model scores this many times as many extensions as a stack keeps."""


@dataclass(frozen=True)
class Limits:
    """What a search leaves out; 0 (or -1 for the distortion) leaves nothing out."""

    width: int = 100
    """Hypotheses of a stack."""
    threshold: float = 0.0
    """Most that a hypothesis may be below the best one of its stack."""
    distortion: int = 6
    """Most words that are jumped over."""


@dataclass(frozen=True, eq=False)
class Extensions:
    """K hypotheses, each an option after another hypothesis."""

    parents: Ints
    """[K]: the hypothesis that each extends, by its number in the search."""
    options: Ints
    """[K]"""
    turns: Ints
    """[K]: the orientation of the option to the phrase before it."""
    language: Floats
    """[K, M]: log p of the option's words by each language model (unweighted)."""
    scores: Floats
    """[K]: the score of all phrases so far."""
    totals: Floats
    """[K]: the score with the estimate of the rest."""
    states: Ints
    """[K, M]: of each language model."""
    covered: Ints
    """[K, C]: the translated words as bits."""

    def __getitem__(self, rows: Ints) -> Extensions:
        return Extensions(*(getattr(self, name)[rows] for name in _FIELDS))

    def __len__(self) -> int:
        return len(self.parents)


_FIELDS = tuple(Extensions.__dataclass_fields__)


def joined(parts: list[Extensions]) -> Extensions:
    """All extensions of several parts."""
    return Extensions(*(np.concatenate([getattr(part, name) for part in parts]) for name in _FIELDS))


@dataclass(frozen=True, eq=False)
class Stack:
    """Hypotheses with equally many translated words, the best first."""

    ways: Extensions
    """The extensions that lead to them, sorted by hypothesis, and the best of each first."""
    bounds: Ints
    """[H + 1]: the ways to each hypothesis."""
    first: int
    """The number in the search of the first hypothesis."""

    @property
    def best(self) -> Extensions:
        """[H]: the best way to each hypothesis."""
        return self.ways[self.bounds[:-1]]


@dataclass(frozen=True, eq=False)
class SearchGraph:
    """The stacks of a finished search; the last one has the complete hypotheses."""

    options: Options
    stacks: list[Stack]
    """Number k has hypotheses with k translated words; number 0 the empty one."""
    ends: Floats
    """What each complete hypothesis adds to its score at the end of the sentence."""
    end_language: Floats
    """[H, M]: log p of the end of the sentence after each complete hypothesis (unweighted)."""


class StackSearch:
    """One search. `weights`: those of the options, in the order of the features."""

    def __init__(self, options: Options, languages: Sequence[LanguageScorer], weights: Floats, limits: Limits) -> None:
        self.options = options
        self.languages = languages
        self.weights = weights
        self.of_languages = weights[list(LANGUAGES[: len(languages)])]
        self.limits = limits
        self.num_words = options.num_words
        places = np.arange(self.num_words)
        self.inside = (places >= options.begins[:, None]) & (places < options.ends[:, None])
        self.bits = _bits_of(self.inside)
        self.sizes = options.ends - options.begins
        is_new = (np.diff(options.begins, prepend=-1) != 0) | (np.diff(options.ends, prepend=-1) != 0)
        firsts = np.flatnonzero(is_new)
        self.span_begins, self.span_ends = options.begins[firsts], options.ends[firsts]
        """[S]: the source phrases; the options of each follow each other."""
        self.of_span = np.append(firsts, len(options.begins))
        """[S + 1]: the options of each span."""

    def run(self) -> SearchGraph:
        """Search."""
        waiting: list[list[Extensions]] = [[] for _ in range(self.num_words + 1)]
        stacks = [self._empty()]
        for size in range(self.num_words):
            if size:
                stacks.append(self._stack(waiting[size], stacks[-1]))
            if len(stacks[-1].bounds) > 1:
                self._extend(stacks[-1], size, waiting)
        stacks.append(self._stack(waiting[-1], stacks[-1]))
        complete = stacks[-1].best
        language = np.column_stack([each.end(complete.states[:, m]) for m, each in enumerate(self.languages)])
        ends = language @ self.of_languages + self._turns_at_end(complete)
        return SearchGraph(self.options, stacks, ends, language)

    def _empty(self) -> Stack:
        one, zero = np.array([-1]), np.zeros(1)
        nothing = np.zeros((1, self.bits.shape[1]), dtype=np.int64)
        start = np.array([[language.start for language in self.languages]])
        unread = np.zeros(start.shape)
        return Stack(Extensions(one, one, one, unread, zero, zero, start, nothing), np.array([0, 1]), 0)

    # --- extending -----------------------------------------------------------------------------------------

    def _extend(self, stack: Stack, size: int, waiting: list[list[Extensions]]) -> None:
        """Extend all hypotheses of a stack by all options that fit, and distribute the results."""
        hypotheses, options = stack.best, self.options
        begins, ends = self._last_spans(hypotheses)
        covered = _words_of(hypotheses.covered, self.num_words)
        rows, spans = self._fitting(covered, ends)
        jumps = np.abs(self.span_begins[spans] - ends[rows])
        turns = self._turns(begins[rows], ends[rows], spans)
        rest = (hypotheses.totals - hypotheses.scores)[rows] + self._change_of_rest(covered, rows, spans)
        pairs, chosen = members(spans, self.of_span)
        rows, jumps, turns, rest = rows[pairs], jumps[pairs], turns[pairs], rest[pairs]
        scores = hypotheses.scores[rows] + options.scores[chosen] + options.before[chosen, turns]
        scores -= self.weights[DISTORTION] * jumps
        if size:
            scores += options.after[hypotheses.options[rows], turns]
        kept, sizes = self._promising(scores + rest + options.language[chosen], self.sizes[chosen])
        found = self._scored(hypotheses, rows[kept], chosen[kept], turns[kept], scores[kept], rest[kept])
        found = _numbered(found, stack.first)
        for more in np.unique(sizes).tolist():
            waiting[size + more].append(found[np.flatnonzero(sizes == more)])

    def _last_spans(self, hypotheses: Extensions) -> tuple[Ints, Ints]:
        """Begin and end of the last source phrase; both 0 at the beginning."""
        is_begun = hypotheses.options >= 0
        options = np.maximum(hypotheses.options, 0)
        return self.options.begins[options] * is_begun, self.options.ends[options] * is_begun

    def _fitting(self, covered: Bools, ends: Ints) -> tuple[Ints, Ints]:
        """The pairs of a hypothesis and a span that it may be extended by, sorted."""
        limit = self.limits.distortion
        firsts, lasts = self.span_begins, self.span_ends
        near = np.arange(len(firsts))
        if limit >= 0:  # the others are too far from all hypotheses
            near = np.flatnonzero((firsts >= ends.min() - limit) & (firsts <= ends.max() + limit))
            firsts, lasts = firsts[near], lasts[near]
        before = np.zeros((len(covered), self.num_words + 1), dtype=np.int64)
        np.cumsum(covered, axis=1, out=before[:, 1:])
        fits = before[:, firsts] == before[:, lasts]
        if limit >= 0:
            gaps = covered.argmin(1)[:, None]
            fits &= np.abs(firsts - ends[:, None]) <= limit
            fits &= (firsts == gaps) | (lasts - gaps <= limit)
        rows, places = np.nonzero(fits)
        return rows, near[places]

    def _turns(self, begins: Ints, ends: Ints, spans: Ints) -> Ints:
        """The orientation of each span to the phrase before it."""
        continues = self.span_begins[spans] == ends
        return np.where(continues, MONOTONE, np.where(self.span_ends[spans] == begins, SWAP, DISCONTINUOUS))

    def _change_of_rest(self, covered: Bools, rows: Ints, spans: Ints) -> Floats:
        """The change of the estimate: a span divides the gap that it is in."""
        future, places = self.options.future, np.arange(self.num_words)
        left = np.maximum.accumulate(np.where(covered, places + 1, 0), axis=1)
        right = np.minimum.accumulate(np.where(covered, places, self.num_words)[:, ::-1], axis=1)[:, ::-1]
        begins, ends = self.span_begins[spans], self.span_ends[spans]
        low, high = left[rows, begins], right[rows, begins]
        return np.asarray(future[low, begins] + future[ends, high] - future[low, high])

    def _promising(self, bounds: Floats, sizes: Ints) -> tuple[Ints, Ints]:
        """The extensions that are worth asking the language model, the best for each size, and their sizes."""
        most = _BEFORE_LANGUAGE_MODEL * self.limits.width
        if not self.limits.width or len(bounds) <= most:
            return np.arange(len(bounds)), sizes
        kept: list[Ints] = []
        for size in np.unique(sizes).tolist():
            here = np.flatnonzero(sizes == size)
            kept.append(here if len(here) <= most else here[np.argpartition(-bounds[here], most)[:most]])
        places = np.concatenate(kept)
        return places, sizes[places]

    def _scored(
        self, hypotheses: Extensions, rows: Ints, chosen: Ints, turns: Ints, scores: Floats, rest: Floats
    ) -> Extensions:
        """The extensions with the language models' scores, which are computed once for each state and option."""
        options = self.options
        language = np.empty((len(rows), len(self.languages)))
        after = np.empty(language.shape, dtype=np.int64)
        for m, model in enumerate(self.languages):
            keys, inverse = np.unique(hypotheses.states[rows, m] * len(options.begins) + chosen, return_inverse=True)
            states, distinct = np.divmod(keys, len(options.begins))
            log_probs, next_states = model.phrases(states, options.words[distinct], options.lengths[distinct])
            language[:, m], after[:, m] = log_probs[inverse], next_states[inverse]
        scores = scores + language @ self.of_languages
        return Extensions(
            rows, chosen, turns, language, scores, scores + rest, after,
            hypotheses.covered[rows] | self.bits[chosen],
        )  # fmt: skip

    # --- stacks --------------------------------------------------------------------------------------------

    def _stack(self, parts: list[Extensions], before: Stack) -> Stack:
        """The hypotheses of the next stack: recombined, sorted and pruned."""
        first = before.first + len(before.bounds) - 1
        if not parts:
            none = before.ways[np.empty(0, dtype=np.int64)]
            return Stack(none, np.zeros(1, dtype=np.int64), first)
        ways = joined(parts)
        keys = [*ways.covered.T, *ways.states.T, self.options.classes[ways.options]]
        order = np.lexsort([-ways.totals, *keys])
        differs = np.zeros(len(order), dtype=np.bool_)
        differs[0] = True
        for key in keys:
            differs[1:] |= np.diff(key[order]) != 0
        begins = np.flatnonzero(differs)
        sizes = np.diff(np.append(begins, len(order)))
        kept = self._kept(ways.totals[order[begins]])
        bounds = starts(sizes[kept])
        places = np.arange(bounds[-1]) + np.repeat(begins[kept] - bounds[:-1], sizes[kept])
        return Stack(ways[order[places]], bounds, first)

    def _kept(self, totals: Floats) -> Ints:
        """The hypotheses that pruning leaves, the best first."""
        best = np.argsort(-totals, kind="stable")
        if self.limits.width:
            best = best[: self.limits.width]
        if self.limits.threshold:
            best = best[totals[best] >= totals[best[0]] - self.limits.threshold]
        return best

    def _turns_at_end(self, hypotheses: Extensions) -> Floats:
        """The weighted orientation of the end of the sentence to the last phrase of complete hypotheses."""
        _, ends = self._last_spans(hypotheses)
        turns = np.where(ends == self.num_words, MONOTONE, DISCONTINUOUS)
        return np.asarray(self.options.after[hypotheses.options, turns])


def _numbered(part: Extensions, first: int) -> Extensions:
    return Extensions(part.parents + first, *(getattr(part, name) for name in _FIELDS[1:]))


def _bits_of(inside: Bools) -> Ints:
    """Rows of booleans [N, n] as integers [N, C]."""
    blocks = range(0, max(1, inside.shape[1]), _BITS)
    parts = [inside[:, block : block + _BITS] for block in blocks]
    return np.stack([part @ (1 << np.arange(part.shape[1])) for part in parts], axis=1)


def _words_of(bits: Ints, num_words: int) -> Bools:
    """What `_bits_of` was given."""
    places = np.arange(num_words)
    return np.asarray(bits[:, places // _BITS] >> (places % _BITS) & 1, dtype=np.bool_)
