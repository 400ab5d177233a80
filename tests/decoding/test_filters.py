"""Do the filters forbid what they should, and only as long as they should?"""

from __future__ import annotations

import torch

from heed.decoding.filters import Forbid, MinTokens

NEVER = float("-inf")


def test_forbidden_tokens_become_impossible() -> None:
    assert Forbid((3, 1))(torch.full((2, 4), -1.0), 5).tolist() == [[-1.0, NEVER, -1.0, NEVER]] * 2


def test_the_end_is_impossible_until_there_are_enough_tokens() -> None:
    rule = MinTokens(min_tokens=2, eos_id=0)
    found = [rule(torch.full((1, 2), -1.0), num_tokens).tolist() for num_tokens in (0, 1, 2, 3)]
    assert found == [[[NEVER, -1.0]]] * 2 + [[[-1.0, -1.0]]] * 2
