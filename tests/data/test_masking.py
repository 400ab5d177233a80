"""Masks of masked language models: shares, words, and independence of batches."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from heed.data.batch import divided
from heed.data.masking import Masking, equal_parts
from heed.nn.dropout_keys import DropoutKeys

SIZE = 50
MASK = SIZE - 1
NOTHING = torch.zeros(SIZE, dtype=torch.bool)
STARTS = torch.arange(SIZE) % 2 == 0
"""Pieces with even ids begin a word."""
PLAIN = Masking(0.15, False, MASK, 4, SIZE - 5, STARTS, NOTHING, 2, 0)


def keys(rows: list[int], epoch: int = 0) -> DropoutKeys:
    return DropoutKeys.for_step(7, epoch, torch.tensor(rows))


def random_rows(lengths: list[int]) -> list[list[int]]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randint(4, MASK, (length,), generator=generator).tolist() for length in lengths]


def test_15_percent_are_chosen_and_80_10_10_are_replaced() -> None:
    rows = random_rows([200] * 400)
    batch = PLAIN.batch(rows, range(400), keys([*range(400)]))
    assert (batch.chosen.sum(1) == 30).all()
    assert batch.num_targets == 12_000
    read, truth = batch.source.ids[batch.chosen], batch.truth[batch.chosen]
    masked, kept = (read == MASK), (read == truth)
    assert masked.float().mean().item() == pytest.approx(0.8, abs=0.02)
    assert kept.float().mean().item() == pytest.approx(0.1 + 0.1 / (SIZE - 5), abs=0.01)
    others = read[~masked & ~kept]
    assert len(others.unique()) == SIZE - 5  # random pieces of text, never special ones or the mask
    assert batch.source.ids[~batch.chosen].equal(batch.truth[~batch.chosen])


def test_special_pieces_are_never_chosen_and_a_row_has_at_least_one() -> None:
    rows = [[3, 5, 3], [2, 7], [3]]
    batch = PLAIN.batch(rows, range(3), keys([0, 1, 2]))
    assert batch.chosen.tolist() == [[False, True, False, False], [False, True, False, False], [False] * 4]


@pytest.mark.parametrize("whole_words", [False, True])
def test_a_row_is_masked_alike_in_any_batch_and_otherwise_in_another_epoch(whole_words: bool) -> None:
    rule, rows = replace(PLAIN, whole_words=whole_words), random_rows([40, 12, 25])
    together = rule.batch(rows, [4, 5, 6], keys([4, 5, 6]))
    for index, row in enumerate(rows):
        alone = rule.batch([row], [4 + index], keys([4 + index]))
        length = len(row) + 1
        assert together.source.ids[index, :length].equal(alone.source.ids[0])
        assert together.chosen[index, :length].equal(alone.chosen[0])
    assert not rule.batch(rows, [4, 5, 6], keys([4, 5, 6], epoch=1)).chosen.equal(together.chosen)


def test_halves_are_the_rows_of_the_whole() -> None:
    batch = PLAIN.batch(random_rows([30, 30, 10, 10]), range(4), keys([0, 1, 2, 3]))
    first, second = divided(batch, 2)
    assert second.source.ids.shape == (2, 11)
    assert first.num_targets + second.num_targets == batch.num_targets
    assert second.chosen.equal(batch.chosen[2:, :11])


def test_whole_words_are_masked_together() -> None:
    rule, rows = replace(PLAIN, whole_words=True, share=0.3), random_rows([60] * 20)
    chosen = rule.batch(rows, range(20), keys([*range(20)])).chosen[:, :-1]
    for row, is_chosen in zip(rows, chosen.tolist(), strict=True):
        word = 0
        words: dict[int, set[bool]] = {}
        for position, (id, flag) in enumerate(zip(row, is_chosen, strict=True)):
            word += bool(STARTS[id]) and position > 0
            words.setdefault(word, set()).add(flag)
        assert all(len(flags) == 1 for flags in words.values())
    assert 18 <= chosen.sum(1).float().mean() <= 20


def test_a_word_may_also_end_with_its_space() -> None:
    rule = replace(PLAIN, whole_words=True, begins_word=NOTHING, ends_word=~NOTHING)
    assert rule._begins(torch.tensor([[5, 6, 7, 2]])).all()


@pytest.mark.parametrize(("length", "most", "parts"), [(0, 4, []), (4, 4, [4]), (9, 4, [3, 3, 3]), (5, 4, [2, 3])])
def test_long_lines_are_cut_into_equal_parts(length: int, most: int, parts: list[int]) -> None:
    bounds = equal_parts(length, most)
    assert [end - begin for begin, end in bounds] == parts
    assert [0, *(end for _, end in bounds)] == [*(begin for begin, _ in bounds), length]
