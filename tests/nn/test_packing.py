"""Does a model compute the same with packed weights?"""

from __future__ import annotations

import copy

import pytest
import torch
from random_models import random_source
from torch import nn

from heed.models.transformer import Transformer, TransformerConfig
from heed.nn.contract import Vocabularies
from heed.nn.heads import LinearHead
from heed.nn.packing import MOST_ROWS, PackedHead, PackedLinear, RoundedLinear, can_round, pack

pytestmark = pytest.mark.skipif(
    not (torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_reorder_linear_weight")),
    reason="PyTorch has no packed products on this processor",
)


SIZES = Vocabularies(2100, 2100)


def model_of(dtype: torch.dtype) -> Transformer:
    """A small Transformer with feed-forward layers that are large enough to be packed."""
    torch.manual_seed(0)
    config = TransformerConfig(d_model=128, d_ff=2048, num_encoder_layers=1, num_decoder_layers=2)
    model = Transformer(config, SIZES).requires_grad_(False)
    nn.init.normal_(model.head.bias)
    return model.to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("num_rows", [1, 5])
def test_packed_weights_give_the_same_probabilities(dtype: torch.dtype, num_rows: int) -> None:
    plain = model_of(dtype)
    packed = copy.deepcopy(plain)
    pack(packed)
    source = random_source([7] * num_rows, vocabularies=SIZES)
    ids = torch.randint(4, 2100, (num_rows, 6))
    found = []
    with torch.inference_mode():
        for model in (plain, packed):
            features, _ = model.advance(ids, model.start(source))
            found.append(model.head.log_probs(features))
            subset = torch.tensor([3, 900, 17])
            found.append(model.head.log_probs(features, subset))
            found.append(model.head.log_prob(features, ids))
    tolerance = 1e-4 if dtype == torch.float32 else 0.1
    for ours, theirs in zip(found[3:], found[:3], strict=True):
        torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)


def test_what_gains_from_it_is_packed_and_nothing_else() -> None:
    model = model_of(torch.float32)
    pack(model)
    assert isinstance(model.head, PackedHead)
    assert isinstance(model.blocks[0].feed_forward.expand, PackedLinear)
    assert isinstance(model.blocks[0].self_attention.query, nn.Linear)  # small: a plain product is quicker
    half = model_of(torch.bfloat16)
    pack(half)
    assert isinstance(half.blocks[0].self_attention.query, PackedLinear)
    assert not any(isinstance(module, nn.Linear) for module in half.modules())


def test_where_pytorch_cannot_pack_nothing_is_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: False)
    model = model_of(torch.float32)
    pack(model)
    assert type(model.head) is LinearHead


NO_ROUNDING = pytest.mark.skipif(not can_round(nn.Linear(1, 1)), reason="PyTorch cannot multiply by eight-bit weights")


@NO_ROUNDING
@pytest.mark.parametrize("num_rows", [1, MOST_ROWS, MOST_ROWS + 1, 7])
@pytest.mark.parametrize("shape", [(5, 16), (64, 48), (33, 128), (1, 16)])
def test_rounded_weights_are_the_nearest_of_127_steps_for_few_rows_and_many(
    num_rows: int, shape: tuple[int, int]
) -> None:
    torch.manual_seed(1)
    weight, bias = torch.randn(shape).to(torch.bfloat16), torch.randn(shape[0]).to(torch.bfloat16)
    layer = RoundedLinear(weight, bias)
    steps = layer.scale.float()[:, None]
    near = layer.whole.float() * steps
    assert ((near - weight.float()).abs() <= steps * 0.51 + 127 * steps * 2**-8).all()
    x = torch.randn(num_rows, shape[1]).to(torch.bfloat16)
    exact = x.float() @ near.T + bias.float()
    with torch.inference_mode():
        torch.testing.assert_close(layer(x[:, None])[:, 0].float(), exact, rtol=0.02, atol=0.05 * shape[1] ** 0.5 / 4)


@NO_ROUNDING
def test_a_rounded_model_says_nearly_the_same_whatever_is_beside_a_row() -> None:
    exact = model_of(torch.float32)
    rounded = copy.deepcopy(exact).to(torch.bfloat16)
    pack(rounded, rounded=True)
    assert isinstance(rounded.blocks[0].feed_forward.expand, RoundedLinear)
    ids = torch.randint(4, 2100, (5, 1))
    with torch.inference_mode():
        found = []
        for model, rows in ((exact, slice(None)), (rounded, slice(None)), (rounded, slice(0, 1))):
            source = random_source([7] * len(ids[rows]), vocabularies=SIZES)
            features, _ = model.advance(ids[rows], model.start(source))
            found.append(model.head.log_probs(features)[0].float())
    torch.testing.assert_close(found[1], found[0], rtol=0, atol=0.3)
    torch.testing.assert_close(found[2], found[1], rtol=0, atol=0.15)


@NO_ROUNDING
def test_what_the_kernel_cannot_read_is_not_rounded() -> None:
    layers = nn.Sequential(nn.Linear(24, 8), nn.Linear(32, 8)).requires_grad_(False).to(torch.bfloat16)
    pack(layers, rounded=True)
    assert [type(layer) for layer in layers] == [PackedLinear, RoundedLinear]
