"""Transformer blocks: equal to PyTorch's, post-norm and pre-norm, with dropout as in the paper."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from heed.models.transformer import DecoderBlock, EncoderBlock, Residual, TransformerConfig
from heed.nn.attention import MultiHeadAttention
from heed.nn.dropout_keys import DropoutKeys
from heed.nn.feed_forward import FeedForward
from heed.nn.states import AppendKV, RowPositions

D_MODEL, HEADS, D_FF = 12, 3, 20
norms = pytest.mark.parametrize("pre_norm", [False, True], ids=["post-norm", "pre-norm"])
activations = pytest.mark.parametrize("activation", ["relu", "gelu"])


def config_of(pre_norm: bool, activation: str = "relu", dropout: float = 0.1) -> TransformerConfig:
    """A small model, without dropout of attention weights."""
    return TransformerConfig(
        d_model=D_MODEL, num_heads=HEADS, d_ff=D_FF, dropout=dropout, norm="pre" if pre_norm else "post",
        activation=activation,
    )  # fmt: skip


def attention_weights_of(name: str, ours: MultiHeadAttention) -> dict[str, Tensor]:
    """Our weights under PyTorch's names."""
    return {
        f"{name}.in_proj_weight": torch.cat((ours.query.weight, ours.key_value.weight)),
        f"{name}.in_proj_bias": torch.cat((ours.query.bias, ours.key_value.bias)),
        f"{name}.out_proj.weight": ours.output.weight,
        f"{name}.out_proj.bias": ours.output.bias,
    }


def copy(theirs: nn.Module, attentions: dict[str, MultiHeadAttention], rest: dict[str, nn.Module]) -> nn.Module:
    """PyTorch's layer with our weights; strict, so that none is forgotten."""
    weights = {}
    for name, attention in attentions.items():
        weights |= attention_weights_of(name, attention)
    for name, module in rest.items():
        weights |= {f"{name}.weight": module.weight, f"{name}.bias": module.bias}
    theirs.load_state_dict(weights)
    return theirs.eval()


def fresh_cache(block: DecoderBlock, x: Tensor) -> AppendKV:
    """An empty cache of the block for the rows of `x`."""
    return AppendKV(block.self_attention.empty_cache(len(x), 0, x), 0)


def randomise(module: nn.Module) -> None:
    """No weight stays at a special first value."""
    torch.manual_seed(4)
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.3)


@norms
@activations
def test_an_encoder_block_equals_pytorch(pre_norm: bool, activation: str) -> None:
    ours = EncoderBlock(config_of(pre_norm, activation))
    randomise(ours)
    theirs = copy(
        nn.TransformerEncoderLayer(
            D_MODEL, HEADS, D_FF, activation=activation, batch_first=True, norm_first=pre_norm
        ),
        {"self_attn": ours.attention},
        {"linear1": ours.feed_forward.expand, "linear2": ours.feed_forward.contract,
         "norm1": ours.attention_residual.norm, "norm2": ours.feed_forward_residual.norm},
    )  # fmt: skip
    x = torch.randn(2, 7, D_MODEL)
    real = torch.arange(7) < torch.tensor([[7], [4]])
    found = ours(x, real[:, None, None], None)
    # With gradients PyTorch takes its plain path, which also gives numbers at padded positions.
    expected = theirs(x, src_key_padding_mask=~real)
    torch.testing.assert_close(found[real], expected[real], rtol=1e-5, atol=1e-5)


@norms
@activations
def test_a_decoder_block_equals_pytorch(pre_norm: bool, activation: str) -> None:
    ours = DecoderBlock(config_of(pre_norm, activation))
    randomise(ours)
    theirs = copy(
        nn.TransformerDecoderLayer(D_MODEL, HEADS, D_FF, activation=activation, batch_first=True, norm_first=pre_norm),
        {"self_attn": ours.self_attention, "multihead_attn": ours.cross_attention},
        {
            "linear1": ours.feed_forward.expand, "linear2": ours.feed_forward.contract,
            "norm1": ours.self_residual.norm, "norm2": ours.cross_residual.norm,
            "norm3": ours.feed_forward_residual.norm,
        },
    )  # fmt: skip
    x, memory = torch.randn(2, 5, D_MODEL), torch.randn(2, 7, D_MODEL)
    real = torch.arange(7) < torch.tensor([[7], [4]])
    causal = torch.ones(5, 5, dtype=torch.bool).tril()
    found = ours(
        x, fresh_cache(ours, x), causal, ours.cross_attention.project(memory), real[:, None, None], RowPositions(), None
    )  # fmt: skip
    expected = theirs(x, memory, tgt_mask=~causal, memory_key_padding_mask=~real)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


def test_the_feed_forward_layer_is_equation_2() -> None:
    layer = FeedForward(2, 1, "relu")
    layer.load_state_dict({
        "expand.weight": torch.tensor([[1.0, -1.0]]), "expand.bias": torch.tensor([0.5]),
        "contract.weight": torch.tensor([[2.0], [3.0]]), "contract.bias": torch.tensor([0.0, 1.0]),
    })  # fmt: skip
    x = torch.tensor([[[3.0, 1.0], [1.0, 3.0]]])  # inside: 2.5, and -1.5 which becomes 0
    assert layer(x).tolist() == [[[5.0, 8.5], [0.0, 1.0]]]


@norms
def test_dropout_is_on_the_output_of_the_sublayer_before_the_sum(pre_norm: bool) -> None:
    """LayerNorm(x + Dropout(Sublayer(x))), or x + Dropout(Sublayer(LayerNorm(x)))."""
    residual, dropout_keys = Residual(config_of(pre_norm, dropout=0.4)), DropoutKeys.for_step(1, 2, torch.arange(3))
    x = torch.randn(3, 4, D_MODEL)
    found = residual(x, lambda x: 2 * x, dropout_keys, site=5)
    if pre_norm:
        expected = x + dropout_keys.dropout(2 * residual.norm(x), 0.4, site=5)
    else:
        expected = residual.norm(x + dropout_keys.dropout(2 * x, 0.4, site=5))
    torch.testing.assert_close(found, expected)
    assert not torch.allclose(found, residual(x, lambda x: 2 * x, None, site=5))


def test_the_sublayers_of_a_block_have_different_dropout_masks() -> None:
    """If one sublayer outputs ones and the others zeros, a block adds that sublayer's mask to zeros."""
    encoder = EncoderBlock(config_of(pre_norm=True, dropout=0.5))
    decoder = DecoderBlock(config_of(pre_norm=True, dropout=0.5))
    dropout_keys, zeros = DropoutKeys.for_step(1, 2, torch.arange(1)), torch.zeros(1, 40, D_MODEL)
    memory = decoder.cross_attention.project(zeros)
    sublayers = {
        encoder: (encoder.attention.output, encoder.feed_forward.contract),
        decoder: (decoder.self_attention.output, decoder.cross_attention.output, decoder.feed_forward.contract),
    }
    for block, ends in sublayers.items():
        masks: list[Tensor] = []
        for one in ends:
            for end in ends:
                nn.init.zeros_(end.weight)
                nn.init.constant_(end.bias, float(end is one))
            rest = (None, memory, None, RowPositions(), dropout_keys)
            masks.append(
                block(zeros, None, dropout_keys)
                if block is encoder
                else block(zeros, fresh_cache(decoder, zeros), *rest)
            )
            assert 0.3 < (masks[-1] > 0).float().mean() < 0.7
            assert all(0.3 < (masks[-1] == other).float().mean() < 0.7 for other in masks[:-1])
