"""Manifest of a checkpoint, which detects changed files and formats of newer versions of heed.

`manifest.json` lists the SHA-256 of every file, and is sealed (`core/sealed.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError

from heed.core.errors import DataError, MissingInputError
from heed.core.files import sha256_file
from heed.core.formats import FORMAT, require_format
from heed.core.own_files import own_path, read_own
from heed.core.sealed import sealed, unsealed

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
    (folder / MANIFEST).write_text(sealed(entries), encoding="utf-8")


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
        if sha256_file(_own(folder, name)) != manifest.sha256[name]:
            raise DataError(f"{name} does not match its SHA-256")
    return manifest


def _own(folder: Path, name: str) -> Path:
    try:
        return own_path(folder, name)
    except MissingInputError as error:
        raise DataError(f"{name} is missing") from error


def _read(folder: Path) -> Manifest:
    _own(folder, MANIFEST)
    entries = unsealed(read_own(folder, MANIFEST, MAX_BYTES), MANIFEST)
    require_format(entries.get("format"), f"checkpoint {folder.name}")
    try:
        return Manifest.model_validate(entries)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise DataError(f"{MANIFEST}: {'.'.join(map(str, first['loc']))!r:.100}: {first['msg']}") from error
