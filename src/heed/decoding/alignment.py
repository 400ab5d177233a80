"""Word alignment by a model's cross-attention, or by its derivations."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from heed.core.errors import UsageError
from heed.decoding.cross_attention import cross_attention
from heed.decoding.line_translator import LineTranslator
from heed.decoding.sentences import MAX_CHARACTERS
from heed.decoding.translator import ModelTranslator


def mean_attention(translator: ModelTranslator, source: str, target: str) -> Float[Tensor, "T S"]:
    """Mean cross-attention of one pair: target tokens and their end by source tokens and their end."""
    trace, _, _ = translator.trace(source, target)
    return cross_attention(trace)[0]


def word_links(translator: LineTranslator, source: str, target: str) -> list[tuple[int, int]]:
    """Word alignment: (source word, target word) links, words separated by white space and counted from 0.

    A translator that derives links the words inside its phrases. For any other, cross-attention under teacher forcing,
    averaged over the heads and blocks of the decoder's second half, is summed
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
    if (derived := translator.derived_links(source, target)) is not None:
        ends = ((src_words[i], tgt_words[j]) for i, j in derived)
        return sorted({(i, j) for i, j in ends if i is not None and j is not None})
    assert isinstance(translator, ModelTranslator)
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


def links_of_pairs(translator: LineTranslator, pairs: Sequence[tuple[str, str]]) -> list[list[tuple[int, int]]]:
    """The word alignment of each pair: word by word for equal texts, and none from a model without attention."""
    return [_links_of(translator, source, target) for source, target in pairs]


def _links_of(translator: LineTranslator, source: str, target: str) -> list[tuple[int, int]]:
    if source == target:
        return [(word, word) for word in range(len(source.split()))]
    try:
        return word_links(translator, source, target) if source.strip() and target.strip() else []
    except UsageError:
        return []
