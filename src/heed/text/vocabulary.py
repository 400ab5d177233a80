"""Which number stands for which piece of text?

Every vocabulary begins with the same four special pieces. They stand for events, not for text: a tokenizer never
makes `pad_id`, `bos_id` or `eos_id` out of what somebody wrote.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable
from functools import cached_property
from typing import ClassVar

from heed.core.errors import DataError

SPECIAL_PIECES = ("<pad>", "<s>", "</s>", "<unk>")


class Vocabulary:
    """The pieces of a tokenizer, numbered from 0: the special ones, then those of the text in the order given.

    Raises DataError when a piece is there twice or is spelled like a special one.
    """

    pad_id: ClassVar[int] = 0
    bos_id: ClassVar[int] = 1
    eos_id: ClassVar[int] = 2
    unk_id: ClassVar[int] = 3

    def __init__(self, text_pieces: Iterable[str]) -> None:
        self.pieces: tuple[str, ...] = (*SPECIAL_PIECES, *text_pieces)
        self._ids = {piece: id for id, piece in enumerate(self.pieces)}
        if len(self._ids) < len(self.pieces):
            [(piece, count)] = Counter(self.pieces).most_common(1)
            raise DataError(f"the vocabulary has the piece {piece!r} {count} times, each piece may be there once.")

    def __len__(self) -> int:
        return len(self.pieces)

    def piece(self, id: int) -> str:
        """The piece with this id. Raises IndexError when there is none."""
        return self.pieces[id]

    def id(self, piece: str) -> int:
        """The id of a piece; `unk_id` when the vocabulary does not have it."""
        return self._ids.get(piece, self.unk_id)

    @cached_property
    def sha256(self) -> str:
        """A fingerprint of all pieces in order: ids written with one vocabulary mean nothing in another."""
        return hashlib.sha256(json.dumps(self.pieces).encode()).hexdigest()
