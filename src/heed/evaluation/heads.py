"""Syntax in attention heads: their agreement with the trees of a treebank (Clark et al. 2019).

A head of attention predicts the syntactic head of a word in one of two directions: the word that it attends to most
(`word to head`), or the word that attends to it most (`head to word`). For each relation, the best head is chosen on
the first half of the sentences and scored on the second, next to the best fixed offset, chosen likewise. The attention
to a word of several tokens is the sum of that to its tokens, and the attention from it the mean (section 4.1 there).

Trees are induced from a head as maximum spanning trees from the true root (Raganato & Tiedemann 2018), and the probe
learns one weight for each head and direction: p(head of j is i) ∝ exp Σ_k (w_k α_ji^k + u_k α_ij^k) (section 5).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heed.core.errors import DataError
from heed.evaluation.table import columns
from heed.metrics.spanning_tree import maximum_spanning_tree
from heed.tasks.embedding import TokenAttention
from heed.tasks.predictor import Predictor
from heed.text.readers import Errors
from heed.text.treebank import Tree, read_trees

Floats = NDArray[np.float64]
DIRECTIONS = ("word to head", "head to word")
OFFSETS = (-5, -4, -3, -2, -1, 1, 2, 3, 4, 5)
MAX_WORDS = 100
"""Words of the longest sentence that is read."""
MIN_COUNT = 50
"""Occurrences of a relation in each half that is listed."""
_PROBE_STEPS, _PROBE_RATE, _PROBE_SENTENCES, _PROBE_WORDS = 150, 0.3, 200, 30
"""Updates of the probe, their rate, and the number and length of the sentences that it is trained on."""


@dataclass(frozen=True)
class Best:
    """The best head or offset for a kind of edge or constituent, chosen on one half and scored on the other."""

    what: str
    count: int
    """Words that are scored."""
    head: str
    right: float
    """Percentage that it gets right."""
    offset: int
    offset_right: float


@dataclass(frozen=True)
class HeadReport:
    """The agreement of attention heads with trees."""

    num_sentences: int
    rows: Sequence[Best]
    """All words first, then each relation, the most frequent first."""
    scores: dict[str, float]
    """Unlabelled attachment of induced trees and probes, in percent."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def render(self) -> str:
        """A table of the rows, and the scores."""
        heads = ["", "words", "best head", "right, %", "best offset", "right, %"]
        cells = [
            [row.what, f"{row.count:,}", row.head, f"{row.right:.1f}", f"{row.offset:+d}", f"{row.offset_right:.1f}"]
            for row in self.rows
        ]
        scores = [[name, f"{value:.1f}"] for name, value in self.scores.items()]
        note = f"{self.num_sentences:,} sentences: heads and offsets are chosen on the first half, scored on the second"
        parts = [
            columns([heads, *cells], right=[1, 3, 5]),
            columns([["", "right, %"], *scores], right=[1]) if scores else "",
        ]
        return "\n\n".join([note, *filter(None, parts)])


def evaluate_heads(predictor: Predictor, path: Path, errors: Errors = "strict") -> HeadReport:
    """The agreement of a run's attention heads with the trees of a file. Raises DataError, UsageError."""
    trees = [tree for tree in read_trees(path, errors) if 1 < len(tree.words) <= MAX_WORDS]
    if len(trees) < 2:
        raise DataError(f"{path} has fewer than two sentences of 2 to {MAX_WORDS} words.")
    texts = [" ".join(tree.words) for tree in trees]
    with torch.no_grad():
        found = predictor.self_attention(texts)
        weights = [word_attention(each, len(tree.words)) for each, tree in zip(found, trees, strict=True)]
        names = found[0].names
        if not trees[0].heads:
            return constituent_report(trees, weights, names)
        random = predictor.self_attention(texts, random_weights=True)
    of_random = [word_attention(each, len(tree.words)) for each, tree in zip(random, trees, strict=True)]
    return dependency_report(trees, weights, names, of_random)


def word_attention(attention: TokenAttention, num_words: int) -> Floats:
    """The attention [K heads, N, N] between words: the sum over the tokens attended to, the mean over the others."""
    places = np.array([-1 if word is None else word for word in attention.word_ids])
    member = (places[:, None] == np.arange(num_words)).astype(np.float64)  # [T, N]
    sizes = member.sum(axis=0)
    if (sizes == 0).any():
        raise DataError(
            f"this run's tokenizer makes no token of word {int(sizes.argmin()) + 1} of a sentence: "
            "remove this sentence from the treebank."
        )
    weights: Floats = (member / sizes).T @ attention.weights.astype(np.float64) @ member
    return weights


def predicted_heads(weights: Floats) -> NDArray[np.int64]:
    """The predicted head of each word by each head and direction: [K, N, N] -> [K, 2, N]; no word is its own head."""
    without = weights.copy()
    without[:, np.arange(weights.shape[1]), np.arange(weights.shape[1])] = -np.inf
    return np.stack([without.argmax(axis=2), without.argmax(axis=1)], axis=1)


@dataclass
class _Counts:
    """Right predictions of each system, by half of the sentences."""

    right: Floats
    """[2 halves, systems]"""
    total: Floats
    """[2 halves]"""


def dependency_report(
    trees: Sequence[Tree], weights: Sequence[Floats], names: Sequence[str], random_weights: Sequence[Floats]
) -> HeadReport:
    """The agreement of the attention of each sentence, [K, N, N], with its dependencies; punctuation does not count.

    Raises DataError if nothing else is there. Without short sentences in the first half, there are no probes.
    """
    systems = [f"{name}, {direction}" for name in names for direction in DIRECTIONS]
    counts: dict[str, _Counts] = {}
    for place, (tree, each) in enumerate(zip(trees, weights, strict=True)):
        half = int(2 * place >= len(trees))
        true = np.array(tree.heads)
        right = (predicted_heads(each) == true).reshape(-1, len(true))
        by_offset = np.stack([np.arange(len(true)) + offset == true for offset in OFFSETS])
        for word, relation in enumerate(tree.relations):
            if true[word] < 0 or relation == "punct":
                continue
            for kind in ("all", relation):
                entry = counts.setdefault(kind, _Counts(np.zeros((2, len(right) + len(OFFSETS))), np.zeros(2)))
                entry.right[half] += np.concatenate([right[:, word], by_offset[:, word]])
                entry.total[half] += 1
    if not counts:
        raise DataError("the sentences of the treebank have no words besides their roots and punctuation.")
    rows = _best_rows(counts, systems)
    second = range(-(-len(trees) // 2), len(trees))
    short = [place for place in range(second.start) if len(trees[place].words) <= _PROBE_WORDS][:_PROBE_SENTENCES]
    best = systems.index(rows[0].head)
    scores = {"tree of the best head": _induced(trees, weights, best, second)}
    for name, given in (("probe of all heads", weights), ("probe of random weights", random_weights)):
        if short:
            scores[name] = _probed(trees, given, short, second)
    return HeadReport(len(trees), rows, scores)


def constituent_report(trees: Sequence[Tree], weights: Sequence[Floats], names: Sequence[str]) -> HeadReport:
    """How often the word that a head attends to most, apart from the word itself, is in its smallest constituent."""
    counts = {"all": _Counts(np.zeros((2, len(names) + len(OFFSETS))), np.zeros(2))}
    for place, (tree, each) in enumerate(zip(trees, weights, strict=True)):
        half, number = int(2 * place >= len(trees)), len(tree.words)
        attended = predicted_heads(each)[:, 0]
        for word in range(number):
            around = [span for span in tree.spans if span[0] <= word < span[1]]
            if around:
                begin, end = min(around, key=lambda span: span[1] - span[0])
                chosen = np.concatenate([attended[:, word], word + np.array(OFFSETS)])
                counts["all"].right[half] += (chosen >= begin) & (chosen < end)
                counts["all"].total[half] += 1
    return HeadReport(len(trees), _best_rows(counts, list(names)), {})


def _best_rows(counts: dict[str, _Counts], systems: Sequence[str]) -> list[Best]:
    rows = []
    for kind, entry in sorted(counts.items(), key=lambda item: (item[0] != "all", -item[1].total[1], item[0])):
        if kind != "all" and entry.total.min() < MIN_COUNT:
            continue
        percent = 100 * entry.right[1] / max(1.0, entry.total[1])
        head = int(entry.right[0, : len(systems)].argmax())
        offset = int(entry.right[0, len(systems) :].argmax())
        rows.append(
            Best(
                kind, int(entry.total[1]), systems[head], float(percent[head]), OFFSETS[offset],
                float(percent[len(systems) + offset]),
            )
        )  # fmt: skip
    return rows


def attachment(trees: Sequence[Tree], predicted: Sequence[Sequence[int]]) -> float:
    """The percentage of words with the right head, without the root and punctuation."""
    right = total = 0
    for tree, heads in zip(trees, predicted, strict=True):
        for word, relation in enumerate(tree.relations):
            if tree.heads[word] >= 0 and relation != "punct":
                right += heads[word] == tree.heads[word]
                total += 1
    return 100 * right / max(1, total)


def _induced(trees: Sequence[Tree], weights: Sequence[Floats], system: int, places: range) -> float:
    """Attachment of the spanning trees of a head and direction, numbered as in the report."""
    head, direction = divmod(system, len(DIRECTIONS))
    predicted = []
    for place in places:
        scores = weights[place][head].T if direction == 0 else weights[place][head]
        predicted.append(maximum_spanning_tree(scores, trees[place].heads.index(-1)))
    return attachment([trees[place] for place in places], predicted)


def _probed(trees: Sequence[Tree], weights: Sequence[Floats], short: Sequence[int], second: range) -> float:
    """Attachment of the probe that is trained on the short sentences of the first half."""
    size = max(len(trees[place].words) for place in short)
    padded = [(0, size - len(trees[place].words)) for place in short]
    features = np.stack(
        [np.pad(_both(weights[place]), ((0, 0), pad, pad)) for place, pad in zip(short, padded, strict=True)]
    )
    heads = np.stack(
        [np.pad(trees[place].heads, pad, constant_values=-1) for place, pad in zip(short, padded, strict=True)]
    )
    lengths = np.array([len(trees[place].words) for place in short])
    outside = (np.arange(size) >= lengths[:, None])[:, None, :] | np.eye(size, dtype=bool)
    coefficients = _trained(torch.from_numpy(features).float(), torch.from_numpy(heads), torch.from_numpy(outside))
    predicted = []
    for place in second:
        scores = np.einsum("k,kji->ji", coefficients, _both(weights[place]))
        np.fill_diagonal(scores, -np.inf)
        predicted.append(scores.argmax(axis=1).tolist())
    return attachment([trees[place] for place in second], predicted)


def _both(weights: Floats) -> Floats:
    """The attention from each word to the others, and to it from them: [2K, N, N]."""
    return np.concatenate([weights, weights.transpose(0, 2, 1)])


def _trained(features: Tensor, heads: Tensor, outside: Tensor) -> Floats:
    """The coefficients [2K] that make the heads [S, N] likeliest, given features [S, 2K, N, N]."""
    coefficients = torch.zeros(features.shape[1], requires_grad=True)
    optimizer = torch.optim.Adam([coefficients], lr=_PROBE_RATE)
    for _ in range(_PROBE_STEPS):
        scores = torch.einsum("k,skji->sji", coefficients, features).masked_fill(outside, -1e9)
        loss = torch.nn.functional.cross_entropy(scores.flatten(0, 1), heads.flatten(), ignore_index=-1)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return coefficients.detach().double().numpy()
