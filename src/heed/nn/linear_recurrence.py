"""Linear recurrences c_t = a_t ⊙ c_{t-1} + b_t over all positions at once.

Two steps (a, b) and (a', b') in a row are the step (a' a, a' b + b'), so T steps take ⌈log₂ T⌉ rounds of products of
all positions (Hillis & Steele 1986, "Data parallel algorithms") instead of T rounds of one position. The gradient is
the same recurrence from the last position to the first, so that only a and c are kept for it.
"""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor


def linear_recurrence(
    factors: Float[Tensor, "B T D"], terms: Float[Tensor, "B T D"], before: Float[Tensor, "B D"]
) -> Float[Tensor, "B T D"]:
    """All c_t = factors_t ⊙ c_{t-1} + terms_t, where c_0 is `before`."""
    first = torch.addcmul(terms[:, 0], factors[:, 0], before)[:, None]
    values: Tensor = _Recurrence.apply(factors, torch.cat((first, terms[:, 1:]), dim=1))  # type: ignore[no-untyped-call]
    return values


def gated_recurrence(
    keep: Float[Tensor, "B T D"], values: Float[Tensor, "B T D"], before: Float[Tensor, "B D"]
) -> Float[Tensor, "B T D"]:
    """All c_t = keep_t ⊙ c_{t-1} + (1 - keep_t) ⊙ values_t, where c_0 is `before`."""
    if values.shape[1] == 1:
        return torch.lerp(values, before[:, None], keep)
    return linear_recurrence(keep, torch.addcmul(values, keep, values, value=-1), before)


def _values(factors: Tensor, terms: Tensor) -> Tensor:
    """The recurrence from 0, by doubling the number of steps that are taken together."""
    steps = 1
    while steps < terms.shape[1]:
        later = factors[:, steps:]
        terms = torch.cat((terms[:, :steps], torch.addcmul(terms[:, steps:], later, terms[:, :-steps])), dim=1)
        factors = torch.cat((factors[:, :steps], later * factors[:, :-steps]), dim=1)
        steps *= 2
    return terms


class _Recurrence(torch.autograd.Function):
    """c from 0. With dc the whole gradient of c: dc_t = grad_t + a_{t+1} dc_{t+1}, db = dc, da_t = dc_t c_{t-1}."""

    @staticmethod
    def forward(ctx: Any, factors: Tensor, terms: Tensor) -> Tensor:
        values = _values(factors, terms)
        ctx.save_for_backward(factors, values)
        return values

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        factors, values = ctx.saved_tensors
        following = torch.cat((factors[:, 1:], torch.zeros_like(factors[:, :1])), dim=1)
        whole = _values(following.flip(1), grad.flip(1)).flip(1)
        earlier = torch.cat((torch.zeros_like(values[:, :1]), values[:, :-1]), dim=1)
        return whole * earlier, whole
