"""Reading of a text by a masked language model: what it expects at each word, given all others.

At a mask that the text has, and at each word when all of its tokens are masked, and those of no other word. The
probability of a word of several tokens is the product, because the model predicts each mask by itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from heed.data.batch import source_from_ids
from heed.decoding.scoring import TokenStats, stats_of
from heed.nn.contract import Trace
from heed.tasks.reading import Reading, text_words
from heed.text.token_words import Choice, Token, Word, continues_word, probability
from heed.text.tokenizers import Tokenizer
from heed.text.vocabulary import EOS_ID, PAD_ID, SPECIAL_PIECES

NUM_CHOICES = 12
"""Likely tokens at a position."""
MOST_MASKED = 128
"""Words of a text that are masked one after another. Of a longer text, only its own masks are predicted."""
_ROWS_AT_ONCE = 32


def text_log_probs(model: Any, features: Float[Tensor, "N D"], tokenizer: Tokenizer) -> Float[Tensor, "N V"]:
    """Log-probabilities of pieces of text at masks; others have minus infinity."""
    log_probs: Tensor = model.head.log_probs(features)
    log_probs[:, : len(SPECIAL_PIECES)] = float("-inf")
    log_probs[:, len(SPECIAL_PIECES) + len(tokenizer.vocabulary.text_pieces) :] = float("-inf")
    return log_probs


@torch.inference_mode()
def read(model: Any, tokenizer: Tokenizer, ids: Sequence[int], mask_id: int, device: torch.device) -> Reading:
    """A text as a masked language model reads it."""
    trace = Trace()
    model.read(source_from_ids([ids], EOS_ID, PAD_ID).to(device), trace=trace)
    added = int(model.reader.num_added)
    words, places = text_words(tokenizer, ids, bool(added))
    within = {index: slice(place.start - added, place.stop - added) for index, place in enumerate(places)}
    chosen = [index for index, word in enumerate(words) if word.kind in ("word", "tag")]
    if len(chosen) > MOST_MASKED:
        chosen = [index for index in chosen if mask_id in ids[within[index]]]
    stats = _stats(model, tokenizer, ids, [within[index] for index in chosen], mask_id, device)
    seen = {index: _predicted(words[index], each, tokenizer, mask_id in ids[within[index]])
            for index, each in zip(chosen, stats, strict=True)}  # fmt: skip
    return Reading(tuple(seen.get(index, word) for index, word in enumerate(words)), places, trace)


def _stats(
    model: Any, tokenizer: Tokenizer, ids: Sequence[int], places: Sequence[slice], mask_id: int, device: torch.device
) -> list[list[TokenStats]]:
    """Statistics of the tokens at each of these places, when those of this place are masked."""
    found: list[list[TokenStats]] = []
    for first in range(0, len(places), _ROWS_AT_ONCE):
        some = places[first : first + _ROWS_AT_ONCE]
        source = source_from_ids([ids] * len(some), EOS_ID, PAD_ID)
        for row, place in zip(source.ids, some, strict=True):
            row[place] = mask_id
        features = model.read(source.to(device))
        for row, place in zip(features, some, strict=True):
            log_probs = text_log_probs(model, row[place], tokenizer).float()
            found.append(stats_of(log_probs, torch.tensor(ids[place], device=device), NUM_CHOICES))
    return found


def _predicted(word: Word, stats: Sequence[TokenStats], tokenizer: Tokenizer, is_mask: bool) -> Word:
    """A word with its probability, and likely tokens; a mask of the text has no probability of its own."""
    tokens = [_token(token, stat, tokenizer, is_mask) for token, stat in zip(word.tokens, stats, strict=True)]
    prob = None if is_mask else probability(math.fsum(stat.log_prob for stat in stats))
    return replace(word, prob=prob, tokens=tuple(tokens))


def _token(token: Token, stat: TokenStats, tokenizer: Tokenizer, is_mask: bool) -> Token:
    ids = [id for id, _ in stat.choices]
    named = zip(tokenizer.pieces(ids), tokenizer.bytes_of(ids), stat.choices, strict=True)
    before = b"a" if token.goes_on else b""
    choices = tuple(
        Choice(piece, continues_word(before, added), probability(log_prob), end=False)
        for piece, added, (_, log_prob) in named
    )
    if is_mask:
        return replace(token, choices=choices)
    return replace(token, prob=probability(stat.log_prob), rank=stat.rank, choices=choices)
