"""Which format of run folders does this heed read and write?

One number for a whole run folder: it stands in recipe.toml, in the weights' header and in each checkpoint's manifest.
It grows when an older heed would read the folder wrongly; a folder of every earlier format is read for ever.
"""

from __future__ import annotations

from pathlib import Path

from heed.core.errors import DataError

FORMAT = 1


class NewerFormatError(DataError):
    """Something was written by a newer heed: it is whole, and not for this one to judge. Exit code 65."""


def require_format(found: object, what: str | Path) -> None:
    """Raise NewerFormatError for a format after this heed's, and DataError for what is no format at all."""
    if isinstance(found, bool) or not isinstance(found, int) or found < 1:
        raise DataError(f"{what}: its format is {found!r}, which is no format of heed's (1 to {FORMAT}).")
    if found > FORMAT:
        raise NewerFormatError(
            f"{what} has format {found}, and this heed reads formats up to {FORMAT}: a newer heed wrote it. "
            "Update heed, then try again."
        )
