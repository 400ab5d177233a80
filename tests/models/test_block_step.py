"""Single tokens by `BlockStep` equal the blocks' own `forward`, through reordered rows and another length of memory."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
import torch
from torch import Tensor

from heed.models.block_step import BlockStep
from heed.models.gpt import Gpt, GptConfig
from heed.models.transformer import Transformer, TransformerConfig
from heed.nn.contract import TokenSource, Vocabularies
from heed.nn.packing import pack

SIZES: dict[str, Any] = {"d_model": 16, "d_ff": 24, "num_heads": 2}
MODELS: dict[str, Callable[[], Any]] = {
    "pre-norm": lambda: Transformer(TransformerConfig(norm="pre", **SIZES), Vocabularies(20, 20)),
    "post-norm": lambda: Transformer(TransformerConfig(norm="post", activation="gelu", **SIZES), Vocabularies(20, 20)),
    "without biases": lambda: Transformer(
        TransformerConfig(attention="multi_head_without_bias", **SIZES), Vocabularies(20, 20)
    ),
    "gpt": lambda: Gpt(GptConfig(num_layers=2, max_len=8, **SIZES), Vocabularies(0, 20)),
}


@torch.inference_mode()
def features(model: Any, reserve: int | None) -> list[Tensor]:
    """Those of a prefix of two tokens and ten more tokens of rows that are reordered, for six rows that become four."""
    generator = torch.Generator().manual_seed(2)
    ids = torch.randint(4, 20, (6, 12), generator=generator)
    source = TokenSource(ids[:2, :5], torch.tensor([[True] * 5, [True] * 3 + [False] * 2]))
    start = (source, 3) if model.needs_source else (None, 6)
    first, state = model.advance(ids[:, :2], model.start(*start, reserve))
    found = [first]
    for step, rows in enumerate([[2, 0, 0, 5, 4, 3], [0, 1, 2, 3, 4, 5], [1, 2, 5, 3], *[[3, 0, 1, 1]] * 6]):
        state = state.select(torch.tensor(rows))
        x, state = model.advance(ids[: len(rows), 2 + step, None], state)
        found.append(x)
    return found


@pytest.mark.parametrize("name", MODELS)
def test_steps_equal_the_forward_of_the_blocks(name: str) -> None:
    torch.manual_seed(1)
    model = MODELS[name]().requires_grad_(False)
    packed = deepcopy(model)
    pack(packed)
    calls: list[BlockStep] = []

    def counted(step: BlockStep) -> Callable[..., Tensor]:
        def call(*parts: Any) -> Tensor:
            calls.append(step)
            return step(*parts)

        return call

    for block in packed.blocks:
        block.step = counted(block.step)
    torch.testing.assert_close(features(packed, 12), features(model, None))
    assert calls, "the steps were not used"


def test_weights_that_may_still_change_have_no_steps() -> None:
    model = MODELS["pre-norm"]().requires_grad_(False)
    assert all(block.step is None for block in model.blocks)


def test_attentions_that_depend_on_positions_have_no_steps() -> None:
    model: Any = Transformer(TransformerConfig(attention="rotary", **SIZES), Vocabularies(20, 20)).requires_grad_(False)
    pack(model)
    assert all(block.step is None for block in model.blocks)
    assert features(model, 12)
