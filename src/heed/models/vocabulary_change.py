"""Transfer of a trained model to another vocabulary.

A piece that both vocabularies have keeps its rows of the embedding and of the output. A new one begins with the mean
of the old pieces that spell it (Gee et al. 2022, "Fast Vocabulary Transfer"), so a model of a related language knows
something of it at once; where nothing spells it, with the mean of all pieces of text. The other weights stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from heed.core.errors import UsageError
from heed.models import build_model
from heed.nn.contract import Vocabularies
from heed.nn.weight_file import Shapes, shapes_of
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
    """For each new piece the ids of the old pieces that it begins with: itself, what spells it, or all of a kind."""
    same = same_pieces(new, old)
    text = list(range(len(SPECIAL_PIECES), len(SPECIAL_PIECES) + len(old.vocabulary.text_pieces)))
    tags = list(old.vocabulary.tag_ids.values()) or text
    first_tag = len(new.vocabulary) - len(new.vocabulary.tags)
    single = {data: id for id, data in zip(text, old.bytes_of(text), strict=True) if len(data) == 1}
    found = []
    for id, data in enumerate(_bytes_of(new)):
        otherwise = tags if id >= first_tag else text
        found.append([same[id]] if id in same else _spelled(data, old, single) or otherwise)
    return found


def same_pieces(new: Tokenizer, old: Tokenizer) -> dict[int, int]:
    """By its id in the new vocabulary, the old id of each piece that both have.

    Pieces of text are the same when they are written alike and stand for the same bytes: byte-level vocabularies write
    the byte 0xE9 as é, and a word of a list of words has a space behind it.
    """
    known = {piece: id for id, piece in enumerate(old.vocabulary.pieces)}
    theirs, text = _bytes_of(old), {*new.vocabulary.text_pieces}
    return {
        id: known[piece]
        for id, (piece, data) in enumerate(zip(new.vocabulary.pieces, _bytes_of(new), strict=True))
        if piece in known and (piece not in text or theirs[known[piece]] == data)
    }


def _bytes_of(tokenizer: Tokenizer) -> list[bytes]:
    return tokenizer.bytes_of(range(len(tokenizer.vocabulary)))


def _spelled(data: bytes, old: Tokenizer, single: Mapping[bytes, int]) -> list[int]:
    """The old pieces of some text, or of single bytes where it is no text; none where there are none."""
    try:
        piece = data.decode()
    except UnicodeDecodeError:
        return [single[byte] for byte in (data[i : i + 1] for i in range(len(data))) if byte in single]
    if piece.endswith(" "):  # a word of a list of words has its space behind it, others have it in front
        piece = " " + piece[:-1]
    return [id for id in old.encode([piece])[0] if id != old.vocabulary.unk_id]


def require_exchangeable(config: Any) -> None:
    """Raise UsageError for an adaptive softmax, whose clusters are of the most frequent words of its own vocabulary."""
    if getattr(config, "cutoffs", ()):
        raise UsageError(
            "an adaptive softmax (model.cutoffs) cannot change its vocabulary: keep it, or train a new model."
        )


def vocabulary_weights(config: Any, one_vocabulary: bool) -> dict[str, str]:
    """The weights that have a row for each piece, and of which side: seen by making the model with other sizes."""
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
    """Row i is the mean of the old rows `spelled[i]`: of one row, that row exactly."""
    flat = old if old.dim() == 2 else old[:, None]
    ids = torch.tensor([id for row in spelled for id in row])
    lengths = torch.tensor([0, *(len(row) for row in spelled)])
    rows = torch.nn.functional.embedding_bag(ids, flat, lengths.cumsum(0)[:-1], mode="mean")
    return rows.view(len(spelled), *old.shape[1:])
