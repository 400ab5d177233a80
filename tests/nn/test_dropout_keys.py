"""Dropout masks depend only on seed, step, row, site and position, and are random enough."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from heed.nn.dropout_keys import DropoutKeys, _at_least, dropout, mix_int


def dropout_keys_of(rows: list[int], seed: int = 1, step: int = 2) -> DropoutKeys:
    """The dropout of one update."""
    return DropoutKeys.for_step(seed, step, torch.tensor(rows))


def masks(
    dropout_keys: DropoutKeys, size: tuple[int, ...] = (50, 40), probability: float = 0.5, site: int = 0
) -> Tensor:
    """The mask: 1 for kept elements, 0 for others."""
    return (dropout_keys.dropout(torch.ones(len(dropout_keys.keys), *size), probability, site) != 0).double()


def weight_masks(dropout_keys: DropoutKeys, num_queries: int = 20, size: int = 30, offset: int = 0) -> Tensor:
    """The mask of the attention weights of two heads."""
    return (
        dropout_keys.dropout_ragged(torch.ones(len(dropout_keys.keys), num_queries, 2, size), 0.5, 0, offset) != 0
    ).double()


def test_the_generator_is_splitmix64() -> None:
    """Its published first outputs for seed 0 (Steele, Lea & Flood 2014; Vigna's test vectors)."""
    golden = 0x9E3779B97F4A7C15
    outputs = [mix_int(k * golden) % (1 << 64) for k in (1, 2, 3)]
    assert outputs == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


def test_tensors_and_integers_are_mixed_alike() -> None:
    dropout_keys = dropout_keys_of([0, 5, 123_456_789], seed=7, step=11)
    base = mix_int(mix_int(7) + 11)
    golden = 0x9E3779B97F4A7C15
    assert dropout_keys.keys.tolist() == [mix_int(row * golden + base) for row in (0, 5, 123_456_789)]


@pytest.mark.parametrize("make", [masks, weight_masks])
def test_a_row_has_the_same_mask_alone_and_in_any_batch_and_order(make) -> None:
    together = make(dropout_keys_of([4, 9, 2]))
    assert make(dropout_keys_of([9])).equal(together[1:2])
    assert make(dropout_keys_of([2, 4, 9])).equal(together[[2, 0, 1]])


def test_a_text_cut_into_chunks_has_the_same_masks() -> None:
    dropout_keys, x = dropout_keys_of([4, 9]), torch.ones(2, 30, 6)
    whole = dropout_keys.dropout(x, 0.5, site=3)
    chunks = [
        dropout_keys.dropout(x[:, begin:end], 0.5, site=3, offset=begin) for begin, end in ((0, 1), (1, 12), (12, 30))
    ]
    assert torch.cat(chunks, dim=1).equal(whole)
    queries = [
        weight_masks(dropout_keys, num_queries, offset=begin) for begin, num_queries in ((0, 1), (1, 7), (8, 12))
    ]
    assert torch.cat(queries, dim=1).equal(weight_masks(dropout_keys, 20))


def test_the_mask_of_attention_weights_does_not_depend_on_padding() -> None:
    dropout_keys = dropout_keys_of([4, 9])
    assert weight_masks(dropout_keys, size=13).equal(weight_masks(dropout_keys, size=30)[..., :13])


@pytest.mark.parametrize("probability", [0.1, 0.3, 0.5, 0.9, 0.999])
def test_the_dropped_share_is_near_the_probability_and_the_mean_is_preserved(probability: float) -> None:
    ones = torch.ones(8, 100, 50)
    for found in (
        dropout_keys_of(list(range(8))).dropout(ones, probability, site=1),
        dropout_keys_of(list(range(8))).dropout_ragged(ones.view(8, 100, 1, 50), probability, site=1),
    ):
        # 40,000 coins: four standard deviations and the rounding to 1/256.
        assert abs((found == 0).float().mean().item() - probability) < 4 * 0.5 / 200 + 1 / 512
        assert found.mean().item() == pytest.approx(1.0, abs=4 * (probability / (1 - probability)) ** 0.5 / 200)
        assert len(found.unique()) == 2


def correlation(a: Tensor, b: Tensor) -> float:
    """Of two masks."""
    return torch.corrcoef(torch.stack((a.flatten(), b.flatten())))[0, 1].item()


def test_sites_steps_seeds_rows_and_positions_are_uncorrelated() -> None:
    first = masks(dropout_keys_of([3]))
    others = {
        "site": masks(dropout_keys_of([3]), site=1),
        "step": masks(dropout_keys_of([3], step=3)),
        "seed": masks(dropout_keys_of([3], seed=2)),
        "row": masks(dropout_keys_of([4])),
        "part": masks(dropout_keys_of([3]).fold(0)),
        "position": first.roll(1, dims=1),
        "feature": first.roll(1, dims=2),
        "word of eight features": first.roll(8, dims=2),
    }
    for what, other in others.items():
        assert abs(correlation(first, other)) < 4 / 2000**0.5, what


def test_heads_queries_and_keys_are_uncorrelated() -> None:
    first = weight_masks(dropout_keys_of([3]), 60, 40)
    for dim in (1, 2, 3):
        assert abs(correlation(first, first.roll(1, dims=dim))) < 4 / 4800**0.5, dim


def test_every_bit_of_a_hash_is_used_and_every_byte_is_likely() -> None:
    """A byte below the threshold means drop: thresholds that differ by 1/256 differ by that share."""
    counts = [masks(dropout_keys_of([1, 2]), (1000, 50), p / 256).mean().item() for p in (1, 2, 128, 129)]
    assert counts == pytest.approx([1 - p / 256 for p in (1, 2, 128, 129)], abs=0.006)
    assert counts == sorted(counts, reverse=True)


@pytest.mark.parametrize("limit", [0, 1, 26, 255, 256])
def test_bytes_are_kept_from_a_limit_on(limit: int) -> None:
    every = torch.arange(256, dtype=torch.uint8)
    assert torch.equal(_at_least(every.clone(), limit), every >= limit)


def test_kept_values_are_scaled_by_the_exact_share_that_is_kept() -> None:
    """0.1 is rounded to 26/256."""
    kept = dropout_keys_of([1]).dropout(torch.ones(1, 20, 8), 0.1, site=0).unique()
    assert kept.tolist() == pytest.approx([0.0, 256 / 230])


def test_without_keys_or_probability_nothing_is_dropped() -> None:
    x = torch.randn(2, 3, 4)
    assert dropout(x, 0.5, None, site=0) is x
    assert dropout(x, 0.0, dropout_keys_of([1, 2]), site=0) is x
    assert dropout(x, 0.001, dropout_keys_of([1, 2]), site=0) is x, "rounded to 0/256"
    assert dropout_keys_of([1, 2]).dropout_ragged(x[:, None], 0.0, site=0).equal(x[:, None])


def test_only_kept_values_have_gradients() -> None:
    x = torch.randn(2, 3, 4, requires_grad=True)
    dropped = dropout(x, 0.5, dropout_keys_of([1, 2]), site=0)
    dropped.sum().backward()
    assert x.grad is not None
    assert x.grad.equal((dropped != 0) * 2.0)


def test_bfloat16_is_preserved() -> None:
    assert (
        dropout(torch.ones(2, 3, 4, dtype=torch.bfloat16), 0.5, dropout_keys_of([1, 2]), site=0).dtype == torch.bfloat16
    )
