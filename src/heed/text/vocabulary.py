"""Vocabulary: the pieces of a tokenizer and their ids.

Every vocabulary starts with the same four special pieces. They are events, not text: a tokenizer never produces
`pad_id`, `bos_id` or `eos_id` from text. Nor does it produce a *tag*, a piece before a source that marks its origin
(`<bt>`) or its target language (`<2de>`); tags are the last pieces.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable
from functools import cached_property
from typing import Any, ClassVar

from heed.core.errors import DataError
from heed.core.json_text import parse_json

SPECIAL_PIECES = ("<pad>", "<s>", "</s>", "<unk>")
_TAG = re.compile(r"<([A-Za-z0-9][A-Za-z0-9_-]*)>")


def spelled_tag(name: str) -> str:
    """The piece of a tag: `<bt>` for `bt`. Raises DataError for an invalid name."""
    piece = f"<{name}>"
    if _TAG.fullmatch(piece) is None or piece in SPECIAL_PIECES:
        raise DataError(
            f"{name!r:.60} is not a valid tag. A tag consists of letters, digits, - and _, starts with a letter or a "
            "digit, and is not pad, s or unk."
        )
    return piece


class Vocabulary:
    """The pieces of a tokenizer, numbered from 0: the special ones, those of text in the given order, the tags.

    Raises DataError for a piece that occurs twice or equals a special one, and for an invalid tag.
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
            raise DataError(f"the vocabulary has the piece {piece!r} {count} times; each piece must be unique.")

    def __len__(self) -> int:
        return len(self.pieces)

    def piece(self, id: int) -> str:
        """The piece with this id. Raises IndexError if there is none."""
        return self.pieces[id]

    def id(self, piece: str) -> int:
        """The id of a piece; `unk_id` if the vocabulary does not have it."""
        return self._ids.get(piece, self.unk_id)

    @cached_property
    def tag_ids(self) -> dict[str, int]:
        """The id of each tag by its name."""
        first = len(self.pieces) - len(self.tags)
        return {name: first + place for place, name in enumerate(self.tags)}

    @cached_property
    def sha256(self) -> str:
        """A fingerprint of all pieces in order, since ids of one vocabulary are meaningless in another."""
        return hashlib.sha256(json.dumps(self.pieces).encode()).hexdigest()


PAD_ID, BOS_ID, EOS_ID, UNK_ID = Vocabulary.pad_id, Vocabulary.bos_id, Vocabulary.eos_id, Vocabulary.unk_id

VERSION = 1
"""Of the file format of all kinds that have no number of their own."""


def dump_pieces(kind: str, vocabulary: Vocabulary, version: int = VERSION) -> str:
    """The text of `tokenizer.json` for a tokenizer that is only a list of pieces.

        {"heed": {"tokenizer": "word", "version": 1}, "pieces": ["the", "a", ...], "tags": ["2de"]}

    The pieces are in the order of their ids, without the special ones; `tags` is there only if there are any.
    """
    header = {"tokenizer": kind, "version": version}
    tags = {"tags": vocabulary.tags} if vocabulary.tags else {}
    document = {"heed": header, "pieces": vocabulary.text_pieces, **tags}
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def load_pieces(text: str, kind: str) -> tuple[list[str], list[str]]:
    """The pieces and the tags in a file of this kind. Raises DataError for any other kind or version."""
    pieces, tags, _ = load_versioned_pieces(text, kind, VERSION)
    return pieces, tags


def load_versioned_pieces(text: str, kind: str, latest: int) -> tuple[list[str], list[str], int]:
    """As `load_pieces`, and the version of the file, which is at most `latest`."""
    document = parse_json(text)
    headers = [{"tokenizer": kind, "version": version} for version in range(1, latest + 1)]
    if document.get("heed") not in headers:
        raise DataError(f"its header is {document.get('heed')}, but this version of heed reads {headers[-1]}.")
    return _texts(document, "pieces", None), _texts(document, "tags", []), document["heed"]["version"]


def _texts(document: dict[str, Any], key: str, otherwise: list[str] | None) -> list[str]:
    texts = document.get(key, otherwise)
    if not isinstance(texts, list) or not all(isinstance(text, str) and text for text in texts):
        raise DataError(f"its {key!r} is not a list of strings.")
    return texts
