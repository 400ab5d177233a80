"""Contract of attention: every member of `ATTENTION` is called in one way, whichever memory it reads."""

from __future__ import annotations

import pytest
import torch

from heed.nn.attention import ATTENTION, BEGINNING, Attention
from heed.nn.contract import Trace
from heed.nn.dropout_keys import DropoutKeys
from heed.nn.states import AppendKV, KeysValues, RowPositions

every_attention = pytest.mark.parametrize("name", ATTENTION)

D_MODEL = 8
LENGTHS = torch.tensor([6, 3])
MASK = (torch.arange(6) < LENGTHS[:, None])[:, None, None]  # [B, 1, 1, S]
CPU = torch.device("cpu")


def attention_of(name: str, dropout: float = 0.0) -> Attention:
    """The named attention with random weights."""
    torch.manual_seed(1)
    return ATTENTION[name].in_block(D_MODEL, num_heads=2, dropout=dropout)


def causal(
    attention: Attention, x: torch.Tensor, append_kv: AppendKV, positions: RowPositions = BEGINNING,
    dropout_keys: DropoutKeys | None = None,
) -> torch.Tensor:  # fmt: skip
    """Self-attention of tokens that are appended after these positions."""
    mask = positions.causal_mask(x.shape[1], CPU)
    contexts: torch.Tensor = attention(x, append_kv, mask, positions, dropout_keys)
    return contexts


@every_attention
def test_no_mask_allows_everything(name: str) -> None:
    attention, x, memory = attention_of(name), torch.randn(2, 3, D_MODEL), torch.randn(2, 6, D_MODEL)
    projected = attention.project(memory)
    everything = torch.ones(2, 1, 1, 6, dtype=torch.bool)
    torch.testing.assert_close(attention(x, projected), attention(x, projected, everything))


@every_attention
def test_masked_positions_do_not_matter(name: str) -> None:
    attention, x, memory = attention_of(name), torch.randn(2, 3, D_MODEL), torch.randn(2, 6, D_MODEL)
    contexts = attention(x, attention.project(memory), MASK)
    alone = attention(x[1:], attention.project(memory[1:, :3]))
    torch.testing.assert_close(contexts[1:], alone)


@every_attention
def test_rows_of_one_source_share_its_keys(name: str) -> None:
    attention, x, memory = attention_of(name), torch.randn(6, 2, D_MODEL), torch.randn(2, 6, D_MODEL)
    shared = attention(x, attention.project(memory), MASK)
    repeated = attention(x, attention.project(memory.repeat_interleave(3, 0)), MASK.repeat_interleave(3, 0))
    torch.testing.assert_close(shared, repeated)


@every_attention
def test_traced_weights_are_those_of_each_row(name: str) -> None:
    attention, x, memory, trace = attention_of(name), torch.randn(4, 2, D_MODEL), torch.randn(2, 6, D_MODEL), Trace()
    projected = attention.project(memory)

    def traced(rows: slice, sources: slice) -> tuple[torch.Tensor, torch.Tensor]:
        weights: list[torch.Tensor] = []
        keys, values = projected
        part: KeysValues = (keys[sources], values[sources])
        return attention(x[rows], part, MASK[sources], trace=weights.append), weights[0]

    contexts, weights = traced(slice(None), slice(None))
    torch.testing.assert_close(contexts, attention(x, projected, MASK))
    assert weights.shape[0] == 4
    assert weights.shape[2:] == (2, 6)
    if attention.sums_to_one:
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:3]))
    assert (weights >= 0).all() and (weights.sum(-1) < 1.0001).all()
    assert trace.weights == {}
    for row in range(4):
        _, alone = traced(slice(row, row + 1), slice(row // 2, row // 2 + 1))
        torch.testing.assert_close(weights[row], alone[0])


@every_attention
@pytest.mark.parametrize("dropout", [0.0, 0.4])
@pytest.mark.parametrize(("capacity", "with_gradients"), [(0, True), (0, False), (3, False), (9, False), (200, False)])
def test_with_a_cache_tokens_can_be_read_in_any_pieces(
    name: str, dropout: float, capacity: int, with_gradients: bool
) -> None:
    """The attention makes the cache, sees no later token, and drops the same weights however the tokens come."""
    attention, x = attention_of(name, dropout), torch.randn(3, 7, D_MODEL)
    keys = DropoutKeys.for_step(1, 2, torch.arange(3)) if dropout else None
    with torch.set_grad_enabled(with_gradients):
        whole = causal(attention, x, AppendKV(attention.empty_cache(3, capacity, x), 0), dropout_keys=keys)
        cache, positions, pieces = attention.empty_cache(3, capacity, x), RowPositions(), []
        for piece in x.split([1, 4, 2], dim=1):
            append_kv = AppendKV(cache, positions.length)
            pieces.append(causal(attention, piece, append_kv, positions, keys))
            cache, positions = append_kv.cache, positions.after(piece.shape[1])
    torch.testing.assert_close(torch.cat(pieces, 1), whole, rtol=1e-4, atol=1e-5)


@every_attention
def test_dropout_drops_weights(name: str) -> None:
    x, memory = torch.randn(2, 3, D_MODEL), torch.randn(2, 6, D_MODEL)
    keys = DropoutKeys.for_step(1, 2, torch.arange(2))
    for dropout in (0.0, 0.4):
        attention = attention_of(name, dropout)
        projected = attention.project(memory)
        noisy, plain = attention(x, projected, dropout_keys=keys), attention(x, projected)
        assert noisy.equal(plain) == (dropout == 0.0)


@every_attention
def test_with_a_cache_no_later_token_is_seen(name: str) -> None:
    attention, x = attention_of(name), torch.randn(2, 6, D_MODEL)
    before = causal(attention, x, AppendKV(attention.empty_cache(2, 0, x), 0))
    changed = x.clone()
    changed[:, 4:] += 1
    after = causal(attention, changed, AppendKV(attention.empty_cache(2, 0, x), 0))
    torch.testing.assert_close(after[:, :4], before[:, :4])
    assert not torch.allclose(after[:, 4:], before[:, 4:])


@every_attention
@pytest.mark.parametrize("with_gradients", [False, True])
def test_a_row_that_began_later_does_not_see_the_empty_columns_before_it(name: str, with_gradients: bool) -> None:
    attention, x = attention_of(name), torch.randn(2, 5, D_MODEL)
    positions = RowPositions(3, torch.tensor([0, 2]))
    with torch.set_grad_enabled(with_gradients):
        append_kv = AppendKV(attention.empty_cache(2, 0, x), 0)
        append_kv(*attention.project(x[:, :3], RowPositions(0, positions.first)))  # row 1 has two empty columns
        found = causal(attention, x[:, 3:], AppendKV(append_kv.cache, 3), positions)
        later = AppendKV(attention.empty_cache(1, 0, x), 0)
        causal(attention, x[1:, 2:3], later)
        alone = causal(attention, x[1:, 3:], AppendKV(later.cache, 1), RowPositions(1))
    torch.testing.assert_close(found[1:], alone)
