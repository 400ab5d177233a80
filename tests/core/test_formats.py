"""Formats of run folders: newer ones, and values that are not a format."""

from __future__ import annotations

import pytest

from heed.core.errors import DataError
from heed.core.formats import FORMAT, NewerFormatError, require_format


def test_every_format_up_to_the_current_one_is_read() -> None:
    for number in range(1, FORMAT + 1):
        require_format(number, "run")


def test_a_newer_format_asks_for_a_newer_heed() -> None:
    with pytest.raises(NewerFormatError) as refused:
        require_format(FORMAT + 1, "runs/a/recipe.toml")
    assert str(refused.value) == (
        f"runs/a/recipe.toml has format {FORMAT + 1}, written by a newer version of heed; this one reads formats "
        f"up to {FORMAT}. Update heed, then try again."
    )
    assert refused.value.exit_code == 65


@pytest.mark.parametrize("nonsense", [0, -1, None, "1", 1.0, True, [1]])
def test_anything_else_is_refused(nonsense: object) -> None:
    with pytest.raises(DataError, match="the format must be a whole number from 1") as refused:
        require_format(nonsense, "run")
    assert not isinstance(refused.value, NewerFormatError)
