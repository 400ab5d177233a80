"""Does every filter treat each row alone, and leave the log-probabilities of what it allows as they were?"""

from __future__ import annotations

import pytest
import torch
from scripted import FixedRows

from heed.decoding.ban import Ban, WithoutBanned
from heed.decoding.filters import FILTERS, Filter, Forbid, MinTokens, NoRepeat

SPELLED = [b"", b"", b"", b"", *(bytes([letter]) for letter in b"abcdefg ")]
FACTORIES = {
    "forbid": lambda: Forbid((0, 1, 3)),
    "min_tokens": lambda: MinTokens(minima=[2, 0, 3], eos_id=2),
    "no_repeat": lambda: NoRepeat(2),
    "ban": lambda: WithoutBanned(Ban(("ab", "c d"), SPELLED, eos_id=2), limits=[9, 5, 4]),
}
HISTORIES = [[(), (), ()], [(4, 5, 4), (11, 4, 5), (6, 11, 7)]]
every_filter = pytest.mark.parametrize("name", FACTORIES)
every_history = pytest.mark.parametrize("tokens", HISTORIES, ids=["at first", "later"])


def rows(num_rows: int) -> torch.Tensor:
    """Log-probabilities of a dozen tokens."""
    torch.manual_seed(num_rows)
    return torch.randn(num_rows, 12).log_softmax(-1)


def test_every_filter_of_the_registry_is_examined() -> None:
    assert FACTORIES.keys() == FILTERS.keys()
    assert all(type(factory()) is FILTERS[name] for name, factory in FACTORIES.items())


@every_filter
def test_every_filter_forbids_something_somewhere(name: str) -> None:
    found = [FACTORIES[name]()(rows(3), FixedRows(tokens)) for tokens in HISTORIES]
    assert any((after == float("-inf")).any() for after in found)


@every_filter
@every_history
def test_a_filter_forbids_some_tokens_and_leaves_the_others(name: str, tokens: list[tuple[int, ...]]) -> None:
    before = rows(3)
    rule: Filter = FACTORIES[name]()
    after = rule(before.clone(), FixedRows(tokens))
    assert ((after == before) | (after == float("-inf"))).all()
    assert (after > float("-inf")).any(dim=-1).all(), "something is always possible"


@every_filter
@every_history
def test_a_filter_does_not_look_at_neighbours(name: str, tokens: list[tuple[int, ...]]) -> None:
    before = rows(3)
    rule: Filter = FACTORIES[name]()
    together = rule(before.clone(), FixedRows(tokens))
    alone = [rule(before[row : row + 1].clone(), FixedRows([tokens[row]], [row])) for row in range(3)]
    assert together.equal(torch.cat(alone))
