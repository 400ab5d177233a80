"""Solutions of chapter 11: what top-p leaves, and that one pass with a mask is as good as many."""

from __future__ import annotations

import pytest
import torch
from random_models import BOS, model_of, random_rows
from torch import Tensor

from heed.decoding.sampling import RandomDraw


def nucleus(probabilities: Tensor, p: float) -> set[int]:
    """Solution 1: the fewest tokens whose probabilities sum to at least p."""
    kept: set[int] = set()
    for token in probabilities.argsort(descending=True).tolist():
        if sum(float(probabilities[each]) for each in kept) >= p:
            break
        kept.add(token)
    return kept


P = torch.tensor([0.05, 0.4, 0.1, 0.25, 0.2])


@pytest.mark.parametrize("p, left", [(0.3, {1}), (0.6, {1, 3}), (0.7, {1, 3, 4}), (1.0, {0, 1, 2, 3, 4})])
def test_top_p_draws_from_the_nucleus_alone(p: float, left: set[int]) -> None:
    assert nucleus(P, p) == left
    draw = RandomDraw(seed=1, top_p=p)
    drawn = draw(P.log().expand(4000, -1), range(4000), 0)
    assert set(drawn.tolist()) == left
    shares = torch.bincount(drawn, minlength=5) / len(drawn)
    expected = torch.where(torch.tensor([each in left for each in range(5)]), P, 0.0)
    torch.testing.assert_close(shares, expected / expected.sum(), rtol=0, atol=0.03)


def test_a_temperature_near_zero_is_greedy_and_a_high_one_uniform() -> None:
    rows = P.log().expand(4000, -1)
    cold, hot = (RandomDraw(seed=1, temperature=t)(rows, range(4000), 0) for t in (0.02, 1000.0))
    assert set(cold.tolist()) == {1}
    torch.testing.assert_close(torch.bincount(hot) / 4000, torch.full((5,), 0.2), rtol=0, atol=0.03)


@torch.no_grad()
def test_one_masked_pass_gives_the_losses_of_all_prefixes() -> None:
    """Solution 2: a position sees itself and what is before it, so later tokens cannot change its features."""
    model = model_of("gpt")
    text = torch.tensor([[BOS, *random_rows([8], 12)[0]]])
    at_once, _ = model.advance(text, model.start(None, 1))
    for end in range(1, text.shape[1] + 1):
        prefix, _ = model.advance(text[:, :end], model.start(None, 1))
        torch.testing.assert_close(prefix[:, -1], at_once[:, end - 1], rtol=1e-4, atol=1e-5)
