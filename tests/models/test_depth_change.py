"""Transfer to another depth: which layer each new layer is a copy of."""

from __future__ import annotations

import pytest
import torch

from heed.models import build_model
from heed.models.depth_change import fills, with_layers
from heed.models.rnn_lm import RecurrentConfig
from heed.models.transformer import TransformerConfig
from heed.nn.contract import Vocabularies
from heed.nn.weight_file import shapes_of


def stack(depth: int) -> dict[str, str]:
    return {f"encoder.blocks.{n}.norm.weight": f"layer {n}" for n in range(depth)} | {"head.bias": "head"}


@pytest.mark.parametrize(
    "old, new, layers",
    [
        (4, 6, [0, 0, 1, 2, 2, 3]),
        (3, 6, [0, 0, 1, 1, 2, 2]),
        (1, 2, [0, 0]),
        (4, 4, [0, 1, 2, 3]),
        (4, 2, [0, 3]),
        (6, 3, [0, 2, 5]),
        (12, 6, [0, 2, 4, 7, 9, 11]),
        (4, 1, [3]),
    ],
)
def test_deeper_stacks_repeat_layers_and_shallower_ones_keep_the_ends(old: int, new: int, layers: list[int]) -> None:
    expected = {f"encoder.blocks.{n}.norm.weight": f"layer {layer}" for n, layer in enumerate(layers)}
    assert with_layers(stack(old), stack(new)) == expected | {"head.bias": "head"}


def test_a_transformer_of_another_depth_has_each_of_its_weights_from_the_old_one() -> None:
    old = TransformerConfig(d_model=8, d_ff=8, num_heads=2, num_encoder_layers=2, num_decoder_layers=3)
    deeper = old.model_copy(update={"num_encoder_layers": 3, "num_decoder_layers": 2})
    weights = dict(build_model(old, Vocabularies(20, 20)).named_parameters())
    names = dict(build_model(deeper, Vocabularies(20, 20)).named_parameters())
    copied = with_layers(weights, names)
    assert shapes_of(copied) == shapes_of(names)
    for new, origin in (("encoder.blocks.1.", "encoder.blocks.0."), ("blocks.1.", "blocks.2.")):
        layer = {name.removeprefix(new): tensor for name, tensor in copied.items() if name.startswith(new)}
        assert layer
        assert all(torch.equal(tensor, weights[origin + name]) for name, tensor in layer.items())


def test_layers_that_are_no_stack_are_not_copied() -> None:
    models = (build_model(RecurrentConfig(d_model=4, hidden_size=4, num_layers=n), Vocabularies(0, 9)) for n in (1, 2))
    old, new = (shapes_of(dict(model.named_parameters())) for model in models)
    assert with_layers(old, new).keys() == old.keys() < new.keys()
    assert not fills(old, new)
    assert not fills(new, old)  # the head read the last layer, and the first one would remain
    assert fills(old, old) and fills(dict.fromkeys(stack(3), 1), dict.fromkeys(stack(2), 1))
