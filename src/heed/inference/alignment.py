"""Word alignment by a model's cross-attention."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from heed.core.errors import UsageError
from heed.decoding.cross_attention import attention_by_block, cross_attention
from heed.inference.line_translator import LineTranslator
from heed.inference.sentences import MAX_CHARACTERS
from heed.inference.translator import ModelTranslator


def mean_attention(translator: ModelTranslator, source: str, target: str) -> Float[Tensor, "T S"]:
    """Mean cross-attention of one pair: target tokens and their end by source tokens and their end."""
    trace, _, _ = translator.trace(source, target)
    return cross_attention(trace)[0]


def word_links(translator: LineTranslator, source: str, target: str) -> list[tuple[int, int]]:
    """Word alignment: (source word, target word) links, words separated by white space and counted from 0.

    Cross-attention under teacher forcing, averaged over the heads and blocks of the decoder's second half, is summed
    over the tokens of a source word and averaged over those of a target word; each target word links to its strongest
    source word. A line that is translated in sentences has no links. Without attention there are none either: only the
    translator's own outputs have links (`Hypothesis.links`).
    """
    merging = _Merging.of(translator, source, target)
    if merging is None or not isinstance(translator, ModelTranslator):
        return []
    return merging.links(mean_attention(translator, source, target))


def head_links(translator: ModelTranslator, source: str, target: str) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """As `word_links`, from each head of cross-attention alone, by its block and number, counted from 1.

    Raises UsageError for a model without such attention.
    """
    trace, _, _ = translator.trace(source, target)
    merging = _Merging.of(translator, source, target)
    heads = {
        (block, head): weights
        for block, of_block in enumerate(attention_by_block(trace), start=1)
        for head, weights in enumerate(of_block[0], start=1)
    }
    return {head: [] if merging is None else merging.links(weights) for head, weights in heads.items()}


@dataclass(frozen=True)
class _Merging:
    """The tokens of each word of a pair, by the number of the word; tags and ends belong to none."""

    src: dict[int, list[int]]
    tgt: dict[int, list[int]]

    @classmethod
    def of(cls, translator: LineTranslator, source: str, target: str) -> _Merging | None:
        """The words of a pair; None if its source has none, or is too long for one translation."""
        if translator.src_tokenizer is None:
            raise ValueError("alignment needs a model with a source")
        src_words = translator.src_tokenizer.word_ids(translator.normaliser.apply(source))
        src_words = [*(None for _ in translator.before_source), *src_words]
        tgt_words = translator.tgt_tokenizer.word_ids(translator.normaliser.apply(target))
        is_long = len(source) > MAX_CHARACTERS or len(src_words) > translator.longest
        if is_long or not any(word is not None for word in src_words):
            return None
        return cls(_by_word(src_words), _by_word(tgt_words))

    def links(self, weights: Float[Tensor, "T S"]) -> list[tuple[int, int]]:
        """The strongest source word of each target word."""
        weights = weights.cpu()
        by_source = {word: weights[:, columns].sum(1) for word, columns in self.src.items()}
        return [
            (max(by_source, key=lambda word: float(by_source[word][rows].mean())), target)
            for target, rows in sorted(self.tgt.items())
        ]


def _by_word(words: Sequence[int | None]) -> dict[int, list[int]]:
    tokens: dict[int, list[int]] = {}
    for token, word in enumerate(words):
        if word is not None:
            tokens.setdefault(word, []).append(token)
    return tokens


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
