"""Arguments that the methods of predictors refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from heed.core.errors import UsageError


def refuses_wrong_tops(method: Callable[..., Any], given: Any) -> None:
    """Assert that a method refuses each `top` that is not a number of answers."""
    for top in (0, -1, None, "2", 1.5, True):
        with pytest.raises(UsageError, match=r"top must be at least 1 and a whole number, got "):
            method(given, top)


def refuses_what_is_no_text(method: Callable[[Any], Any]) -> None:
    """Assert that a method of a single text refuses everything else."""
    for wrong in (None, 3, b"a", ["a"]):
        with pytest.raises(UsageError, match=f"expected a text, got {type(wrong).__name__}"):
            method(wrong)
