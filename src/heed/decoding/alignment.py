"""Which source word does each target word attend to most?

The cross-attention under teacher forcing, averaged over the blocks and heads of the second half of the
decoder (the lower blocks attend less to translations), summed over the pieces of a source word and averaged over
those of a target word; each target word links to its strongest source word.
"""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from heed.decoding.coverage import cross_attention
from heed.decoding.long_lines import MAX_CHARACTERS
from heed.decoding.translator import ModelTranslator


def mean_attention(translator: ModelTranslator, source: str, target: str) -> Float[Tensor, "T S"]:
    """Mean cross-attention of one pair: a row for each target token and its end, a column for each source token."""
    trace, _, _ = translator.trace(source, target)
    return cross_attention(trace)[0]


def word_links(translator: ModelTranslator, source: str, target: str) -> list[tuple[int, int]]:
    """(source word, target word) links of white-space separated words, counted from 0."""
    if translator.src_tokenizer is None:
        raise ValueError("only a model with a source has links to it")
    src_words = translator.src_tokenizer.word_ids(translator.normaliser.apply(source))
    src_words = [*(None for _ in translator.before_source), *src_words]
    tgt_words = translator.tgt_tokenizer.word_ids(translator.normaliser.apply(target))
    if not any(w is not None for w in src_words) or len(source) > MAX_CHARACTERS:  # translated in pieces
        return []
    weights = mean_attention(translator, source, target)
    by_source: dict[int, Tensor] = {}
    for place, word in enumerate(src_words):
        if word is not None:
            by_source[word] = by_source.get(word, torch.zeros(weights.shape[0])) + weights[:, place].cpu()
    links = []
    for word in sorted({w for w in tgt_words if w is not None}):
        places = [place for place, w in enumerate(tgt_words) if w == word]
        best = max(by_source, key=lambda source_word: float(by_source[source_word][places].mean()))
        links.append((best, word))
    return links
