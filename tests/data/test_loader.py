"""Batch loader: each row once an epoch, and exact resume at any position."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from heed.core.errors import DataError
from heed.data import loader as loader_module
from heed.data.batch import Batch, collate
from heed.data.loader import BatchLoader
from heed.data.schedule import Position
from heed.data.store import TokenStore, write_store

NUM_ROWS = 60
START = Position()


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> TokenStore:
    """Row i has the source [i, i, ...] and the target [100 + i, ...], of random lengths."""
    random = np.random.default_rng(0)
    rows = [([i] * random.integers(0, 9), [100 + i] * random.integers(0, 9)) for i in range(NUM_ROWS)]
    return write_store(tmp_path_factory.mktemp("loader") / "store", ("src", "tgt"), rows, (200, 200), {})


def loader(
    store: TokenStore,
    rank: int = 0,
    world_size: int = 1,
    prefetch: int = 0,
    seed: int = 3,
    subword_dropout: Any = None,
) -> BatchLoader[Batch]:
    return BatchLoader(
        store,
        lambda ids, rows: collate(ids.get("src"), ids["tgt"], rows, 197, 198, 199),
        tokens_per_batch=40,
        seed=seed,
        subword_dropout=subword_dropout,
        rank=rank,
        world_size=world_size,
        prefetch=prefetch,
    )


def comparable(item: tuple[Position, Batch]) -> tuple[object, ...]:
    position, batch = item
    assert batch.source is not None
    return position, batch.rows.tolist(), batch.source.ids.tolist(), batch.tgt_in.tolist(), batch.tgt_out.tolist()


def take(loader: BatchLoader, num: int, start: Position = START) -> list[tuple[object, ...]]:
    """The first `num` batches from a position, for comparison; the iterator is closed."""
    batches = loader.batches_from(start)
    items = [comparable(item) for item in islice(batches, num)]
    batches.close()
    return items


def rows_of_epochs(loader: BatchLoader, num_epochs: int) -> list[list[int]]:
    batches = loader.batches_from()
    return [
        [row for _ in range(loader.num_batches(epoch)) for row in next(batches)[1].rows.tolist()]
        for epoch in range(num_epochs)
    ]


def test_each_epoch_has_every_row_once_in_another_order(store: TokenStore) -> None:
    epochs = rows_of_epochs(loader(store), 4)
    assert all(sorted(rows) == list(range(NUM_ROWS)) for rows in epochs)
    assert len({tuple(rows) for rows in epochs}) == 4
    assert rows_of_epochs(loader(store, seed=4), 1)[0] != epochs[0]


def test_a_batch_holds_the_rows_of_its_indices(store: TokenStore) -> None:
    for _, batch in islice(loader(store).batches_from(), 20):
        assert batch.source is not None
        for i, row in enumerate(batch.rows.tolist()):
            src = batch.source.ids[i][batch.source.mask[i]].tolist()
            assert src == [*store.row("src", row).tolist(), 198]
            assert batch.tgt_out[i][batch.tgt_mask[i]].tolist() == [*store.row("tgt", row).tolist(), 198]
        assert batch.tgt_in.numel() <= 40
        assert batch.source.ids.numel() <= 40


def test_a_store_without_sources_gives_batches_without_sources(tmp_path: Path) -> None:
    store = write_store(tmp_path / "store", ["tgt"], [([1, 2],), ([3],)], [200], {})
    _, batch = next(loader(store).batches_from())
    assert batch.source is None
    assert sorted(batch.tgt_out.tolist()) == [[1, 2, 198], [3, 198, 199]]


def test_positions_are_those_after_each_batch_and_continue_in_the_next_epoch(store: TokenStore) -> None:
    one = loader(store)
    first = one.num_batches(0)
    positions = [item[0] for item in take(one, first + 1)]
    assert positions == [*(Position(0, i) for i in range(1, first)), Position(1, 0), Position(1, 1)]


@settings(max_examples=20)
@given(st.integers(0, 45), st.integers(1, 3), st.integers(0, 3), st.data())
def test_a_run_resumed_at_any_position_continues_as_if_never_stopped(
    store: TokenStore, stop: int, world_size: int, prefetch: int, data: st.DataObject
) -> None:
    rank = data.draw(st.integers(0, world_size - 1))
    whole = take(loader(store, rank, world_size), stop + 25)
    position = whole[stop - 1][0] if stop else START
    assert isinstance(position, Position)
    assert take(loader(store, rank, world_size, prefetch), 25, position) == whole[stop:]


@pytest.mark.parametrize("world_size", [2, 3, 40])
def test_ranks_take_turns_in_the_batches_of_one_rank(store: TokenStore, world_size: int) -> None:
    """So two ranks see in one step what one rank sees in two, and each row is seen once an epoch over the ranks."""
    steps = 60 // world_size
    alone = take(loader(store), steps * world_size)
    together = [take(loader(store, rank, world_size), steps) for rank in range(world_size)]
    for step in range(steps):
        turns = [together[rank][step] for rank in range(world_size)]
        expected = alone[step * world_size : (step + 1) * world_size]
        assert [turn[1:] for turn in turns] == [item[1:] for item in expected]
        assert {turn[0] for turn in turns} == {expected[-1][0]}


def test_another_number_of_ranks_continues_at_the_same_position(store: TokenStore) -> None:
    alone = take(loader(store), 40)
    position = take(loader(store, rank=1, world_size=2), 15)[-1][0]
    assert isinstance(position, Position)
    assert take(loader(store), 10, position) == alone[30:]


@pytest.mark.parametrize("prefetch", [1, 2, 3])
def test_batches_prepared_ahead_are_the_same(store: TokenStore, prefetch: int) -> None:
    assert take(loader(store, prefetch=prefetch), 50) == take(loader(store), 50)


def test_resegmentation_is_keyed_by_side_epoch_and_row(store: TokenStore) -> None:
    calls: Counter[tuple[str, int, int]] = Counter()

    def resegment(side: str, ids: NDArray[np.integer], epoch: int, row: int) -> list[int]:
        assert ids.tolist() == store.row(side, row).tolist()
        calls[side, epoch, row] += 1
        return [epoch, row, 7]

    one = loader(store, subword_dropout=resegment)
    batches = list(islice(one.batches_from(), one.num_batches(0) + one.num_batches(1)))
    assert {*calls} == {(side, epoch, row) for side in store.sides for epoch in range(2) for row in range(NUM_ROWS)}
    assert batches[-1][1].tgt_out.tolist() == [[1, row, 7, 198] for row in batches[-1][1].rows.tolist()]


def lengthen(side: str, ids: NDArray[np.integer], epoch: int, row: int) -> list[int]:
    """As subword dropout does: another length for each row and epoch."""
    return [*ids.tolist(), *[5] * ((5 * row + 3 * epoch + (side == "tgt")) % 8)]


def test_batches_of_newly_segmented_rows_keep_the_budget_with_little_padding(
    store: TokenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead = loader(store, subword_dropout=lengthen)
    found = [batch for _, batch in islice(ahead.batches_from(), ahead.num_batches(0))]
    monkeypatch.setattr(loader_module, "MAX_SEGMENTED_AHEAD", 0)
    late = loader(store, subword_dropout=lengthen)
    others = [batch for _, batch in islice(late.batches_from(), late.num_batches(0))]
    ids = [{int(row): out[:-1] for batch in batches for row, out in rows_of(batch)} for batches in (found, others)]
    assert ids[0] == ids[1], "the same rows, in other batches"
    assert max(batch.tgt_out.numel() for batch in found) <= 40 < max(batch.tgt_out.numel() for batch in others)
    few, many = (sum(b.tgt_mask.numel() - int(b.tgt_mask.sum()) for b in batches) for batches in (found, others))
    assert few < many / 2


def rows_of(batch: Batch) -> Iterator[tuple[int, list[int]]]:
    """The targets of a batch, without padding."""
    for row, out, mask in zip(batch.rows, batch.tgt_out, batch.tgt_mask, strict=True):
        yield int(row), out[mask].tolist()


def test_an_error_in_the_thread_is_raised_at_its_batch(store: TokenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loader_module, "MAX_SEGMENTED_AHEAD", 0)
    rows_before = [row for item in take(loader(store), 3) for row in item[1]]  # type: ignore[attr-defined]

    def resegment(side: str, ids: NDArray[np.integer], epoch: int, row: int) -> list[int]:
        if row not in rows_before:
            raise DataError(f"row {row} is wrong")
        return list(ids)

    batches = loader(store, prefetch=2, subword_dropout=resegment).batches_from()
    assert len([next(batches) for _ in range(3)]) == 3
    with pytest.raises(DataError, match="is wrong"):
        next(batches)
    assert batch_threads() == []


def test_the_thread_ends_when_the_iterator_is_closed(store: TokenStore) -> None:
    batches = loader(store, prefetch=2).batches_from()
    next(batches)
    assert len(batch_threads()) == 1
    batches.close()
    assert batch_threads() == []


def batch_threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("heed-batches")]


def test_a_position_that_the_corpus_does_not_have_is_refused(store: TokenStore) -> None:
    with pytest.raises(DataError, match="Cannot continue at batch 999 of epoch 1, which has"):
        next(loader(store).batches_from(Position(1, 999)))


def test_a_store_without_rows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no rows"):
        loader(write_store(tmp_path / "store", ("src", "tgt"), [], (200, 200), {}))


def test_plans_of_other_epochs_can_be_requested_meanwhile(store: TokenStore) -> None:
    one = loader(store)
    batches = one.batches_from()
    seen = []
    for _ in range(30):
        one.num_batches(5)
        seen.append(comparable(next(batches)))
    assert seen == take(loader(store), 30)
