"""Tagger: the tags and spans of sentences by a trained model, with their probabilities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heed.decoding.scoring import MAX_READ_ROWS, in_length_order
from heed.nn.contract import Trace
from heed.nn.crf import Chain
from heed.tasks.tagging.labels import TagLabels
from heed.tasks.words import WordEncoder, Words
from heed.text.tag_schemes import Span, spans

MAX_WORDS = 1000
"""Words that are tagged together; a longer sentence is cut into parts."""


@dataclass(frozen=True)
class Tagging:
    """The tags of a sentence."""

    tags: tuple[str, ...]
    """In the scheme of the files."""
    probability: float
    """Probability of all tags together."""
    probabilities: tuple[float, ...]
    """Probability of the tag of each word."""
    spans: tuple[tuple[Span, float], ...] = ()
    """The spans, each with the probability that exactly this span is in the sentence."""


class Tagger:
    """Tags sentences with a model."""

    def __init__(self, model: Any, encoder: WordEncoder[TagLabels], device: torch.device) -> None:
        self.model = model
        self.encoder = encoder
        self.device = device

    @property
    def labels(self) -> TagLabels:
        """The labels of the model."""
        return self.encoder.labels

    def tags(self, sentences: Sequence[Words]) -> list[list[str]]:
        """The most probable tags of each sentence, without probabilities."""
        taggings = self._all(sentences, lambda part: self._best_tags(self._chains(part).searched))
        return [[tag for part in parts for tag in part] for parts in taggings]

    def taggings(self, sentences: Sequence[Words], number: int = 1) -> list[list[Tagging]]:
        """The `number` most probable tag sequences of each sentence, the best first; of a cut one only the best."""
        parts = self._all(sentences, lambda part: self._with_probabilities(self._chains(part), number))
        return [each[0] if len(each) == 1 else [_joined([part[0] for part in each])] for each in parts]

    def masses(self, sentence: Words) -> list[tuple[SpanMasses, tuple[int, ...]]]:
        """The probabilities of tags in each part of a sentence, and the tags of the most probable tagging."""
        [parts] = self._all([sentence], self._masses)
        return parts

    def vectors(self, sentences: Sequence[Words]) -> list[NDArray[np.float32]]:
        """The features [W, D] that the head reads of each sentence; a sentence may be empty."""
        empty = np.empty((0, self.model.reader.num_features), dtype=np.float32)
        parts = iter(self._all([sentence for sentence in sentences if sentence.tokens], self._vectors))
        return [np.concatenate(next(parts)) if sentence.tokens else empty for sentence in sentences]

    def _all(self, sentences: Sequence[Words], read: Callable[[Sequence[Words]], Sequence[Any]]) -> list[list[Any]]:
        """What `read` returns for the parts of each sentence, which it gets in batches."""
        parts = [(row, part) for row, sentence in enumerate(sentences) for part in self._parts(sentence)]
        lengths = [len(part.tokens) + 1 for _, part in parts]
        found = in_length_order(lengths, lengths, lambda some: read([parts[at][1] for at in some]), MAX_READ_ROWS)
        results: list[list[Any]] = [[] for _ in sentences]
        for (row, _), result in zip(parts, found, strict=True):
            results[row].append(result)
        return results

    def _parts(self, sentence: Words) -> list[Words]:
        """A sentence in parts that the model can read: of at most `MAX_WORDS` words, and of its number of positions."""
        parts = cut(sentence, [*range(MAX_WORDS, len(sentence.tokens), MAX_WORDS)])
        most = self.model.reader.config.max_positions
        if most is None:
            return parts
        columns = self.encoder.columns(parts)
        starts = zip(columns["starts"], map(len, columns["src"]), strict=True)
        ends = [[*of_part[1:], length] for of_part, length in starts]
        cuts = [cuts_within(of_part, most - 1) for of_part in ends]
        return [small for part, at in zip(parts, cuts, strict=True) for small in cut(part, at)]

    @torch.no_grad()
    def _features(self, sentences: Sequence[Words]) -> tuple[Tensor, Tensor]:
        """The features of each word [B, W, D], and which words are real [B, W]."""
        source = self.encoder.source(sentences).to(self.device)
        return source.of_words(self.model.read(source)), source.words

    @torch.no_grad()
    def _chains(self, sentences: Sequence[Words]) -> Chains:
        features, words = self._features(sentences)
        return Chains(self.model.head.chain(features, words), self.model.head.searched(features, words))

    def _masses(self, sentences: Sequence[Words]) -> list[tuple[SpanMasses, tuple[int, ...]]]:
        chains = [self._chains([sentence]) for sentence in sentences]
        return [(SpanMasses(each.scored, self.labels), tuple(each.searched.best()[0][0].tags)) for each in chains]

    def traced(self, sentence: Words) -> tuple[Trace, list[int], int] | None:
        """The attention over a sentence, the position of each word in it, and their number; None for one in parts."""
        if len(self._parts(sentence)) > 1:
            return None
        trace = Trace()
        source = self.encoder.source([sentence]).to(self.device)
        with torch.no_grad():
            self.model.read(source, trace=trace)
        added = int(self.model.reader.num_added)
        return trace, [start + added for start in source.starts[0].tolist()], source.ids.shape[1] + added

    def _vectors(self, sentences: Sequence[Words]) -> list[NDArray[np.float32]]:
        features = self._features(sentences)[0].float().cpu().numpy()
        return [table[: len(each.tokens)].copy() for table, each in zip(features, sentences, strict=True)]

    def _best_tags(self, chain: Chain) -> list[list[str]]:
        names = self.labels.labels
        return [self.labels.for_file([names[tag] for tag in paths[0].tags]) for paths in chain.best()]

    def _with_probabilities(self, chains: Chains, number: int) -> list[list[Tagging]]:
        masses = SpanMasses(chains.scored, self.labels)
        return [
            [self._tagging(path.tags, row, masses) for path in paths]
            for row, paths in enumerate(chains.searched.best(number))
        ]

    def _tagging(self, ids: Sequence[int], row: int, masses: SpanMasses) -> Tagging:
        inner = [self.labels.labels[tag] for tag in ids]
        found = [] if self.labels.scheme == "plain" else spans(inner)
        return Tagging(
            tuple(self.labels.for_file(inner)),
            masses.probability_of(row, ids, 0, len(ids)),
            masses.of_tags(row, ids),
            tuple((span, masses.probability_of(row, ids, span.start, span.end)) for span in found),
        )


@dataclass(frozen=True)
class Chains:
    """The scores of tag sequences for probabilities, and those of the legal ones for the search."""

    scored: Chain
    searched: Chain


class SpanMasses:
    """Probabilities of runs of tags, by the forward and backward algorithms."""

    def __init__(self, chain: Chain, labels: TagLabels) -> None:
        self.emissions: NDArray[np.float64] = chain.emissions.cpu().numpy()
        self.transitions: NDArray[np.float64] = chain.transitions.cpu().numpy()
        self.before: NDArray[np.float64] = chain.forward().cpu().numpy()
        self.after: NDArray[np.float64] = chain.backward().cpu().numpy()
        self.lengths = chain.lengths
        self.continues = np.array(
            [[labels.scheme == "iob2" and _continues(a, b) for b in labels.labels] for a in labels.labels]
        )

    def probability_of(self, row: int, ids: Sequence[int], start: int, end: int) -> float:
        """P(the tags from `start` to `end` are these, and no tag after them continues the last span)."""
        inside = self.before[row, start, ids[start]]
        for t in range(start + 1, end):
            inside += self.transitions[ids[t - 1], ids[t]] + self.emissions[row, t, ids[t]]
        whole = np.logaddexp.reduce(self.before[row, self.lengths[row] - 1])
        return float(np.exp(min(0.0, inside + self._ended(row, ids[end - 1], end) - whole)))

    def marginals(self, row: int) -> NDArray[np.float64]:
        """P(y_t) [W, K]."""
        masses = self.before[row, : self.lengths[row]] + self.after[row, : self.lengths[row]]
        shares: NDArray[np.float64] = np.exp(masses - np.logaddexp.reduce(masses, axis=-1, keepdims=True))
        return shares

    def steps(self, row: int) -> NDArray[np.float64]:
        """P(y_t, y_t+1) [W - 1, K, K]."""
        length = self.lengths[row]
        before, after = self.before[row, : length - 1, :, None], self.after[row, 1:length, None]
        joint = before + self.transitions + self.emissions[row, 1:length, None] + after
        shares: NDArray[np.float64] = np.exp(joint - np.logaddexp.reduce(joint, axis=(1, 2), keepdims=True))
        return shares

    def of_tags(self, row: int, ids: Sequence[int]) -> tuple[float, ...]:
        """P(y_t) of each word's tag, the marginals."""
        return tuple(self.marginals(row)[np.arange(len(ids)), list(ids)].tolist())

    def _ended(self, row: int, tag: int, end: int) -> float:
        """The log-mass of the rest of the sentence after a span that ends before word `end`."""
        if end == self.lengths[row]:
            return 0.0
        steps = self.transitions[tag] + self.emissions[row, end] + self.after[row, end]
        return float(np.logaddexp.reduce(np.where(self.continues[tag], -np.inf, steps)))


def _continues(before: str, tag: str) -> bool:
    return tag.startswith("I") and before[1:] == tag[1:]


def cut(sentence: Words, places: Sequence[int]) -> list[Words]:
    """A sentence in parts that begin at these words, and at the first one."""
    slices = [slice(*pair) for pair in pairwise([0, *places, len(sentence.tokens)])]
    return [Words(sentence.tokens[part], sentence.marks[part]) for part in slices]


def cuts_within(ends: Sequence[int], most: int) -> list[int]:
    """The words before which to cut, so that a part has at most `most` pieces; `ends` is where each word ends."""
    cuts: list[int] = []
    begin = 0
    for word, end in enumerate(ends):
        if end - begin > most and word > (cuts[-1] if cuts else 0):
            cuts.append(word)
            begin = ends[word - 1]
    return cuts


def _joined(parts: Sequence[Tagging]) -> Tagging:
    """The tagging of a sentence from those of its parts."""
    moved: list[tuple[Span, float]] = []
    done = 0
    for part in parts:
        moved += [(Span(s.start + done, s.end + done, s.type), p) for s, p in part.spans]
        done += len(part.tags)
    probability = float(np.prod([part.probability for part in parts]))
    tags = tuple(chain.from_iterable(part.tags for part in parts))
    return Tagging(tags, probability, tuple(chain.from_iterable(p.probabilities for p in parts)), tuple(moved))
