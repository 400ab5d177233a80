"""Laws of a vocabulary and its merges, checked in a `tokenizer.json` before the library reads it.

The library takes a file in which two pieces share an id or a merge occurs many times: encoding and decoding then
disagree, and memory grows with the repetitions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

from heed.core.errors import DataError


def require_unambiguous(model: object) -> None:
    """Raise DataError unless the ids are those of distinct pieces, without gaps, and no merge is repeated.

    `model` is the entry of this name. What has another form altogether is left to the library, which refuses it.
    """
    if not isinstance(model, dict):
        return
    vocab, merges = model.get("vocab"), model.get("merges")
    if isinstance(vocab, dict):
        _require_consecutive(vocab)
    elif isinstance(vocab, list):
        _refuse_repeated([_first(entry) for entry in vocab], "piece")
    if isinstance(merges, list):
        _refuse_repeated([_spelled(merge) for merge in merges], "merge")


def _require_consecutive(vocab: dict[str, Any]) -> None:
    ids = [*vocab.values()]
    if not all(type(id) is int for id in ids):
        return
    pieces: dict[int, str] = {}
    for piece, id in vocab.items():
        if id in pieces:
            raise DataError(f"the pieces {pieces[id]!r:.60} and {piece!r:.60} have the same id {id}.")
        if not 0 <= id < len(ids):
            raise DataError(f"the piece {piece!r:.60} has the id {id}, but those of {len(ids):,} pieces end at "
                            f"{len(ids) - 1}.")  # fmt: skip
        pieces[id] = piece


def _refuse_repeated(items: Sequence[Hashable], what: str) -> None:
    if len(set(items)) < len(items):
        [(item, number)] = Counter(items).most_common(1)
        raise DataError(f"the {what} {item!r:.60} occurs {number:,} times; each must be unique.")


def _first(entry: Any) -> Hashable:
    """The piece of an entry of Unigram's vocabulary: (piece, score)."""
    return str(entry[0]) if isinstance(entry, list) and entry else str(entry)


def _spelled(merge: Any) -> str:
    """A merge as older files write it; in later ones it is a list of two pieces, which hold no blank."""
    return " ".join(map(str, merge)) if isinstance(merge, list) else str(merge)
