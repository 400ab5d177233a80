"""Examples of word vectors: windows, subsampling, negatives, and the order of the loader."""

from __future__ import annotations

from itertools import islice
from typing import Any

import numpy as np
import pytest

from heed.core.errors import DataError
from heed.data.schedule import Position
from heed.data.word_windows import MAX_PIECE, InputRows, WindowOptions, WindowSampler, WordWindowLoader, batch_random
from heed.statistical.alias import AliasTable


def sampler(
    counts: Any, window: int = 2, negatives: int = 2, subsample: float = 0.0, cbow: bool = False
) -> WindowSampler:
    counts = np.array(counts)
    return WindowSampler(WindowOptions(window, negatives, subsample, cbow), counts, InputRows.of_words(len(counts)))


def predicted(batch: Any) -> list[tuple[list[int], list[int]]]:
    """The input rows and the predicted words of each example."""
    found = []
    for row in range(len(batch.bags)):
        bag, targets = (slice(*matrix.starts[row : row + 2].tolist()) for matrix in (batch.bags, batch.targets))
        words = batch.targets.columns[batch.targets.places[targets]][batch.targets.values[targets] > 0]
        found.append((batch.bags.columns[batch.bags.places[bag]].tolist(), words.tolist()))
    return found


def test_a_window_of_one_pairs_neighbours_within_their_line() -> None:
    batch = sampler([1] * 6, window=1).batch(
        np.array([0, 1, 2, 3, 4]), np.array([0, 0, 0, 1, 1]), batch_random(1, 0, 0)
    )
    assert predicted(batch) == [([0], [1]), ([1], [0, 2]), ([2], [1]), ([3], [4]), ([4], [3])]
    assert batch.rows.tolist() == [0, 0, 0, 1, 1] and batch.num_targets == 6


def test_a_bag_predicts_the_word_in_the_middle_from_the_mean_of_the_others() -> None:
    batch = sampler([1] * 6, window=1, cbow=True).batch(np.array([0, 1, 2]), np.zeros(3, int), batch_random(1, 0, 0))
    assert predicted(batch) == [([1], [0]), ([0, 2], [1]), ([1], [2])]
    assert batch.bags.values.tolist() == [1, 0.5, 0.5, 1] and batch.num_targets == 3


def test_windows_reach_each_distance_equally_often() -> None:
    ids = np.arange(40_000) % 1000
    batch = sampler([1] * 1000, window=4).batch(ids, np.zeros(len(ids), int), batch_random(1, 0, 0))
    shares = [(len(words) / 8) for _, words in predicted(batch)]
    assert np.mean(shares) == pytest.approx((1 + 2 + 3 + 4) / 4 / 4, abs=0.005)


def test_unknown_words_are_left_out_and_do_not_separate() -> None:
    batch = sampler([0, 1, 1], window=1).batch(np.array([1, 0, 0, 2]), np.zeros(4, int), batch_random(1, 0, 0))
    assert predicted(batch) == [([1], [2]), ([2], [1])]


def test_frequent_words_are_kept_with_the_probability_of_the_paper() -> None:
    counts = np.array([900, 90, 10])
    ids = np.repeat(np.arange(3), 20_000)
    batch = sampler(counts, subsample=0.09).batch(ids, np.zeros(len(ids), int), batch_random(1, 0, 0))
    words = np.array([bag[0] for bag, _ in predicted(batch)])
    assert np.bincount(words) / 20_000 == pytest.approx([np.sqrt(0.09 / 0.9), 1, 1], abs=0.01)


def test_negatives_follow_the_frequencies_to_the_power_of_three_quarters_and_differ_from_the_word() -> None:
    counts = np.array([0, 1, 16, 81])
    ids = np.array([1, 2] * 15_000)
    batch = sampler(counts, window=1, negatives=5).batch(ids, np.zeros(len(ids), int), batch_random(1, 0, 0))
    chosen = batch.targets.columns[batch.targets.places]
    drawn = np.bincount(chosen[batch.targets.values < 0].numpy(), minlength=4)
    of_one, of_two = np.array([0, 0, 8, 27]) / 36, np.array([0, 1, 0, 27]) / 36  # of the word 1, of the word 2
    assert drawn / (5 * batch.num_targets / 2) == pytest.approx(of_one + of_two, abs=0.01)


def test_an_alias_table_draws_in_proportion_to_its_weights() -> None:
    weights = np.random.default_rng(1).random(50) ** 3
    weights[7] = 0
    drawn = AliasTable(weights).draw(batch_random(1, 2, 3).random_raw(1_000_000))
    assert np.bincount(drawn, minlength=50) / 1e6 == pytest.approx(weights / weights.sum(), abs=1.5e-3)
    assert 7 not in drawn
    with pytest.raises(ValueError, match="one of them positive"):
        AliasTable(np.zeros(3))


def loader(rank: int = 0, world_size: int = 1) -> WordWindowLoader:
    lengths = [3, 0, 2500, 7, 12, 40, 9]
    ids = np.arange(sum(lengths)) % 20
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    return WordWindowLoader(
        ids, offsets, sampler([1] * 20), words_per_batch=300, seed=5, rank=rank, world_size=world_size
    )


def test_an_epoch_has_each_word_once_and_long_lines_in_pieces() -> None:
    each = loader()
    assert (each.ends - each.begins).max() <= MAX_PIECE
    items = [pieces for _, pieces in each._planned(0)]
    assert sorted(np.concatenate(items).tolist()) == list(range(len(each.begins)))
    assert sum(each.ends - each.begins) == 2571 and each.num_batches(0) == len(items)
    assert [pieces.tolist() for _, pieces in each._planned(1)] != [pieces.tolist() for pieces in items]


def test_the_pieces_of_a_long_line_have_windows_of_their_own() -> None:
    ids = np.arange(3 * MAX_PIECE)
    offsets = np.array([0, len(ids)])
    each = WordWindowLoader(ids, offsets, sampler([1] * len(ids), window=1), words_per_batch=len(ids), seed=5)
    for _, batch in islice(each.batches_from(), 4):
        assert set(batch.rows.tolist()) == {0}
        assert all(abs(word - near) == 1 for [word], around in predicted(batch) for near in around)


def test_resuming_gives_the_same_batches_and_ranks_share_them() -> None:
    def key(batch: Any) -> list[Any]:
        return [batch.targets.columns.tolist(), batch.targets.places.tolist(), batch.rows.tolist()]

    every = [(position, key(batch)) for position, batch in islice(loader().batches_from(), 9)]
    position = every[3][0]
    assert isinstance(position, Position)
    assert [key(batch) for _, batch in islice(loader().batches_from(position), 5)] == [each for _, each in every[4:]]
    of_ranks = [[key(batch) for _, batch in islice(loader(rank, 2).batches_from(), 4)] for rank in (0, 1)]
    assert [each for pair in zip(*of_ranks, strict=True) for each in pair] == [each for _, each in every[:8]]


def test_a_text_without_two_known_words_is_refused() -> None:
    with pytest.raises(DataError, match="at least two different words"):
        sampler([0, 5, 0])
    with pytest.raises(DataError, match="no words"):
        WordWindowLoader(np.empty(0, int), np.array([0]), sampler([1, 1]), words_per_batch=10, seed=1)
