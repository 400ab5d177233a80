"""Tests of penalised regression: closed answers, its optimum, and scikit-learn as the oracle."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from heed.nn.incidence import Features, Incidence
from heed.nn.links import LINKS
from heed.nn.penalised_regression import fit

NUM_TEXTS, NUM_NGRAMS = 40, 12


def blocks(seed: int = 0, scaled: bool = True) -> list[Incidence]:
    """Two blocks of n-grams in 40 texts."""
    random = np.random.default_rng(seed)
    result = []
    for _ in range(2):
        is_in = random.random((NUM_TEXTS, NUM_NGRAMS)) < 0.3
        columns = np.nonzero(is_in)[1].astype(np.int32)
        offsets = np.concatenate([[0], np.cumsum(is_in.sum(1))])
        scale = torch.from_numpy(random.random(NUM_NGRAMS) + 0.5 if scaled else np.ones(NUM_NGRAMS))
        counts = random.integers(1, 4, len(columns)).astype(np.uint8)
        result.append(Incidence(columns, offsets, scale, counts))
    return result


def dense(features: Features) -> Tensor:
    """The matrix [N, J + 1] that the features stand for."""
    return features.times(torch.eye(2 * NUM_NGRAMS + 1, dtype=torch.float64))


def targets(num_labels: int, seed: int = 1) -> Tensor:
    labels = torch.randint(num_labels, (NUM_TEXTS,), generator=torch.Generator().manual_seed(seed))
    return torch.nn.functional.one_hot(labels, num_labels).double()


def test_products_are_those_of_the_dense_matrix() -> None:
    features = Features(blocks())
    matrix, random = dense(features), torch.Generator().manual_seed(3)
    weights = torch.randn(2 * NUM_NGRAMS + 1, 3, generator=random, dtype=torch.float64)
    values = torch.randn(NUM_TEXTS, 3, generator=random, dtype=torch.float64)
    torch.testing.assert_close(features.times(weights), matrix @ weights)
    torch.testing.assert_close(features.transposed_times(values), matrix.T @ values)


def test_entries_are_scaled_and_dampened_counts() -> None:
    columns, offsets = np.array([0, 2, 1], dtype=np.int32), np.array([0, 2, 3])
    scale = torch.tensor([1.0, 2.0, 0.5], dtype=torch.float64)
    block = Incidence(columns, offsets, scale, np.array([1, 3, 2], dtype=np.uint8))
    expected = torch.tensor([[1.0, 0, 0.5 * (1 + np.log(3))], [0, 1, 0]], dtype=torch.float64)
    expected[0] /= expected[0].norm()
    torch.testing.assert_close(block.times(torch.eye(3, dtype=torch.float64)), expected)


def test_each_text_has_unit_norm_in_each_block() -> None:
    matrix = dense(Features(blocks()))
    for part in matrix[:, :-1].split(NUM_NGRAMS, dim=1):
        norms = part.norm(dim=1)
        torch.testing.assert_close(norms[norms > 0], torch.ones(int((norms > 0).sum()), dtype=torch.float64))


def test_regression_of_numbers_solves_the_normal_equations() -> None:
    features = Features(blocks())
    matrix, y = dense(features), torch.randn(NUM_TEXTS, 1, dtype=torch.float64)
    found = fit(features, y, LINKS["number"], 3.0, tolerance=1e-9)
    penalty = torch.eye(matrix.shape[1], dtype=torch.float64)
    penalty[-1, -1] = 0
    torch.testing.assert_close(found.weights, torch.linalg.solve(penalty + 3 * matrix.T @ matrix, 3 * matrix.T @ y))


@pytest.mark.parametrize(("kind", "num_labels"), [("label", 2), ("label", 4), ("labels", 3), ("number", 1)])
def test_the_gradient_of_the_objective_vanishes_at_the_optimum(kind: str, num_labels: int) -> None:
    features, link = Features(blocks()), LINKS[kind]
    y = targets(num_labels)[:, -link.columns(num_labels) :]
    prior = torch.rand(2 * NUM_NGRAMS + 1, y.shape[1], dtype=torch.float64) + 0.2
    found = fit(features, y, link, 5.0, prior, tolerance=1e-9)
    weights = found.weights.clone().requires_grad_()
    penalty = 0.5 * (weights[:-1] / prior[:-1]).square().sum()
    objective = penalty + 5.0 * link.loss(dense(features) @ weights, y)
    [gradient] = torch.autograd.grad(objective, weights)
    assert float(gradient.abs().max()) < 1e-6
    assert found.objective == pytest.approx(float(objective.detach()))


def test_a_prior_is_a_scaling_of_the_features() -> None:
    """Wang & Manning (2012): the features times r, with equal penalties."""
    [first, second] = blocks(scaled=False)
    features, y = Features([first, second]), targets(2)[:, 1:]
    ratio = torch.rand(2 * NUM_NGRAMS + 1, 1, dtype=torch.float64) + 0.1
    ratio[-1] = 1
    found = fit(features, y, LINKS["label"], 2.0, ratio, tolerance=1e-9)
    scaled = dense(features) * ratio.T
    v = (found.weights / ratio).requires_grad_()
    objective = 0.5 * v[:-1].square().sum() + 2 * LINKS["label"].loss(scaled @ v, y)
    [gradient] = torch.autograd.grad(objective, v)
    assert float(gradient.abs().max()) < 1e-6


@pytest.mark.parametrize("num_labels", [2, 4])
def test_weights_are_those_of_scikit_learn(num_labels: int) -> None:
    linear_model = pytest.importorskip("sklearn.linear_model", reason="scikit-learn is not installed")
    features, y = Features(blocks()), targets(num_labels)
    oracle = linear_model.LogisticRegression(C=10.0, tol=1e-10, max_iter=10_000)
    oracle.fit(dense(features)[:, :-1].numpy(), y.argmax(1).numpy())
    link = LINKS["label"]
    found = fit(features, y[:, -link.columns(num_labels) :], link, 10.0, tolerance=1e-10).weights
    np.testing.assert_allclose(found[:-1].T.numpy(), oracle.coef_, rtol=1e-4, atol=1e-4)
    probabilities = link.probabilities(link.full(features.times(found)))
    np.testing.assert_allclose(
        probabilities.numpy(), oracle.predict_proba(dense(features)[:, :-1].numpy()), rtol=1e-4, atol=1e-5
    )
