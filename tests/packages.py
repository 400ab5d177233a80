"""Packed documents and other zip archives of tests."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping


def packed(parts: Mapping[str, str | bytes]) -> bytes:
    """An archive with these parts, in this order."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return out.getvalue()
