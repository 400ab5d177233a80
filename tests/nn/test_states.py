"""Memory, caches and row positions: sharing, alignment and copying."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from heed.nn.dropout_keys import DropoutKeys
from heed.nn.states import FEW_TOKENS, AppendKV, CachedState, KeyValueCache, Memory, RowPositions


def memory_of(lengths: list[int], rows_per_source: int = 1) -> Memory:
    """Keys that hold the number of their source at each position."""
    size = max(lengths)
    mask = torch.arange(size) < torch.tensor(lengths)[:, None]
    keys = torch.arange(1.0, len(lengths) + 1).view(-1, 1, 1, 1).expand(len(lengths), 1, size, 2).clone()
    return Memory(((keys, -keys),), mask, rows_per_source)


def cache_of(rows: list[list[float]], capacity: int = 0) -> KeyValueCache:
    """A cache after the given tokens of each row; their keys are the numbers themselves."""
    ids = torch.tensor(rows)[:, None, :, None]
    cache = KeyValueCache.empty(len(rows), 1, (1, 1), capacity, ids)
    return cache.append(0, ids, -ids)[0]


def seen(cache: KeyValueCache, length: int) -> list[list[float]]:
    """The keys of each row."""
    return cache.keys[:, 0, :length, 0].tolist()


def test_a_cache_with_room_is_written_in_place_and_one_without_grows() -> None:
    new = torch.tensor([[[[7.0]]]])
    for capacity, in_place in ((4, True), (FEW_TOKENS + 1, True), (0, False), (2, False)):
        cache = cache_of([[1.0, 2.0]], capacity)
        grown, keys, values = cache.append(2, new, -new)
        assert keys.flatten().tolist() == [1.0, 2.0, 7.0]
        assert values.flatten().tolist() == [-1.0, -2.0, -7.0]
        assert (grown is cache) == in_place


def test_joined_caches_are_aligned_at_the_right() -> None:
    [joined] = state_of([[1.0, 2.0, 3.0]]).join(state_of([[8.0, 9.0]], capacity=5)).caches
    assert seen(joined, 3) == [[1.0, 2.0, 3.0], [0.0, 8.0, 9.0]]


@pytest.mark.parametrize("capacity", [9, FEW_TOKENS + 1])
def test_selected_caches_are_copies_with_the_same_room(capacity: int) -> None:
    state = state_of([[1.0, 2.0], [3.0, 4.0]], capacity=capacity)
    [selected] = state.select(torch.tensor([1, 1, 0])).caches
    [before] = state.caches
    assert selected.keys.shape[2] == capacity
    selected.append(2, torch.full((3, 1, 1, 1), 5.0), torch.full((3, 1, 1, 1), 6.0))
    assert seen(selected, 3) == [[3.0, 4.0, 5.0], [3.0, 4.0, 5.0], [1.0, 2.0, 5.0]]
    assert seen(before, 2) == [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize("capacity", [5, FEW_TOKENS + 1])
def test_a_token_of_each_row_is_appended_at_once(capacity: int) -> None:
    new = torch.randn(3, 2, 4, 6)
    cache = KeyValueCache.empty(3, 4, (6, 6), capacity, new)
    for length in range(3):
        append_kv = AppendKV(cache, length)
        assert append_kv.has_room
        keys, values = append_kv.append_token(new + length)
        assert keys.shape == values.shape == (3, 4, length + 1, 6)
        assert keys[:, :, length].equal(new[:, 0] + length)
        assert values[:, :, 0].equal(new[:, 1])
    assert not AppendKV(cache, capacity).has_room


def test_of_many_tokens_each_heads_keys_follow_each_other() -> None:
    few, many = (KeyValueCache.empty(3, 4, (6, 6), capacity, torch.zeros(1)) for capacity in (9, FEW_TOKENS + 1))
    assert [cache.keys.stride(2) for cache in (few, many)] == [2 * 4 * 6, 6]


def test_one_new_token_needs_no_mask_if_all_rows_began_together() -> None:
    assert RowPositions(5).causal_mask(1, torch.device("cpu")) is None


def test_a_token_sees_itself_and_the_earlier_tokens_of_its_row() -> None:
    mask = RowPositions(2, torch.tensor([0, 1])).causal_mask(2, torch.device("cpu"))
    assert mask is not None
    assert mask[:, 0].int().tolist() == [[[1, 1, 1, 0], [1, 1, 1, 1]], [[0, 1, 1, 0], [0, 1, 1, 1]]]
    together = RowPositions(2).causal_mask(2, torch.device("cpu"))
    assert together is not None
    assert together.int().tolist() == [[1, 1, 1, 0], [1, 1, 1, 1]]


def test_rows_that_remain_in_their_groups_share_their_source() -> None:
    memory = memory_of([3, 2, 1], rows_per_source=2)
    assert memory.num_rows == 6
    assert memory.select(torch.tensor([1, 0, 2, 2, 5, 5])) is memory
    left = memory.select(torch.tensor([1, 1, 5, 4]))
    assert left.rows_per_source == 2
    assert left.layers[0][0][:, 0, 0, 0].tolist() == [1.0, 3.0]


def test_rows_that_leave_their_groups_get_a_copy() -> None:
    apart = memory_of([3, 2], rows_per_source=2).select(torch.tensor([0, 3]))
    assert apart.rows_per_source == 1
    assert apart.layers[0][0][:, 0, 0, 0].tolist() == [1.0, 2.0]
    assert apart.mask.tolist() == [[True, True, True], [True, True, False]]


def test_no_row_at_all_can_be_selected() -> None:
    assert memory_of([3, 2], rows_per_source=2).select(torch.tensor([], dtype=torch.long)).num_rows == 0


def test_joined_memories_are_padded_to_the_longer_source() -> None:
    joined = memory_of([2]).join(memory_of([1, 4]))
    assert joined.mask.int().tolist() == [[1, 1, 0, 0], [1, 0, 0, 0], [1, 1, 1, 1]]
    keys = joined.layers[0][0].view(3, 4, 2)
    assert keys[..., 0].tolist() == [[1, 1, 0, 0], [1, 1, 1, 1], [2, 2, 2, 2]]


def test_memories_with_different_widths_join_row_by_row() -> None:
    joined = memory_of([2, 2], rows_per_source=2).join(memory_of([2], rows_per_source=3))
    assert joined.rows_per_source == 1
    assert joined.layers[0][0][:, 0, 0, 0].tolist() == [1, 1, 2, 2, 1, 1, 1]
    same = memory_of([2], rows_per_source=2).join(memory_of([2], rows_per_source=2))
    assert (same.rows_per_source, same.num_rows) == (2, 4)


def test_a_memory_without_padding_needs_no_mask() -> None:
    assert memory_of([3, 3]).attention_mask() is None
    mask = memory_of([3, 2]).attention_mask()
    assert mask is not None
    assert mask.shape == (2, 1, 1, 3)


def state_of(rows: list[list[float]], keys: Tensor | None = None, capacity: int = 0) -> CachedState:
    """A state after these tokens."""
    dropout_keys = None if keys is None else DropoutKeys(keys)
    caches, columns = (cache_of(rows, capacity),), RowPositions(len(rows[0]))
    return CachedState(caches, columns, memory_of([2] * len(rows)), dropout_keys)


def test_joined_rows_keep_their_columns_in_later_joins_and_selections() -> None:
    joined = state_of([[1.0]]).join(state_of([[2.0, 3.0, 4.0]])).join(state_of([[5.0, 6.0]]))
    assert joined.columns.length == 3
    assert joined.columns.starts(3, torch.device("cpu")).tolist() == [2, 0, 1]
    assert seen(joined.caches[0], 3) == [[0.0, 0.0, 1.0], [2.0, 3.0, 4.0], [0.0, 5.0, 6.0]]
    some = joined.select(torch.tensor([2, 0]))
    assert some.columns.starts(2, torch.device("cpu")).tolist() == [1, 2]
    assert seen(some.caches[0], 3) == [[0.0, 5.0, 6.0], [0.0, 0.0, 1.0]]


def test_rows_of_one_length_join_without_a_mask() -> None:
    assert state_of([[1.0, 2.0]]).join(state_of([[3.0, 4.0]])).columns.first is None


def test_dropout_keys_are_selected_and_joined_with_their_rows() -> None:
    joined = state_of([[1.0]], torch.tensor([10])).join(state_of([[2.0], [3.0]], torch.tensor([20, 30])))
    selected = joined.select(torch.tensor([2, 0]))
    assert selected.dropout_keys is not None
    assert selected.dropout_keys.keys.tolist() == [30, 10]


def test_selecting_all_rows_in_their_order_copies_nothing() -> None:
    state = state_of([[1.0], [2.0]])
    assert state.select(torch.tensor([0, 1])) is state
