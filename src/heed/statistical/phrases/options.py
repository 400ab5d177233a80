"""Translation options of a sentence: the phrase pairs of its spans, and the estimate of what is left to translate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from heed.statistical.backoff import ROOT
from heed.statistical.derivation import Forced
from heed.statistical.phrases.features import BEFORE, LANGUAGES, NUM_STATIC, UNKNOWN
from heed.statistical.phrases.language import LanguageScorer
from heed.statistical.phrases.table import NUM_ORIENTATIONS, PhraseTable
from heed.statistical.predictor import Floats, Ints

COPIED, FORCED = -1, -2
"""In place of the row of the table: the option copies a source word, or has a translation that is given."""
Words = Sequence[tuple[int, ...]]
"""The words of a sentence as token ids: a word of the vocabulary has one, an unknown one has those of its spelling."""


@dataclass(frozen=True, eq=False)
class Options:
    """O phrase pairs that may translate a part of a sentence of n words."""

    num_words: int
    begins: Ints
    """[O]: the first source word of each."""
    ends: Ints
    """[O]: the one after its last."""
    rows: Ints
    """[O]: its row in the table, or COPIED."""
    words: Ints
    """[O, L]: the target words, padded."""
    lengths: Ints
    """[O]: the number of target words."""
    static: Floats
    """[O, NUM_STATIC]: the features that do not depend on the rest of the derivation."""
    scores: Floats
    """[O]: their weighted sum."""
    before: Floats
    """[O, 3]: the weighted feature of each orientation to the phrase before."""
    after: Floats
    """[O, 3]: the same for the phrase after it."""
    turns: Floats
    """[O, 6]: the features of orientation without weights."""
    language: Floats
    """[O]: the weighted estimate of the language models, without the words before."""
    classes: Ints
    """[O]: equal for options after which nothing differs but the words of the target."""
    future: Floats
    """[n + 1, n + 1]: the estimate of the best score for the words from i to j; 0 for none."""


class OptionFinder:
    """A phrase table, language models and weights."""

    def __init__(self, table: PhraseTable, languages: Sequence[LanguageScorer], weights: Floats, limit: int) -> None:
        """`limit`: the number of the best options of a source phrase (0: all)."""
        self.table = table
        self.languages = languages
        self.weights = weights
        self.limit = limit
        self._rows: dict[int, tuple[Ints, Floats]] = {}

    def find(self, words: Words, forced: Sequence[Forced] = ()) -> Options:
        """The options of a sentence. A word that the table does not have alone is copied.

        `forced`: parts of the sentence, by words, that have no other option than the given one.
        """
        free = np.ones(len(words), dtype=np.bool_)
        for part in forced:
            free[part.begin : part.end] = False
        spans = [span for span in self._spans(words) if free[span[0] : span[1]].all()]
        parts = [self._best_rows(node) for _, _, node in spans]
        sizes = [len(rows) for rows, _ in parts]
        begins = np.repeat([begin for begin, _, _ in spans], sizes).astype(np.int64)
        ends = np.repeat([end for _, end, _ in spans], sizes).astype(np.int64)
        rows = np.concatenate([np.empty(0, dtype=np.int64), *(rows for rows, _ in parts)])
        language = np.concatenate([np.empty(0), *(language for _, language in parts)])
        alone = set(begins[ends - begins == 1].tolist())
        copied = [place for place in np.flatnonzero(free).tolist() if place not in alone]
        given = [*(words[place] for place in copied), *(part.ids for part in forced)]
        target, lengths = self._targets(rows, given)
        places = np.array([*copied, *(part.begin for part in forced)], dtype=np.int64)
        last = np.array([*(place + 1 for place in copied), *(part.end for part in forced)], dtype=np.int64)
        kinds = np.repeat([COPIED, FORCED], [len(copied), len(forced)])
        return self._options(
            len(words), np.concatenate([begins, places]), np.concatenate([ends, last]),
            np.concatenate([rows, kinds]), target, lengths,
            np.concatenate([language, self._language(target[len(rows) :], lengths[len(rows) :])]),
        )  # fmt: skip

    def _spans(self, words: Words) -> list[tuple[int, int, int]]:
        """Begin, end and source phrase of each span that the table has."""
        ids = np.array([word[0] if len(word) == 1 else -1 for word in words], dtype=np.int64)
        nodes = np.zeros(len(words), dtype=np.int64)
        begins = np.arange(len(words))
        spans: list[tuple[int, int, int]] = []
        length = 0
        while len(begins):
            last = ids[begins + length]
            nodes = np.where(last >= 0, self.table.sources.child(nodes, np.maximum(last, 0)), 0)
            begins, nodes = begins[nodes > 0], nodes[nodes > 0]
            length += 1
            spans += [
                (begin, begin + length, node)
                for begin, node in zip(begins.tolist(), nodes.tolist(), strict=True)
                if len(self.table.rows(node))
            ]
            inside = begins + length < len(words)
            begins, nodes = begins[inside], nodes[inside]
        return spans

    def _best_rows(self, node: int) -> tuple[Ints, Floats]:
        """The best rows of a source phrase, and their weighted estimates of the language models."""
        if node not in self._rows:
            every = self.table.rows(node)
            rows = np.arange(every.start, every.stop)
            words, lengths = self._targets(rows, [])
            language = self._language(words, lengths)
            if 0 < self.limit < len(rows):
                scores = self._static(rows, lengths) @ self.weights[:NUM_STATIC] + language
                best = np.argsort(-scores, kind="stable")[: self.limit]
                rows, language = rows[best], language[best]
            self._rows[node] = rows, language
        return self._rows[node]

    def _language(self, words: Ints, lengths: Ints) -> Floats:
        """The weighted estimates [O] of the language models, without the words before."""
        estimate = np.zeros(len(words))
        for feature, language in zip(LANGUAGES, self.languages, strict=False):
            estimate += self.weights[feature] * language.phrases(np.full(len(words), ROOT), words, lengths)[0]
        return estimate

    def _targets(self, rows: Ints, copied: Words) -> tuple[Ints, Ints]:
        """The target words [O, L] of rows of the table and of copied words, and their lengths."""
        words, bounds = self.table.targets.all_words(self.table.tgt_nodes[rows])
        lengths = np.concatenate([np.diff(bounds), np.array([len(word) for word in copied], dtype=np.int64)])
        padded = np.zeros((len(lengths), int(lengths.max(initial=0))), dtype=np.int64)
        inside = np.arange(padded.shape[1]) < lengths[:, None]
        padded[inside] = np.concatenate([words, *(np.array(word, dtype=np.int64) for word in copied)])
        return padded, lengths

    def _static(self, rows: Ints, lengths: Ints) -> Floats:
        features = np.zeros((len(rows), NUM_STATIC))
        features[rows >= 0, :4] = self.table.features[rows[rows >= 0]]
        features[:, 4], features[:, 5] = 1, lengths
        features[:, UNKNOWN] = rows == COPIED
        return features

    def _options(
        self, num_words: int, begins: Ints, ends: Ints, rows: Ints, words: Ints, lengths: Ints, language: Floats
    ) -> Options:
        static = self._static(rows, lengths)
        turns = np.zeros((len(rows), 2 * NUM_ORIENTATIONS))
        turns[rows >= 0] = self.table.orientations[rows[rows >= 0]]
        weighted = turns * self.weights[BEFORE : BEFORE + 2 * NUM_ORIENTATIONS]
        before, after = weighted[:, :NUM_ORIENTATIONS], weighted[:, NUM_ORIENTATIONS:]
        scores = static @ self.weights[:NUM_STATIC]
        classes = np.unique(np.column_stack([begins, ends, after]), axis=0, return_inverse=True)[1]
        return Options(
            num_words, begins, ends, rows, words, lengths, static, scores, before, after, turns, language,
            classes.reshape(-1), future_scores(num_words, begins, ends, scores + language),
        )  # fmt: skip


def future_scores(num_words: int, begins: Ints, ends: Ints, scores: Floats) -> Floats:
    """The best sum of scores of adjacent options from each word to each other one, [n + 1, n + 1]."""
    best = np.full((num_words + 1, num_words + 1), -np.inf)
    np.fill_diagonal(best, 0.0)
    np.maximum.at(best, (begins, ends), scores)
    by_begin, by_end = np.full((2, num_words + 1, num_words + 1), -np.inf)  # by the length of a span, too
    for length in range(1, num_words + 1):
        first = np.arange(num_words - length + 1)
        last = first + length
        if length > 1:
            split = by_begin[: len(first), 1:length] + by_end[length:, length - 1 : 0 : -1]
            best[first, last] = np.maximum(best[first, last], split.max(1))
        by_begin[first, length] = by_end[last, length] = best[first, last]
    return best
