"""Does the fast search for the k largest find what `torch.topk` finds?"""

from __future__ import annotations

import pytest
import torch

from heed.decoding.topk import GROUP_SIZE, top_k


@pytest.mark.parametrize("k", [1, 2, 5, 10])
@pytest.mark.parametrize(
    "size", [10, 4 * GROUP_SIZE - 1, 4 * GROUP_SIZE, 4 * GROUP_SIZE + 1, 40 * GROUP_SIZE + 63, 8000]
)
def test_values_are_those_of_torch_at_their_places(size: int, k: int) -> None:
    torch.manual_seed(size)
    scores = torch.randn(5, size)
    values, index = top_k(scores, k)
    assert values.equal(scores.topk(k).values)
    assert scores.gather(1, index).equal(values)
    assert all(len(set(row)) == k for row in index.tolist()), "no place twice"


def test_equal_and_impossible_scores_are_no_trouble() -> None:
    scores = torch.full((2, 50 * GROUP_SIZE), float("-inf"))
    scores[0, -3:] = 1.0
    scores[1, ::GROUP_SIZE] = 2.0
    values, index = top_k(scores, 5)
    assert values.equal(scores.topk(5).values)
    assert scores.gather(1, index).equal(values)
    assert all(len(set(row)) == 5 for row in index.tolist())


def test_the_largest_may_all_stand_in_one_group_or_at_the_end() -> None:
    for begin in (0, GROUP_SIZE, 20 * GROUP_SIZE):  # the last is behind the last whole group
        scores = torch.randn(3, 20 * GROUP_SIZE + 7)
        scores[:, begin : begin + 5] += 100
        values, index = top_k(scores, 5)
        assert values.equal(scores.topk(5).values)
        assert (index // GROUP_SIZE).unique().tolist() == [begin // GROUP_SIZE]
