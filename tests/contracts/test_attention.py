"""Does every attention have the one shape: keys and values made once, then (query, keys, values, mask) -> context?"""

from __future__ import annotations

import pytest
import torch
from torch import nn

from heed.nn.attention import ATTENTION, AdditiveAttention, MultiHeadAttention
from heed.nn.contract import Trace

FACTORIES = {
    "multi_head": lambda: MultiHeadAttention(d_model=8, num_heads=2),
    "additive": lambda: AdditiveAttention(query_size=8, memory_size=8, attention_size=5),
}
every_attention = pytest.mark.parametrize("name", FACTORIES)

LENGTHS = torch.tensor([6, 3])
MASK = (torch.arange(6) < LENGTHS[:, None])[:, None, None]  # [B, 1, 1, S]


def attention_of(name: str) -> nn.Module:
    """The named attention with random weights."""
    torch.manual_seed(1)
    return FACTORIES[name]()


def test_every_attention_of_the_registry_is_examined() -> None:
    assert FACTORIES.keys() == ATTENTION.keys()
    assert all(type(attention_of(name)) is ATTENTION[name] for name in FACTORIES)


@every_attention
def test_no_mask_means_that_all_may_be_attended_to(name: str) -> None:
    attention, x, memory = attention_of(name), torch.randn(2, 3, 8), torch.randn(2, 6, 8)
    keys, values = attention.project(memory)
    everything = torch.ones(2, 1, 1, 6, dtype=torch.bool)
    torch.testing.assert_close(attention(x, keys, values), attention(x, keys, values, everything))


@every_attention
def test_what_is_masked_out_might_as_well_not_be_there(name: str) -> None:
    attention, x, memory = attention_of(name), torch.randn(2, 3, 8), torch.randn(2, 6, 8)
    contexts = attention(x, *attention.project(memory), MASK)
    alone = attention(x[1:], *attention.project(memory[1:, :3]))
    torch.testing.assert_close(contexts[1:], alone)


@every_attention
def test_the_order_of_the_memory_does_not_matter(name: str) -> None:
    attention, x, memory = attention_of(name), torch.randn(1, 3, 8), torch.randn(1, 6, 8)
    shuffled = memory[:, torch.randperm(6)]
    torch.testing.assert_close(attention(x, *attention.project(shuffled)), attention(x, *attention.project(memory)))


@every_attention
def test_rows_of_one_source_share_its_keys(name: str) -> None:
    attention, x, memory = attention_of(name), torch.randn(6, 2, 8), torch.randn(2, 6, 8)
    shared = attention(x, *attention.project(memory), MASK)
    repeated = attention(x, *attention.project(memory.repeat_interleave(3, 0)), MASK.repeat_interleave(3, 0))
    torch.testing.assert_close(shared, repeated)


@every_attention
def test_traced_weights_are_those_of_each_row(name: str) -> None:
    attention, x, memory, trace = attention_of(name), torch.randn(4, 2, 8), torch.randn(2, 6, 8), Trace()
    keys, values = attention.project(memory)
    traced = attention(x, keys, values, MASK, trace=trace, name="here")
    torch.testing.assert_close(traced, attention(x, keys, values, MASK))
    [weights] = trace.weights["here"]
    assert weights.shape[0] == 4
    assert weights.shape[2:] == (2, 6)
    torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:3]))
    for row in range(4):
        source = slice(row // 2, row // 2 + 1)
        alone = Trace()
        attention(x[row : row + 1], keys[source], values[source], MASK[source], trace=alone, name="here")
        torch.testing.assert_close(weights[row], alone.weights["here"][0][0])
