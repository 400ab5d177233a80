"""Token probabilities of a text, likely next tokens, and tokens as text."""

from __future__ import annotations

import codecs
import math
from collections.abc import Sequence

import torch

from heed.data.batch import source_from_ids
from heed.decoding.detokenizer import Detokenizer
from heed.decoding.scoring import TokenStats, token_stats
from heed.decoding.translator import ModelTranslator
from heed.text.vocabulary import BOS_ID, EOS_ID, PAD_ID


@torch.inference_mode()
def places_in_text(translator: ModelTranslator, ids: Sequence[int], num_choices: int) -> list[TokenStats]:
    """Probabilities of each id, given those before it. Call it from the thread that owns the model."""
    if not ids:
        return []
    model, form = translator.model, translator.detokenizer
    read = torch.tensor([[BOS_ID, *as_read(form, ids)[:-1]]], device=translator.device)
    features, _ = model.advance(read, model.start(None))
    return token_stats(model, features[0], as_written(form, ids), num_choices)


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
        offsets.append(offset)
        offset += len(decoder.decode(piece))
    return tokens, offsets


def spell_one(piece: bytes) -> str:
    """A token as text; `bytes:\\xe2\\x80`, as in OpenAI's API, if it is not whole characters."""
    try:
        return piece.decode("utf-8")
    except UnicodeDecodeError:
        return "bytes:" + "".join(f"\\x{byte:02x}" for byte in piece)


@torch.inference_mode()
def next_choices(
    translator: ModelTranslator, source: str | None, prefix: str, num_choices: int
) -> list[dict[str, int | float | str | bool]]:
    """The likeliest tokens after the beginning of an output or a text, as they read after it.

    Call it from the thread that owns the model.
    """
    src_ids, ids = translator.encoded(source, prefix.rstrip() if source is not None else prefix)
    if source is None:
        ids = list(translator.prompt_request(prefix).prefix)
    batch = source_from_ids([src_ids], EOS_ID, PAD_ID).to(translator.device) if source is not None else None
    read = torch.tensor([[BOS_ID, *ids]], device=translator.device)
    features, _ = translator.model.advance(read, translator.model.start(batch))
    log_probs = translator.model.head.log_probs(features[0, -1:])[0].float()
    best, tokens = log_probs.topk(min(num_choices, log_probs.shape[0]))
    form = translator.detokenizer

    def text(id: int) -> str:
        token = spell_one(form.token_bytes[id])
        return form.space_between(prefix, token) + (token.removesuffix(" ") if form.space_after_words else token)

    return [
        {
            "id": id, "text": "" if id == EOS_ID else text(id), "log_prob": max(value, -1e9),
            "probability": math.exp(value), "end": id == EOS_ID,
        }
        for id, value in zip(tokens.tolist(), best.tolist(), strict=True)
    ]  # fmt: skip
