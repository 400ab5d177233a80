"""How is a tokenizer that is nothing but a list of pieces written to `tokenizer.json`?

    {"heed": {"tokenizer": "word", "version": 1}, "pieces": ["the", "a", ...]}

The pieces stand in the order of their ids, without the special ones.
"""

from __future__ import annotations

import json

from heed.core.errors import DataError
from heed.text.vocabulary import SPECIAL_PIECES, Vocabulary

VERSION = 1


def dump_pieces(kind: str, vocabulary: Vocabulary) -> str:
    """The text of the file."""
    header = {"tokenizer": kind, "version": VERSION}
    pieces = vocabulary.pieces[len(SPECIAL_PIECES) :]
    return json.dumps({"heed": header, "pieces": pieces}, ensure_ascii=False, indent=1) + "\n"


def load_pieces(text: str, kind: str) -> list[str]:
    """The pieces in the text of a file. Raises DataError when it is not a file of this kind and version."""
    document = json.loads(text)
    header = {"tokenizer": kind, "version": VERSION}
    if document.get("heed") != header:
        raise DataError(f"its header is {document.get('heed')}, this heed reads {header}.")
    pieces = document.get("pieces")
    if not isinstance(pieces, list) or not all(isinstance(piece, str) and piece for piece in pieces):
        raise DataError("its 'pieces' are not a list of texts.")
    return pieces
