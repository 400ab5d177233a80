"""How is a tokenizer that is nothing but a list of pieces written to `tokenizer.json`?

    {"heed": {"tokenizer": "word", "version": 1}, "pieces": ["the", "a", ...]}

The pieces stand in the order of their ids, without the special ones. Where there are tags, `"tags": ["2de"]` has their
names.
"""

from __future__ import annotations

import json
from typing import Any

from heed.core.errors import DataError
from heed.text.vocabulary import Vocabulary

VERSION = 1


def dump_pieces(kind: str, vocabulary: Vocabulary) -> str:
    """The text of the file."""
    header = {"tokenizer": kind, "version": VERSION}
    tags = {"tags": vocabulary.tags} if vocabulary.tags else {}
    document = {"heed": header, "pieces": vocabulary.text_pieces, **tags}
    return json.dumps(document, ensure_ascii=False, indent=1) + "\n"


def load_pieces(text: str, kind: str) -> tuple[list[str], list[str]]:
    """The pieces and the tags in the text of a file. Raises DataError when it is none of this kind and version."""
    document = json.loads(text)
    header = {"tokenizer": kind, "version": VERSION}
    if document.get("heed") != header:
        raise DataError(f"its header is {document.get('heed')}, this heed reads {header}.")
    return _texts(document, "pieces", None), _texts(document, "tags", [])


def _texts(document: dict[str, Any], key: str, otherwise: list[str] | None) -> list[str]:
    found = document.get(key, otherwise)
    if not isinstance(found, list) or not all(isinstance(piece, str) and piece for piece in found):
        raise DataError(f"its {key!r} are not a list of texts.")
    return found
