"""Transfer of a trained model to another vocabulary.

A piece of both vocabularies keeps its rows of the embedding and of the output. A new piece starts as the mean of the
old pieces that spell it (Gee et al. 2022, "Fast Vocabulary Transfer"), or of all pieces of text if none spell it. So a
model of a related language knows something of it from the start. All other weights are unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from heed.core.errors import UsageError
from heed.core.weight_file import Shapes
from heed.models import build_model
from heed.nn.contract import Vocabularies
from heed.nn.weight_file import shapes_of
from heed.text.tokenizers import Tokenizer
from heed.text.vocabulary import SPECIAL_PIECES

Sides = Mapping[str, Tokenizer]
"""The tokenizers of a model: `src` and `tgt`, or `tgt` alone."""


def with_vocabularies(weights: Mapping[str, Tensor], config: Any, old: Sides, new: Sides) -> dict[str, Tensor]:
    """The weights of a model of this config, with a row for each piece of the new vocabularies."""
    spelled = {side: spellings(tokenizer, old[side]) for side, tokenizer in new.items()}
    sides = vocabulary_weights(config, one_vocabulary=_is_one(old) and _is_one(new))
    return {name: _rows(tensor, spelled[sides[name]]) if name in sides else tensor for name, tensor in weights.items()}


def spellings(new: Tokenizer, old: Tokenizer) -> list[list[int]]:
    """The ids of the old pieces whose mean initialises each new piece.

    These are the same piece, else the pieces that spell it, else all pieces of text (for a tag: all tags).
    """
    same = same_pieces(new, old)
    text = list(range(len(SPECIAL_PIECES), len(SPECIAL_PIECES) + len(old.vocabulary.text_pieces)))
    tags = list(old.vocabulary.tag_ids.values()) or text
    first_tag = len(new.vocabulary) - len(new.vocabulary.tags)
    single = {data: id for id, data in zip(text, old.bytes_of(text), strict=True) if len(data) == 1}
    spelled = []
    for id, data in enumerate(_bytes_of(new)):
        otherwise = tags if id >= first_tag else text
        spelled.append([same[id]] if id in same else _spelled(data, old, single) or otherwise)
    return spelled


def same_pieces(new: Tokenizer, old: Tokenizer) -> dict[int, int]:
    """The old id of each piece of both vocabularies, by its new id.

    Pieces of text are the same if they are written alike and represent the same bytes: byte-level vocabularies write
    the byte 0xE9 as é, and a word of a list of words has a space after it.
    """
    old_ids = {piece: id for id, piece in enumerate(old.vocabulary.pieces)}
    old_bytes, text = _bytes_of(old), {*new.vocabulary.text_pieces}
    return {
        id: old_ids[piece]
        for id, (piece, data) in enumerate(zip(new.vocabulary.pieces, _bytes_of(new), strict=True))
        if piece in old_ids and (piece not in text or old_bytes[old_ids[piece]] == data)
    }


def _bytes_of(tokenizer: Tokenizer) -> list[bytes]:
    return tokenizer.bytes_of(range(len(tokenizer.vocabulary)))


def _spelled(data: bytes, old: Tokenizer, single: Mapping[bytes, int]) -> list[int]:
    """The old pieces of a piece's text, or of its single bytes if it is not valid UTF-8."""
    try:
        piece = data.decode()
    except UnicodeDecodeError:
        return [single[byte] for byte in (data[i : i + 1] for i in range(len(data))) if byte in single]
    if piece.endswith(" "):  # words of a list of words have the space after them, other pieces before them
        piece = " " + piece[:-1]
    return [id for id in old.encode([piece])[0] if id != old.vocabulary.unk_id]


def require_exchangeable(config: Any) -> None:
    """Raises UsageError for an adaptive softmax, whose clusters depend on the frequencies of its vocabulary."""
    if getattr(config, "cutoffs", ()):
        raise UsageError(
            "an adaptive softmax (model.cutoffs) cannot change its vocabulary: keep it, or train a new model."
        )


def vocabulary_weights(config: Any, one_vocabulary: bool) -> dict[str, str]:
    """The weights with a row for each piece, and their sides, determined by building models of several sizes."""
    require_exchangeable(config)
    size = 100
    plain, other = _shapes(config, size, size), _shapes(config, size + 1, size + (1 if one_vocabulary else 2))
    return {
        name: "src" if not one_vocabulary and shape[0] == size + 1 else "tgt"
        for name, shape in other.items()
        if shape != plain[name]
    }


def _shapes(config: Any, src_size: int, tgt_size: int) -> Shapes:
    with torch.device("meta"):
        return shapes_of(dict(build_model(config, Vocabularies(src_size, tgt_size)).named_parameters()))


def _is_one(sides: Sides) -> bool:
    return "src" not in sides or sides["src"] is sides["tgt"]


def _rows(old: Tensor, spelled: Sequence[Sequence[int]]) -> Tensor:
    """Row i is the mean of the old rows `spelled[i]`; the mean of one row is exactly that row."""
    flat = old if old.dim() == 2 else old[:, None]
    ids = torch.tensor([id for row in spelled for id in row])
    lengths = torch.tensor([0, *(len(row) for row in spelled)])
    rows = torch.nn.functional.embedding_bag(ids, flat, lengths.cumsum(0)[:-1], mode="mean")
    return rows.view(len(spelled), *old.shape[1:])
