"""Solutions of chapter 12: what a visible piece tells, and conditionals that have no joint distribution."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from heed.data.masking import Masking
from heed.nn.dropout_keys import DropoutKeys

EOS, MASK, FIRST, NUM_PIECES, LENGTH = 1, 2, 3, 400, 40


def masked_rows(num_rows: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """What heed's masking makes of random rows: the truth, what is read, and which pieces are predicted."""
    none = torch.zeros(FIRST + NUM_PIECES, dtype=torch.bool)
    masking = Masking(0.15, False, MASK, FIRST, NUM_PIECES, none, none, EOS, 0)
    rng = np.random.default_rng(1)
    rows = [rng.integers(FIRST, FIRST + NUM_PIECES, LENGTH).tolist() for _ in range(num_rows)]
    batch = masking.batch(rows, range(num_rows), DropoutKeys.for_step(1, 1, torch.arange(num_rows)))
    return batch.truth, batch.source.ids, batch.chosen


def test_of_visible_pieces_that_are_predicted_half_are_right() -> None:
    """Solution 1: a tenth of the chosen pieces is kept and a tenth is random, so one that is visible and has to be
    predicted is right with probability 1/2, and of all visible pieces 1.5 / 88 = 1.7 % are wrong. The model cannot
    copy, and cannot ignore what it sees."""
    truth, read, chosen = masked_rows(3000)
    num_pieces = truth.shape[0] * LENGTH
    assert chosen.sum().item() / num_pieces == pytest.approx(0.15)
    visible = chosen & (read != MASK)
    right = (read == truth)[visible].float().mean().item()
    assert right == pytest.approx(0.5, abs=0.03)
    of_all = (read != truth).logical_and(read != MASK).sum().item() / (read != MASK)[:, :LENGTH].sum().item()
    assert of_all == pytest.approx(0.015 / 0.88, abs=0.001)
    assert (read == MASK).sum().item() / chosen.sum().item() == pytest.approx(0.8, abs=0.02)


def joints(p_x_given_y: np.ndarray, p_y_given_x: np.ndarray) -> np.ndarray:
    """Solution 2: the ratios p(x | y) / p(y | x) = p(x) / p(y), [X, Y]."""
    return np.asarray(p_x_given_y / p_y_given_x)


def test_conditionals_may_fit_no_joint_distribution() -> None:
    """p(x) / p(y) is an outer product, a matrix of rank 1. So are the ratios of the conditionals of a joint, and not
    those of conditionals that were learned one by one."""
    joint = np.array([[0.1, 0.3], [0.4, 0.2]])
    consistent = joints(joint / joint.sum(0), joint / joint.sum(1, keepdims=True))
    assert np.linalg.matrix_rank(consistent, tol=1e-9) == 1
    p_x_given_y = np.array([[0.9, 0.1], [0.1, 0.9]])  # x copies y
    p_y_given_x = np.array([[0.1, 0.9], [0.9, 0.1]])  # y is the opposite of x
    assert np.linalg.matrix_rank(joints(p_x_given_y, p_y_given_x), tol=1e-9) == 2
