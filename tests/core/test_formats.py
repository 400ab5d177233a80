"""Is the work of a newer heed told from damage, and from nonsense?"""

from __future__ import annotations

import pytest

from heed.core.errors import DataError
from heed.core.formats import FORMAT, NewerFormatError, require_format


def test_every_format_up_to_this_heeds_is_read() -> None:
    for number in range(1, FORMAT + 1):
        require_format(number, "run")


def test_a_newer_format_asks_for_a_newer_heed() -> None:
    with pytest.raises(NewerFormatError) as refused:
        require_format(FORMAT + 1, "runs/a/recipe.toml")
    assert str(refused.value) == (
        f"runs/a/recipe.toml has format {FORMAT + 1}, and this heed reads formats up to {FORMAT}: "
        "a newer heed wrote it. Update heed, then try again."
    )
    assert refused.value.exit_code == 65


@pytest.mark.parametrize("nonsense", [0, -1, None, "1", 1.0, True, [1]])
def test_what_is_no_format_is_refused(nonsense: object) -> None:
    with pytest.raises(DataError, match="which is no format of heed's") as refused:
        require_format(nonsense, "run")
    assert not isinstance(refused.value, NewerFormatError)
