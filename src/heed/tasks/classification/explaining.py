"""Explanation of a classifier's answer: words left out one at a time, and n-grams of the linear model.

The weight of a word is the fall of the answer's log-odds when the word is left out (of a number, the fall of the
number), which is exact for any model (Li, Monroe & Jurafsky 2016, "Understanding neural networks through representation
erasure"). Neighbouring words of a long text are left out together.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import Any

import torch
from torch import Tensor

from heed.tasks.predictor import Explanation, Weighted

MOST_LEFT_OUT = 128
"""Versions of a text that are computed."""
NUM_NGRAMS = 12
_WORD = re.compile(r"\S+\s*")


def explain(predictor: Any, texts: tuple[str, ...]) -> Explanation:
    """The explanation of the most probable answer to a text, or a pair."""
    normalise = predictor.run.recipe.data.normaliser.apply
    texts = tuple(map(normalise, texts))
    outputs = predictor.outputs([texts])
    kind = predictor.labels.kind
    label = int(outputs[0].argmax())
    pieces = _pieces(texts)
    versions = [_without(texts, side, begin, end) for side, begin, end in pieces]
    odds = _log_odds(torch.cat([outputs, predictor.outputs(versions)]) if versions else outputs, label, kind)
    words: list[Weighted] = []
    for (side, begin, end), after in zip(pieces, odds[1:].tolist(), strict=True):
        share = (float(odds[0]) - after) / (end - begin)
        words += [Weighted(word, share) for word in texts[side].split()[begin:end]]
    answer = predictor.labels.answer(predictor.labels.link.probabilities(outputs)[0].tolist())
    name = answer if kind == "number" else predictor.labels.names[label]
    return Explanation(name, tuple(words), tuple(_ngrams(predictor, texts, label)))


def _pieces(texts: tuple[str, ...]) -> list[tuple[int, int, int]]:
    """Groups of neighbouring words that are left out together: text, begin and end."""
    counts = [len(text.split()) for text in texts]
    size = -(-sum(counts) // MOST_LEFT_OUT) or 1
    return [
        (side, begin, min(begin + size, count)) for side, count in enumerate(counts) for begin in range(0, count, size)
    ]


def _without(texts: tuple[str, ...], side: int, begin: int, end: int) -> tuple[str, ...]:
    words = _WORD.findall(texts[side])
    line_end = "\n" * any("\n" in word for word in words[begin:end])  # it ends a sentence of a document
    shorter = "".join(words[:begin]) + line_end + "".join(words[end:])
    return (*texts[:side], shorter.strip(), *texts[side + 1 :])


def _log_odds(outputs: Tensor, label: int, kind: str) -> Tensor:
    """Log-odds of a label [N]; of a number, the number in deviations."""
    if kind != "label":
        return outputs[:, label]
    others = torch.cat([outputs[:, :label], outputs[:, label + 1 :]], 1)
    return outputs[:, label] - others.logsumexp(1)


def _ngrams(predictor: Any, texts: tuple[str, ...], label: int) -> list[Weighted]:
    """The n-grams with the largest part in the output of a label, relative to the mean of the other labels."""
    factor = predictor.answer.factors.get("linear", 0.0)
    if not factor or predictor.linear is None:
        return []
    sums: defaultdict[str, float] = defaultdict(float)
    for each in predictor.linear.contributions(texts):
        others = [*each.weights[:label], *each.weights[label + 1 :]]
        sums[each.ngram] += factor * (each.weights[label] - sum(others) / max(1, len(others)))
    ranked = sorted(sums.items(), key=lambda item: -abs(item[1]))[:NUM_NGRAMS]
    return [Weighted(ngram, weight) for ngram, weight in ranked]
