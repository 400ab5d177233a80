"""Batch planning: within the budget, little padding, random order, a pure function of (lengths, seed, epoch)."""

from __future__ import annotations

import gzip
import hashlib
import re
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from heed.data.batch import plan_epoch

Lengths = list[NDArray[np.int32]]


def lengths_of(rows: list[tuple[int, ...]]) -> Lengths:
    return [np.array(side, dtype=np.int32) for side in zip(*rows, strict=True)]


def pairs(num_rows: int, seed: int = 0) -> Lengths:
    """Source and target lengths that are loosely correlated, as in translations."""
    random = np.random.default_rng(seed)
    src = random.integers(2, 40, num_rows)
    return [src.astype(np.int32), (src + random.integers(0, 8, num_rows)).astype(np.int32)]


def padding_share(batches: list[NDArray[np.int64]], lengths: Lengths) -> float:
    """The share of positions of the given sides that are padding."""
    real = sum(int(side[rows].sum()) for rows in batches for side in lengths)
    return 1 - real / sum(len(rows) * int(side[rows].max()) for rows in batches for side in lengths)


one_or_two_sides = st.integers(1, 2).flatmap(
    lambda sides: st.lists(st.tuples(*[st.integers(1, 30)] * sides), min_size=1, max_size=60)
)


@given(one_or_two_sides, st.integers(1, 100), st.integers(1, 9) | st.none(), st.integers(1, 70), st.integers(0, 3))
def test_every_row_is_in_one_batch_and_every_batch_is_within_its_limits(
    rows: list[tuple[int, ...]], tokens_per_batch: int, max_rows: int | None, block_rows: int, epoch: int
) -> None:
    lengths = lengths_of(rows)
    plan = plan_epoch(lengths, tokens_per_batch, seed=1, epoch=epoch, max_rows=max_rows, block_rows=block_rows)
    assert sorted(np.concatenate(plan).tolist()) == list(range(len(rows)))
    for batch in plan:
        longest = max(side[batch].max() for side in lengths)
        assert len(batch) == 1 or len(batch) * longest <= tokens_per_batch
        assert len(batch) <= (max_rows or len(rows))


def test_a_row_longer_than_the_budget_is_a_batch_of_its_own() -> None:
    plan = plan_epoch(lengths_of([(3, 50), (3, 3), (3, 3)]), tokens_per_batch=10, seed=0, epoch=0)
    assert sorted(sorted(batch.tolist()) for batch in plan) == [[0], [1, 2]]


def test_rows_that_fit_into_one_batch_are_one_batch() -> None:
    assert all(len(plan_epoch(lengths_of([(4, 5)] * 8), 40, seed=0, epoch=epoch)) == 1 for epoch in range(20))


def test_no_rows_give_no_batches() -> None:
    assert plan_epoch([np.empty(0, dtype=np.int32)], 100, seed=0, epoch=0) == []


def test_the_plan_of_a_known_corpus_never_changes() -> None:
    """Stopped runs continue in this order: a change breaks the resume of every existing run."""
    lengths = [np.array([3, 9, 4, 3, 8, 5, 3, 9]), np.array([4, 8, 4, 3, 8, 6, 4, 7])]
    plan = plan_epoch(lengths, tokens_per_batch=18, seed=7, epoch=2)
    assert [batch.tolist() for batch in plan] == [[1], [4, 7], [0, 2, 5], [3, 6]]

    i = np.arange(1000)
    plan = plan_epoch([1 + i * i % 37, 1 + i * 7 % 41], 200, seed=7, epoch=2, block_rows=300)
    digest = hashlib.sha256(repr([batch.tolist() for batch in plan]).encode()).hexdigest()
    assert digest.startswith("0b59341c8e11be3d")


def test_equal_arguments_give_equal_plans_and_others_different_ones() -> None:
    lengths = pairs(3000)

    def order(seed: int, epoch: int) -> tuple[int, ...]:
        return tuple(np.concatenate(plan_epoch(lengths, 500, seed, epoch)))

    assert order(1, 1) == order(1, 1)
    assert len({order(seed, epoch) for seed in range(3) for epoch in range(3)}) == 9


def test_batches_of_an_epoch_are_not_ordered_by_length() -> None:
    lengths = pairs(20_000)
    means = [lengths[0][batch].mean() for batch in plan_epoch(lengths, 1000, seed=0, epoch=0)]
    assert abs(np.corrcoef(means[:-1], means[1:])[0, 1]) < 0.15


def test_batches_have_other_rows_in_each_epoch() -> None:
    lengths = pairs(5000)
    batches = [{frozenset(batch.tolist()) for batch in plan_epoch(lengths, 1000, 0, epoch)} for epoch in range(2)]
    assert len(batches[0] & batches[1]) < len(batches[0]) / 10


def test_sorting_by_blocks_still_mixes_the_whole_corpus() -> None:
    lengths = pairs(10_000)
    plan = plan_epoch(lengths, 1000, seed=0, epoch=0, block_rows=2000)
    assert all(np.ptp(batch) > 2000 for batch in plan if len(batch) > 10)
    assert padding_share(plan, lengths) < 0.15


def test_padding_on_multi30k_is_under_five_percent_on_both_sides(shared_data: Path) -> None:
    """Pieces of words of at most eight letters replace subwords: about as many, with a similar spread."""
    lengths = [pieces(shared_data / "multi30k" / f"train.{language}.gz") for language in ("en", "de")]
    plan = plan_epoch(lengths, tokens_per_batch=4096, seed=1, epoch=0)
    assert padding_share(plan, lengths[:1]) < 0.05
    assert padding_share(plan, lengths[1:]) < 0.05
    assert len(plan) < 1.05 * sum(np.maximum(*lengths)) / 4096 + 1


def pieces(path: Path) -> NDArray[np.int32]:
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as lines:
        return np.array([1 + len(re.findall(r"\w{1,8}|[^\w\s]", line)) for line in lines], dtype=np.int32)
