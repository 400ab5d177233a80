"""Version of the format of run folders.

One number for a whole run folder, in recipe.toml, in the header of the weights and in the manifest of each checkpoint.
It is increased when an older heed would read the folder wrongly. Folders of every earlier format can be read.
"""

from __future__ import annotations

from pathlib import Path

from heed.core.errors import DataError

FORMAT = 1


class NewerFormatError(DataError):
    """The file comes from a newer version of heed, so this one cannot judge it. Exit code 65."""


def require_format(version: object, what: str | Path) -> None:
    """Raise NewerFormatError for a format later than `FORMAT`, and DataError for anything that is not a format."""
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise DataError(f"{what}: the format must be a whole number from 1 to {FORMAT}, got {version!r}.")
    if version > FORMAT:
        raise NewerFormatError(
            f"{what} has format {version}, written by a newer version of heed; this one reads formats up to {FORMAT}. "
            "Update heed, then try again."
        )
