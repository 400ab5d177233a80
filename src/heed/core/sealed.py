"""Sealed JSON: an object that ends with the SHA-256 of its other entries.

If the seal fits, the object says truly which format it has, whatever that format adds to it. Otherwise it is damaged.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from heed.core.errors import DataError
from heed.core.json_text import parse_json


def sealed(entries: Mapping[str, Any]) -> str:
    """The JSON of an object with its seal."""
    return json.dumps({**entries, "seal": seal_of(entries)}, indent=1)


def unsealed(content: bytes, name: str) -> dict[str, Any]:
    """The entries of a sealed object. Raises DataError, which names the file, for anything else."""
    try:
        entries = parse_json(content)
    except ValueError as error:
        raise DataError(f"{name} is not JSON") from error
    seal = entries.pop("seal", None) if isinstance(entries, dict) else None
    if seal != seal_of(entries):
        raise DataError(f"{name} does not match its seal")
    return dict(entries)


def seal_of(entries: Any) -> str:
    """Never changes, so that every version computes the same seal."""
    return hashlib.sha256(json.dumps(entries, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
