"""Manifest of a checkpoint, which detects changed files and formats of newer versions of heed.

`manifest.json` lists the SHA-256 of every file, and ends with a seal: the SHA-256 of its other entries. The format that
a manifest with a valid seal declares can be trusted, whatever entries that format adds; any other manifest is damaged.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from heed.core.errors import DataError
from heed.core.files import format_bytes, is_plain_file, sha256_file
from heed.core.formats import FORMAT, require_format

MANIFEST = "manifest.json"
MAX_BYTES = 1_000_000
"""Largest size of a JSON file in a checkpoint."""


class Manifest(BaseModel):
    """The entries of `manifest.json`, without the seal."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    format: int
    made_with: dict[str, str]
    sha256: dict[str, Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]]


def write_manifest(folder: Path, names: Sequence[str], made_with: Mapping[str, str]) -> None:
    """Write the manifest of these files of a folder. Raises OSError."""
    hashes = {name: sha256_file(folder / name) for name in names}
    entries = Manifest(format=FORMAT, made_with=dict(made_with), sha256=hashes).model_dump()
    text = json.dumps({**entries, "seal": _seal(entries)}, indent=1)
    (folder / MANIFEST).write_text(text, encoding="utf-8")


def checked_manifest(folder: Path, names: Sequence[str]) -> Manifest:
    """Read the manifest, and verify that it lists exactly these files and that each matches its hash.

    Raises:
        DataError: The folder is damaged; the message names the damage.
        NewerFormatError: A newer version of heed wrote it.
    """
    manifest = _read(folder)
    if different := sorted(manifest.sha256.keys() ^ set(names)):
        raise DataError(f"{MANIFEST} and the format differ on the file {different[0]!r:.100}")
    for name in names:
        require_plain(folder / name)
        if sha256_file(folder / name) != manifest.sha256[name]:
            raise DataError(f"{name} does not match its SHA-256")
    return manifest


def _read(folder: Path) -> Manifest:
    try:
        entries = json.loads(read_small(folder / MANIFEST))
        seal = entries.pop("seal", None) if isinstance(entries, dict) else None
        if seal != _seal(entries):
            raise DataError(f"{MANIFEST} does not match its seal")
        require_format(entries.get("format"), f"checkpoint {folder.name}")
        return Manifest.model_validate(entries)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise DataError(f"{MANIFEST}: {'.'.join(map(str, first['loc']))!r:.100}: {first['msg']}") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{MANIFEST} is not JSON") from error


def _seal(entries: Any) -> str:
    """The seal, which is computed in the same way for all formats."""
    return hashlib.sha256(json.dumps(entries, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def read_small(path: Path) -> bytes:
    """Read a JSON file. Raises DataError if it is missing, not a regular file, or larger than `MAX_BYTES`."""
    require_plain(path)
    with path.open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise DataError(f"{path.name} is larger than {format_bytes(MAX_BYTES)}")
    return content


def require_plain(path: Path) -> None:
    """Raise DataError unless the path is a regular file: not a link, a pipe or a device."""
    if not is_plain_file(path):
        is_there = path.is_symlink() or path.exists()
        raise DataError(f"{path.name} is {'not a regular file' if is_there else 'missing'}")
