"""Do bias and penalties shift the tokens that they are about, and no others?"""

from __future__ import annotations

import torch
from scripted import FixedRows

from heed.decoding.shifts import Bias, SaidBefore


def test_a_bias_is_added_to_its_tokens() -> None:
    found = Bias([(1, 2.5), (3, -100.0)])(torch.zeros(2, 4), FixedRows([(), ()]))
    assert found.tolist() == [[0.0, 2.5, 0.0, -100.0]] * 2


def test_what_was_said_is_less_likely_the_oftener_the_less() -> None:
    rows = FixedRows([(1, 1, 3), (0, 2, 2)])
    found = SaidBefore(presence=0.5, frequency=0.25)(torch.zeros(2, 4), rows)
    assert found.tolist() == [[0.0, -1.0, 0.0, -0.75], [-0.75, 0.0, -1.0, 0.0]]


def test_before_the_first_token_nothing_was_said() -> None:
    assert SaidBefore(1.0, 1.0)(torch.zeros(1, 3), FixedRows([()])).tolist() == [[0.0] * 3]
