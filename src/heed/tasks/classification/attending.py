"""Attention of a reader of documents to the sentences of a text, and to the words of each sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from heed.models.hierarchical_attention import WORDS
from heed.nn.contract import Trace
from heed.tasks.classification.reading import outputs_of
from heed.tasks.predictor import AttendedSentence, Weighted
from heed.text.token_words import word_slices

SENTENCES = "pooling"
"""Name of the traced attention of the pooling head."""


@torch.no_grad()
def attended_sentences(predictor: Any, texts: tuple[str, ...]) -> tuple[AttendedSentence, ...]:
    """The sentences of a text, with their shares; empty unless the answer uses a reader with both attentions."""
    if "neural" not in predictor.answer.factors or not predictor.encoding.as_documents:
        return ()
    normalise = predictor.run.recipe.data.normaliser.apply
    tokenizer = predictor.tokenizers["src"]
    ids = predictor.encoding.encode([tuple(map(normalise, texts))], tokenizer)
    source, trace = predictor.encoding.source(ids).to(predictor.run.device), Trace()
    outputs_of(predictor.run.model, source, trace=trace)
    if SENTENCES not in trace.weights or WORDS not in trace.weights:
        return ()
    shares = trace.weights[SENTENCES][0][0, 0, 0].float().tolist()
    of_words = trace.weights[WORDS][0][0, 0].float()
    sentences = []
    for share, weights, row, is_token in zip(shares, of_words, source.ids, source.tokens, strict=True):
        words = _words(tokenizer.bytes_of(row[is_token].tolist()), weights[is_token].tolist())
        sentences.append(AttendedSentence(share, words))
    return tuple(sentences)


def _words(parts: Sequence[bytes], weights: Sequence[float]) -> tuple[Weighted, ...]:
    """The words that tokens make up, each with the sum of their shares."""
    return tuple(
        Weighted(b"".join(parts[place]).decode("utf-8", "replace").strip(), sum(weights[place]))
        for place in word_slices(parts)
    )
