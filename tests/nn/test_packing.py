"""Packed weights compute the same as plain ones."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from random_models import CONFIGS, READER_CONFIGS, VOCABULARIES, random_documents, random_source, source_for
from random_models import model_of as model_of_kind
from torch import nn

from heed.core.errors import UsageError
from heed.models import Model, build_model
from heed.models.encoder_decoder import EncoderDecoderConfig
from heed.models.gpt import GptConfig
from heed.models.recurrent_decoder import RecurrentDecoderConfig
from heed.models.rnn_attention import RecurrentAttentionConfig
from heed.models.rnn_lm import RecurrentConfig
from heed.models.rnn_reader import RecurrentReaderConfig
from heed.models.transformer import Transformer, TransformerConfig
from heed.models.trellisnet import TrellisNetConfig
from heed.nn.attention import ATTENTION
from heed.nn.contract import Vocabularies
from heed.nn.heads import LinearHead
from heed.nn.packing import MOST_ROWS, PackedHead, PackedLinear, RoundedLinear, can_round, gelu_function_of, pack
from heed.nn.recurrent import CELLS

pytestmark = [
    pytest.mark.processor,
    pytest.mark.skipif(
        not (torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_reorder_linear_weight")),
        reason="PyTorch has no packed products on this processor",
    ),
]


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


NETWORKS = [name for name in CONFIGS if not model_of_kind(name).count_based]
EIGHT_BITS = {
    "rnn_attention": RecurrentAttentionConfig(d_model=32, hidden_size=32, attention_size=16, tie="target"),
    "encoder_decoder": EncoderDecoderConfig(
        d_model=32,
        encoder=RecurrentReaderConfig(d_model=32, hidden_size=32, num_layers=2),
        decoder=RecurrentDecoderConfig(hidden_size=32, attention="additive_concatenated", input_feeding=True),
    ),
    "trellisnet": TrellisNetConfig(d_model=16, hidden_size=32, num_levels=3),
    "adaptive": RecurrentConfig(d_model=32, hidden_size=32, tie=False, cutoffs=(5, 8)),
    **{cell: RecurrentConfig(cell=cell, d_model=16, hidden_size=32) for cell in CELLS},
}


def require_the_same(plain: Model, packed: Model, tolerance: float) -> None:
    """The log-probabilities of both models for two rows, read at once and token by token."""
    source = source_for(plain, [7, 7])
    ids = torch.randint(4, VOCABULARIES.tgt_size, (2, 10))
    found = []
    with torch.inference_mode():
        for model in (plain, packed):
            features, state = model.advance(ids[:, :9], model.start(source))
            last, _ = model.advance(ids[:, 9:], state)
            found.append(model.head.log_probs(torch.cat((features, last), dim=1)).float())
            found.append(model.head.log_prob(features, ids[:, 1:]).float())
    for ours, theirs in zip(found[2:], found[:2], strict=True):
        torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize(("dtype", "small"), [(torch.float32, 1), (torch.float32, 401), (torch.bfloat16, 1)])
def test_every_model_computes_the_same_when_all_or_some_of_its_weights_are_packed(
    name: str, dtype: torch.dtype, small: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 401 the input's product of an LSTM is packed and the recurrent one is not."""
    monkeypatch.setattr("heed.nn.packing.SMALL", small)
    plain = model_of_kind(name).requires_grad_(False).to(dtype)
    packed = copy.deepcopy(plain)
    pack(packed)
    require_the_same(plain, packed, 1e-4 if dtype == torch.float32 else 0.1)


@pytest.mark.parametrize("attention", ATTENTION)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_every_attention_computes_the_same_when_it_is_packed(
    attention: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a translator and of a language model, whose cache has float32 on a CPU."""
    monkeypatch.setattr("heed.nn.packing.SMALL", 1)
    sizes: dict[str, Any] = {"d_model": 16, "d_ff": 16, "num_heads": 2, "attention": attention}
    for config in (TransformerConfig(tie="target", **sizes), GptConfig(max_len=8, **sizes)):
        plain = build_model(config, VOCABULARIES).requires_grad_(False).to(dtype)
        packed = copy.deepcopy(plain)
        pack(packed)
        require_the_same(plain, packed, 1e-4 if dtype == torch.float32 else 0.1)


@torch.inference_mode()
@pytest.mark.parametrize("name", READER_CONFIGS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_every_reader_computes_the_same_when_it_is_packed(
    name: str, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("heed.nn.packing.SMALL", 1)
    plain = model_of_kind(name).to(dtype)
    packed = copy.deepcopy(plain)
    pack(packed)
    source = random_documents([3, 1]) if plain.source == "documents" else random_source([7, 4])
    theirs, ours = plain.read(source)[source.mask], packed.read(source)[source.mask]
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-4 if dtype == torch.float32 else 0.1)


@pytest.mark.parametrize("name", EIGHT_BITS)
def test_models_of_all_kinds_can_have_weights_of_eight_bits(name: str) -> None:
    torch.manual_seed(0)
    plain = build_model(EIGHT_BITS[name], VOCABULARIES).requires_grad_(False).eval().to(torch.bfloat16)
    if not can_round(plain):
        pytest.skip("PyTorch cannot multiply by eight-bit weights")
    rounded = copy.deepcopy(plain)
    pack(rounded, rounded=True)
    assert any(isinstance(module, RoundedLinear) for module in rounded.modules())
    require_the_same(plain, rounded, 0.1)


def test_only_weights_for_which_it_pays_are_packed() -> None:
    model = model_of(torch.float32)
    pack(model)
    assert isinstance(model.head, PackedHead)
    assert isinstance(model.blocks[0].feed_forward.expand, PackedLinear)
    assert isinstance(model.blocks[0].self_attention.query, nn.Linear)  # small: a plain product is quicker


@pytest.mark.parametrize("num_rows", [1, 16])
def test_gelu_after_a_packed_layer_is_the_approximation_with_tanh(num_rows: int) -> None:
    torch.manual_seed(1)
    layer, x = nn.Linear(48, 96).requires_grad_(False), torch.randn(num_rows, 48)
    expected = F.gelu(layer(x), approximate="tanh")
    for packed in (layer, PackedLinear(layer.weight, layer.bias)):
        torch.testing.assert_close(gelu_function_of(packed)(x), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("supported", [True, False])
def test_bfloat16_is_packed_on_processors_that_multiply_it(monkeypatch: pytest.MonkeyPatch, supported: bool) -> None:
    """Whatever the processor of this machine can do: the products are not computed."""

    def reorder(weight: torch.Tensor, batch_size: int | None) -> torch.Tensor:
        return weight

    monkeypatch.setattr(torch.ops.mkldnn, "_is_mkldnn_bf16_supported", lambda: supported)
    monkeypatch.setattr(torch.ops.mkldnn, "_reorder_linear_weight", reorder)
    model = model_of(torch.bfloat16)
    pack(model)
    packed = isinstance(model.blocks[0].self_attention.query, PackedLinear)  # small, but bfloat16 always gains
    assert packed is isinstance(model.head, PackedHead) is supported
    assert any(isinstance(module, nn.Linear) for module in model.modules()) is not supported
    assert can_round(model) is supported
    if not supported:
        with pytest.raises(UsageError, match="int8"):
            pack(model, rounded=True)


def test_nothing_changes_if_pytorch_cannot_pack(monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_a_rounded_model_is_close_to_the_exact_one_for_any_number_of_rows() -> None:
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
def test_sizes_that_the_kernel_cannot_read_are_not_rounded() -> None:
    layers = nn.Sequential(nn.Linear(24, 8), nn.Linear(32, 8)).requires_grad_(False).to(torch.bfloat16)
    pack(layers, rounded=True)
    assert [type(layer) for layer in layers] == [PackedLinear, RoundedLinear]
