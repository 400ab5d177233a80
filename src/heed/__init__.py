"""heed trains, evaluates, explains and serves your own sequence models.

import heed
translator = heed.load("runs/en-de")
translator.translate(["A dog runs."])
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heed.api import load, train

__all__ = ["__version__", "load", "train"]


def __getattr__(name: str) -> object:
    """Import on first use, so that `import heed` and `heed --help` stay quick."""
    if name == "__version__":
        from importlib.metadata import version

        return version("heed")
    if name in ("load", "train"):
        import heed.api

        return getattr(heed.api, name)
    raise AttributeError(f"module 'heed' has no attribute {name!r}")
