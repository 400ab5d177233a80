"""The fast top-k equals `torch.topk`."""

from __future__ import annotations

import pytest
import torch

from heed.decoding.sampling import GROUP_SIZE, top_k


@pytest.mark.parametrize("k", [1, 2, 5, 10])
@pytest.mark.parametrize(
    "size", [10, 4 * GROUP_SIZE - 1, 4 * GROUP_SIZE, 4 * GROUP_SIZE + 1, 40 * GROUP_SIZE + 63, 8000]
)
def test_values_and_indices_match_torch(size: int, k: int) -> None:
    torch.manual_seed(size)
    scores = torch.randn(5, size)
    values, index = top_k(scores, k)
    assert values.equal(scores.topk(k).values)
    assert scores.gather(1, index).equal(values)
    assert all(len(set(row)) == k for row in index.tolist()), "no index twice"


def test_ties_and_impossible_scores_match_torch() -> None:
    scores = torch.full((2, 50 * GROUP_SIZE), float("-inf"))
    scores[0, -3:] = 1.0
    scores[1, ::GROUP_SIZE] = 2.0
    values, index = top_k(scores, 5)
    assert values.equal(scores.topk(5).values)
    assert scores.gather(1, index).equal(values)
    assert all(len(set(row)) == 5 for row in index.tolist())


def test_the_largest_values_may_be_in_one_group_or_at_the_end() -> None:
    for begin in (0, GROUP_SIZE, 20 * GROUP_SIZE):  # the last begins after the last whole group
        scores = torch.randn(3, 20 * GROUP_SIZE + 7)
        scores[:, begin : begin + 5] += 100
        values, index = top_k(scores, 5)
        assert values.equal(scores.topk(5).values)
        assert (index // GROUP_SIZE).unique().tolist() == [begin // GROUP_SIZE]
