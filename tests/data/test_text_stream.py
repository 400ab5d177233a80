"""Text streams: every token is predicted once an epoch after the token before it, by any number of ranks."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from heed.core.errors import DataError, UsageError
from heed.data.batch import Batch
from heed.data.schedule import Position, Turn, turns
from heed.data.text_stream import StreamLoader, TextStream, WindowLoader

BOS, EOS = 1, 2


def stream(num_lines: int = 57, seed: int = 0) -> TextStream:
    """Lines of 1 to 9 consecutively numbered tokens, each with its end."""
    lengths = np.random.default_rng(seed).integers(1, 10, num_lines)
    starts = np.cumsum(lengths) - lengths + 10
    return TextStream.of_lines([[*range(s, s + n), EOS] for s, n in zip(starts, lengths, strict=True)])


def epoch_of(loader: StreamLoader | WindowLoader, epoch: int = 0) -> list[Batch]:
    batches = loader.batches_from(Position(epoch, 0))
    return [next(batches)[1] for _ in range(loader.num_batches(epoch))]


def predicted(batches: list[Batch]) -> dict[int, tuple[int, int]]:
    """(input, target) at each position of the text, which must occur once."""
    targets: dict[int, tuple[int, int]] = {}
    for batch in batches:
        assert batch.num_tokens == int(batch.tgt_mask.sum())
        for row, begin in enumerate(batch.rows.tolist()):
            for column in np.flatnonzero(batch.tgt_mask[row].numpy()).tolist():
                assert begin + column not in targets
                targets[begin + column] = int(batch.tgt_in[row, column]), int(batch.tgt_out[row, column])
    return targets


def assert_whole(text: TextStream, batches: list[Batch]) -> None:
    targets = predicted(batches)
    assert sorted(targets) == list(range(len(text)))
    for position, (read, target) in targets.items():
        assert target == text.ids[position]
        before = EOS if position == 0 else text.ids[position - 1]
        assert read == (BOS if before == EOS else before)


@pytest.mark.parametrize("num_streams", [1, 2, 4, 7, 20])
@pytest.mark.parametrize("context", [1, 3, 10, 1000])
@pytest.mark.parametrize("random_context", [False, True])
def test_streams_predict_every_token_once(num_streams: int, context: int, random_context: bool) -> None:
    text = stream()
    loader = StreamLoader(text, num_streams=num_streams, context=context, random_context=random_context, seed=3)
    for epoch in (0, 1):
        batches = epoch_of(loader, epoch)
        assert_whole(text, batches)
        assert [batch.segment for batch in batches] == list(range(len(batches)))
        assert all(bool(batch.tgt_mask.any(1).all()) for batch in batches)
        for one, then in pairwise(batches):
            assert (then.rows == one.rows + one.tgt_in.shape[1]).all()


def test_segments_except_the_last_have_the_requested_length() -> None:
    batches = epoch_of(StreamLoader(stream(), num_streams=4, context=6, seed=0))
    assert {batch.tgt_in.shape for batch in batches[:-1]} == {(4, 6)}
    assert {batch.relative_length for batch in batches} == {1.0}


def test_random_lengths_depend_on_seed_and_epoch_and_are_near_the_context() -> None:
    text = stream(6000)

    def lengths(seed: int, epoch: int) -> list[int]:
        loader = StreamLoader(text, num_streams=2, context=40, random_context=True, seed=seed)
        return [batch.tgt_in.shape[1] for batch in epoch_of(loader, epoch)]

    found = lengths(1, 0)
    assert found == lengths(1, 0)
    assert found != lengths(1, 1)
    assert found != lengths(2, 0)
    near = [length for length in found if abs(length - 40) <= 12]
    assert 0.88 < len(near) / len(found) < 1
    assert sum(10 <= length < 28 for length in found) >= 3
    assert 39 < np.mean(near) < 41
    assert 4 < np.std(near) < 6


@pytest.mark.parametrize("num_ranks", [2, 3])
def test_the_streams_of_all_ranks_are_those_of_one_rank(num_ranks: int) -> None:
    text = stream()
    alone = epoch_of(StreamLoader(text, num_streams=6, context=5, seed=1))
    ranks = [
        epoch_of(StreamLoader(text, num_streams=6, context=5, seed=1, rank=rank, world_size=num_ranks))
        for rank in range(num_ranks)
    ]
    for whole, *parts in zip(alone, *ranks, strict=True):
        assert whole.rows.tolist() == [row for part in parts for row in part.rows.tolist()]
    assert predicted(alone) == {k: v for batches in ranks for k, v in predicted(batches).items()}


@pytest.mark.parametrize(
    "loader",
    [
        StreamLoader(stream(), num_streams=3, context=5, random_context=True, seed=1),
        WindowLoader(stream(), context=5, tokens_per_batch=20, seed=1),
        WindowLoader(stream(), context=5, tokens_per_batch=20, seed=1, rank=1, world_size=3),
    ],
    ids=["streams", "windows", "a rank"],
)
def test_a_resumed_loader_continues_with_the_same_batches(loader: StreamLoader | WindowLoader) -> None:
    batches = loader.batches_from()
    straight = [next(batches) for _ in range(40)]
    after = straight[17][0]
    again = loader.batches_from(after)
    for _, batch in straight[18:]:
        found = next(again)[1]
        assert found.rows.tolist() == batch.rows.tolist()
        assert found.tgt_out.tolist() == batch.tgt_out.tolist()
        assert found.segment == batch.segment


@pytest.mark.parametrize("context", [1, 4, 10, 1000])
def test_windows_predict_every_token_once_with_other_cuts_in_each_epoch(context: int) -> None:
    text = stream()
    loader = WindowLoader(text, context=context, tokens_per_batch=40, seed=5)
    begins = []
    for epoch in range(6):
        batches = epoch_of(loader, epoch)
        assert_whole(text, batches)
        assert all(batch.tgt_in.shape[1] <= context and batch.segment is None for batch in batches)
        assert all(len(batch.rows) <= max(1, 40 // context) for batch in batches)
        begins.append([row for batch in batches for row in batch.rows.tolist()])
    assert len({tuple(sorted(found)) for found in begins}) > 1 or context == 1
    assert begins[0] != sorted(begins[0]) or context == 1000


def test_ranks_take_the_batches_of_windows_in_turn() -> None:
    text = stream()
    alone = WindowLoader(text, context=4, tokens_per_batch=16, seed=2).batches_from()
    expected = [next(alone)[1].rows.tolist() for _ in range(60)]
    ranks = [
        WindowLoader(text, context=4, tokens_per_batch=16, seed=2, rank=rank, world_size=2).batches_from()
        for rank in (0, 1)
    ]
    assert [next(ranks[number % 2])[1].rows.tolist() for number in range(60)] == expected


def test_turns_cross_the_ends_of_epochs() -> None:
    found = turns(lambda epoch: "abc", Position(), rank=1, world_size=2)
    assert [next(found) for _ in range(3)] == [
        Turn(0, "b", Position(0, 2)), Turn(1, "a", Position(1, 1)), Turn(1, "c", Position(2, 0)),
    ]  # fmt: skip


def test_a_row_at_the_beginning_of_a_line_begins_with_bos_even_after_a_newline() -> None:
    newline = 9
    text = TextStream.of_lines([[*range(10, 10 + n), newline] for n in (3, 1, 0, 5, 2, 7)])
    for epoch in range(5):
        for batch in epoch_of(WindowLoader(text, context=3, tokens_per_batch=6, seed=1), epoch):
            for row, begin in enumerate(batch.rows.tolist()):
                ids = text.ids[begin : begin + int(batch.tgt_mask[row].sum())]
                first = BOS if begin in text.offsets else text.ids[begin - 1]
                assert batch.tgt_in[row][batch.tgt_mask[row]].tolist() == [first, *ids[:-1]]


def test_impossible_streams_and_positions_are_refused() -> None:
    with pytest.raises(UsageError, match=r"num_streams = 1 is too small for 2 processes"):
        StreamLoader(stream(), num_streams=1, context=3, seed=1, world_size=2)
    with pytest.raises(DataError, match=r"too few for 2000 streams. Lower --training.num_streams"):
        StreamLoader(stream(), num_streams=2000, context=3, seed=1)
    loader = StreamLoader(stream(), num_streams=2, context=3, seed=1)
    with pytest.raises(DataError, match=r"Cannot continue at batch 999 of epoch 0"):
        next(loader.batches_from(Position(0, 999)))
    with pytest.raises(DataError, match=r"Cannot continue at batch 999 of epoch 0"):
        next(WindowLoader(stream(), context=3, tokens_per_batch=20, seed=1).batches_from(Position(0, 999)))
