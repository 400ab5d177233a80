"""Negative sampling against its definition: word2vec's loops written out in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from heed.data.batch import divided
from heed.data.word_windows import InputRows, WindowOptions, WindowSampler, batch_random
from heed.nn.negative_sampling import SparseMatrix, negative_sampling_loss, pair_losses

V, D = 30, 7


def a_batch(from_context: bool = False, ngrams: bool = False, num_words: int = 60) -> Any:
    counts = np.arange(V) + 1
    inputs = InputRows.of_words(V)
    if ngrams:  # each word has its own row and one that it shares
        inputs = InputRows(np.arange(0, 2 * V + 1, 2), np.stack([np.arange(V), V + np.arange(V) % 3], 1).ravel(), V + 3)
    sampler = WindowSampler(WindowOptions(3, 4, 0.05, from_context), counts, inputs)
    ids = np.random.default_rng(0).integers(0, V, num_words)
    return sampler.batch(ids, np.arange(num_words) // 15, batch_random(1, 0, 0))


def tables(batch: Any) -> tuple[nn.Parameter, nn.Parameter]:
    generator = torch.Generator().manual_seed(3)
    rows = int(batch.bags.columns.max()) + 1
    shapes = (max(rows, V + 3), D), (V, D)
    first, second = (torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes)
    return nn.Parameter(first), nn.Parameter(second)


def entries(matrix: SparseMatrix, row: int) -> list[tuple[int, float]]:
    """The (column, value) entries of a row."""
    begin, end = matrix.starts[row : row + 2].tolist()
    columns = matrix.columns[matrix.places[begin:end]].tolist()
    return list(zip(columns, matrix.values[begin:end].tolist(), strict=True))


@pytest.mark.parametrize(("from_context", "ngrams"), [(False, False), (True, False), (False, True), (True, True)])
def test_an_update_equals_word2vecs_written_out(from_context: bool, ngrams: bool) -> None:
    """Each pair adds lr · (label - σ(u · h)) · u to its input rows, and · h to the output row."""
    batch = a_batch(from_context, ngrams)
    inputs, outputs = tables(batch)
    new_inputs, new_outputs = inputs.detach().numpy().copy(), outputs.detach().numpy().copy()
    v, u, loss, lr = inputs.detach().numpy(), outputs.detach().numpy(), 0.0, 0.025
    for example in range(len(batch.bags)):
        bag = entries(batch.bags, example)
        h = sum(weight * v[row] for row, weight in bag)
        for word, sign in entries(batch.targets, example):
            probability = 1 / (1 + np.exp(-u[word] @ h))
            step = lr * ((sign > 0) - probability)
            loss -= np.log(probability if sign > 0 else 1 - probability)
            new_outputs[word] += step * h
            for row, weight in bag:
                new_inputs[row] += step * weight * u[word]
    total = negative_sampling_loss(inputs, outputs, batch.bags, batch.targets)
    total.backward()  # type: ignore[no-untyped-call]
    torch.optim.SGD([inputs, outputs], lr=lr).step()
    assert total.item() == pytest.approx(loss)
    assert float(pair_losses(inputs.detach(), outputs.detach(), batch.bags, batch.targets).sum()) < loss
    np.testing.assert_allclose(inputs.detach().numpy(), new_inputs, atol=1e-7)  # weights of entries are float32
    np.testing.assert_allclose(outputs.detach().numpy(), new_outputs, atol=1e-7)


def test_gradients_are_sparse_and_touch_only_the_rows_of_the_batch() -> None:
    batch = a_batch()
    inputs, outputs = tables(batch)
    negative_sampling_loss(inputs, outputs, batch.bags, batch.targets).backward()  # type: ignore[no-untyped-call]
    assert inputs.grad is not None and inputs.grad.is_sparse
    assert torch.equal(inputs.grad.coalesce().indices()[0], batch.bags.columns)
    assert outputs.grad is not None and torch.equal(outputs.grad.coalesce().indices()[0], batch.targets.columns)


def test_the_halves_of_a_batch_have_its_loss_and_gradients() -> None:
    batch = a_batch()
    gradients = []
    for parts in ([batch], divided(batch, 2)):
        inputs, outputs = tables(batch)
        for part in parts:
            negative_sampling_loss(inputs, outputs, part.bags, part.targets).backward()  # type: ignore[no-untyped-call]
        gradients.append((inputs.grad, outputs.grad))
    for whole, halves in zip(*gradients, strict=True):
        torch.testing.assert_close(whole.to_dense(), halves.to_dense())
    assert sum(part.num_targets for part in divided(batch, 2)) == batch.num_targets


def test_a_batch_without_words_has_no_loss() -> None:
    batch = a_batch(num_words=1)
    inputs, outputs = nn.Parameter(torch.ones(V, D)), nn.Parameter(torch.ones(V, D))
    loss = negative_sampling_loss(inputs, outputs, batch.bags, batch.targets)
    loss.backward()  # type: ignore[no-untyped-call]
    assert float(loss.detach()) == 0 == batch.num_targets and not inputs.grad.to_dense().any()  # type: ignore[union-attr]


def test_products_with_a_sparse_matrix_equal_those_with_a_dense_one() -> None:
    starts, columns = np.array([0, 3, 3, 5]), np.array([4, 1, 4, 0, 4])
    values = np.array([1, 2, 3, 4, 5], dtype=np.float32)
    matrix = SparseMatrix.of(starts, columns, values, 6)
    dense = torch.tensor([[0, 2, 0, 0, 4.0, 0], [0] * 6, [4, 0, 0, 0, 5, 0]])
    table, rows = torch.randn(6, 3), torch.randn(3, 3)
    torch.testing.assert_close(matrix.times(table[matrix.columns]), dense @ table)
    torch.testing.assert_close(matrix.transposed_times(rows), (dense.T @ rows)[matrix.columns])
    inner = matrix.inner_products(rows, table[matrix.columns])
    torch.testing.assert_close(
        inner, torch.stack([rows[r] @ table[c] for r, c in zip([0, 0, 0, 2, 2], columns, strict=True)])
    )


def test_more_entries_than_cells_have_their_inner_products() -> None:
    """A row of a small vocabulary has the same column several times."""
    starts, columns = np.array([0, 5, 5, 12]), np.array([3, 3, 8, 3, 8, 8, 3, 3, 8, 8, 8, 3])
    matrix = SparseMatrix.of(starts, columns, np.ones(12, dtype=np.float32), 9)
    rows, table = torch.randn(3, 4), torch.randn(9, 4)
    row_of_entry = [0] * 5 + [2] * 7
    expected = (rows[row_of_entry] * table[torch.from_numpy(columns)]).sum(1)
    torch.testing.assert_close(matrix.inner_products(rows, table[matrix.columns]), expected)
