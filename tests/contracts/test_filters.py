"""Does every filter treat each row alone, and leave the log-probabilities of what it allows as they were?"""

from __future__ import annotations

import pytest
import torch

from heed.decoding.filters import FILTERS, Filter, Forbid, MinTokens

FACTORIES = {"forbid": lambda: Forbid((0, 1, 3)), "min_tokens": lambda: MinTokens(min_tokens=2, eos_id=2)}
every_filter = pytest.mark.parametrize("name", FACTORIES)


def rows(num_rows: int) -> torch.Tensor:
    """Log-probabilities of a dozen tokens."""
    torch.manual_seed(num_rows)
    return torch.randn(num_rows, 12).log_softmax(-1)


def test_every_filter_of_the_registry_is_examined() -> None:
    assert FACTORIES.keys() == FILTERS.keys()
    assert all(type(factory()) is FILTERS[name] for name, factory in FACTORIES.items())


@every_filter
@pytest.mark.parametrize("num_tokens", [0, 2])
def test_a_filter_forbids_some_tokens_and_leaves_the_others(name: str, num_tokens: int) -> None:
    before = rows(3)
    rule: Filter = FACTORIES[name]()
    after = rule(before.clone(), num_tokens)
    assert ((after == before) | (after == float("-inf"))).all()
    assert (after > float("-inf")).any(dim=-1).all(), "something is always possible"


@every_filter
def test_a_filter_does_not_look_at_neighbours(name: str) -> None:
    before = rows(3)
    rule: Filter = FACTORIES[name]()
    together = rule(before.clone(), 0)
    alone = torch.cat([rule(before[row : row + 1].clone(), 0) for row in range(3)])
    assert together.equal(alone)
