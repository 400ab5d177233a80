"""Do the filters forbid what they should, and only as long as they should?"""

from __future__ import annotations

import random

import torch
from scripted import FixedRows

from heed.decoding.filters import Forbid, MinTokens, NoRepeat

NEVER = float("-inf")


def test_forbidden_tokens_become_impossible() -> None:
    found = Forbid((3, 1))(torch.full((2, 4), -1.0), FixedRows([(0,), (2,)]))
    assert found.tolist() == [[-1.0, NEVER, -1.0, NEVER]] * 2


def test_the_end_is_impossible_until_there_are_enough_tokens() -> None:
    rule = MinTokens(minima=[2], eos_id=0)
    found = [rule(torch.full((1, 2), -1.0), FixedRows([(1,) * length])).tolist() for length in (0, 1, 2, 3)]
    assert found == [[[NEVER, -1.0]]] * 2 + [[[-1.0, -1.0]]] * 2


def test_each_source_has_its_own_least_length() -> None:
    rule = MinTokens(minima=[0, 3, 1], eos_id=0)
    found = rule(torch.full((4, 2), -1.0), FixedRows([(1,)] * 4, sources=[1, 1, 2, 0]))
    assert found[:, 0].tolist() == [NEVER, NEVER, -1.0, -1.0]


def test_a_token_that_would_repeat_a_run_is_impossible() -> None:
    history = (4, 5, 6, 4, 5)
    for size, forbidden in ((1, {4, 5, 6}), (2, {6}), (3, {6}), (4, set()), (9, set())):
        found = NoRepeat(size)(torch.full((1, 8), -1.0), FixedRows([history]))
        assert set((found[0] == NEVER).nonzero().flatten().tolist()) == forbidden


def test_exactly_the_repeating_tokens_are_impossible() -> None:
    dice = random.Random(1)
    seen = 0
    for size in (1, 2, 3):
        histories = [tuple(dice.choices(range(4), k=7)) for _ in range(40)]
        found = NoRepeat(size)(torch.zeros(40, 4), FixedRows(histories))
        for history, row in zip(histories, found.tolist(), strict=True):
            runs = {history[i : i + size] for i in range(len(history) - size + 1)}
            for token in range(4):
                repeats = (*history, token)[-size:] in runs
                seen += repeats
                assert (row[token] == NEVER) == repeats
    assert seen > 20, "or nothing is shown"
