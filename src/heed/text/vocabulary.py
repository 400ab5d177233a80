"""Which number stands for which piece of text?

Every vocabulary begins with the same four special pieces. They stand for events, not for text: a tokenizer never
makes `pad_id`, `bos_id` or `eos_id` out of what somebody wrote. Nor does it make a *tag*, the piece before a source
that says where it comes from (`<bt>`) or what it shall become (`<2de>`); tags are the last pieces.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable
from functools import cached_property
from typing import ClassVar

from heed.core.errors import DataError

SPECIAL_PIECES = ("<pad>", "<s>", "</s>", "<unk>")
_TAG = re.compile(r"<([A-Za-z0-9][A-Za-z0-9_-]*)>")


def spelled_tag(name: str) -> str:
    """The piece of a tag: `<bt>` for `bt`. Raises DataError for a name that is none."""
    piece = f"<{name}>"
    if _TAG.fullmatch(piece) is None or piece in SPECIAL_PIECES:
        raise DataError(
            f"{name!r:.60} is no name of a tag: one is letters and digits, behind the first also - and _, and none "
            "of pad, s, unk."
        )
    return piece


class Vocabulary:
    """The pieces of a tokenizer, numbered from 0: the special ones, those of the text in the order given, the tags.

    Raises DataError when a piece is there twice or is spelled like a special one, and for a tag that has no name.
    """

    pad_id: ClassVar[int] = 0
    bos_id: ClassVar[int] = 1
    eos_id: ClassVar[int] = 2
    unk_id: ClassVar[int] = 3

    def __init__(self, text_pieces: Iterable[str], tags: Iterable[str] = ()) -> None:
        self.text_pieces: tuple[str, ...] = tuple(text_pieces)
        self.tags: tuple[str, ...] = tuple(tags)
        """Names, without the angle brackets."""
        self.pieces: tuple[str, ...] = (*SPECIAL_PIECES, *self.text_pieces, *map(spelled_tag, self.tags))
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
    def tag_ids(self) -> dict[str, int]:
        """The id of each tag by its name."""
        first = len(self.pieces) - len(self.tags)
        return {name: first + place for place, name in enumerate(self.tags)}

    @cached_property
    def sha256(self) -> str:
        """A fingerprint of all pieces in order: ids written with one vocabulary mean nothing in another."""
        return hashlib.sha256(json.dumps(self.pieces).encode()).hexdigest()


PAD_ID, BOS_ID, EOS_ID, UNK_ID = Vocabulary.pad_id, Vocabulary.bos_id, Vocabulary.eos_id, Vocabulary.unk_id
