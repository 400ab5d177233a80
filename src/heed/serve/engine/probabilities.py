"""Token probabilities of a text, likely next tokens, and tokens as text."""

from __future__ import annotations

import codecs
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from heed.decoding.detokenizer import Detokenizer
from heed.decoding.scoring import TokenStats, forced_pass, token_stats
from heed.inference.translator import ModelTranslator
from heed.inspect.inspection import without_space
from heed.inspect.teacher_forcing import EncodedPair
from heed.text.vocabulary import BOS_ID, EOS_ID


@dataclass(frozen=True)
class NextToken:
    """A possible next token."""

    id: int
    text: str
    log_prob: float
    probability: float
    end: bool


@torch.inference_mode()
def text_stats(translator: ModelTranslator, ids: Sequence[int], num_choices: int) -> list[TokenStats]:
    """Statistics of each id, given those before it. Call it from the thread that owns the model."""
    if not ids:
        return []
    model, form = translator.model, translator.detokenizer
    tgt_in = torch.tensor([[BOS_ID, *as_read(form, ids)[:-1]]], device=translator.device)
    return token_stats(model, forced_pass(model, None, tgt_in)[0], as_written(form, ids), num_choices)


@torch.inference_mode()
def next_tokens(translator: ModelTranslator, source: str | None, prefix: str, num_choices: int) -> list[NextToken]:
    """The likeliest tokens after a prefix of a translation or a text, ready to be appended to it.

    Call it from the thread that owns the model.
    """
    if source is None:
        pair = EncodedPair.of_text(translator, prefix)
    else:
        pair = EncodedPair.of_translation(*translator.encoded(source, prefix.rstrip()))
    model, form = translator.model, translator.detokenizer
    tgt_in = torch.tensor([pair.tgt_in], device=translator.device)
    features = forced_pass(model, pair.source(translator.device), tgt_in)
    log_probs = model.head.log_probs(features[0, -1:])[0].float()
    best, ids = log_probs.topk(min(num_choices, log_probs.shape[0]))

    def text(id: int) -> str:
        token = spell_one(form.token_bytes[id])
        if source is not None and not form.space_after_words:
            return without_space(prefix, token)
        return form.space_between(prefix, token) + (token.removesuffix(" ") if form.space_after_words else token)

    tokens = [
        NextToken(id, "" if id == EOS_ID else text(id), finite(value), math.exp(value), id == EOS_ID)
        for id, value in zip(ids.tolist(), best.tolist(), strict=True)
    ]
    return [token for token in tokens if token.text or token.end or source is None or prefix.rstrip() == prefix]


def finite(value: float) -> float:
    """The value, or -1e9 for an infinity, which JSON lacks."""
    return value if math.isfinite(value) else -1e9


def as_read(form: Detokenizer, ids: Sequence[int]) -> list[int]:
    """Output tokens as the model reads them: some tokenizers have another token in place of the end of sentence."""
    end = form.token_after_eos
    return list(ids) if end is None else [end if id == EOS_ID else id for id in ids]


def as_written(form: Detokenizer, ids: Sequence[int]) -> list[int]:
    """The inverse of `as_read`."""
    end = form.token_after_eos
    return list(ids) if end is None else [EOS_ID if id == end else id for id in ids]


def spell(form: Detokenizer, ids: Sequence[int], start: int = 0) -> tuple[list[str], list[int]]:
    """The tokens as texts, and the character of the whole text at which each begins, counted from `start`."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    tokens, offsets, offset = [], [], start
    for id in as_written(form, ids):
        piece = form.token_bytes[id]
        tokens.append(spell_one(piece))
        is_cut = decoder.getstate()[0] and piece and not 0x80 <= piece[0] < 0xC0
        offsets.append(offset + bool(is_cut))  # the character before it has no end, and becomes U+FFFD
        offset += len(decoder.decode(piece))
    return tokens, offsets


def spell_one(piece: bytes) -> str:
    """A token as text; `bytes:\\xe2\\x80`, as in OpenAI's API, if it is not whole characters."""
    try:
        return piece.decode("utf-8")
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in piece)
