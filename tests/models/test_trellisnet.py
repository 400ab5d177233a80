"""Trellis network with block-sparse weights: a truncated recurrent network (Bai et al. 2019, theorem 1)."""

from __future__ import annotations

import pytest
import torch
from random_models import VOCABULARIES, random_targets
from torch import nn

from heed.core.errors import UsageError
from heed.models.trellisnet import TrellisNet, TrellisNetConfig
from heed.nn.dropout_keys import DropoutKeys

SIZE = 5
FROM_PYTORCH = (1, 0, 2, 3)
"""Our gates forget, enter, new, output are PyTorch's f, i, g, o."""


@torch.no_grad()
def trellis_of(lstm: nn.LSTM, memory: int) -> TrellisNet:
    """The construction of the theorem: block l of the features is layer l; M + L - 1 levels for a memory of M steps."""
    num_layers = lstm.num_layers
    config = TrellisNetConfig(
        d_model=SIZE, hidden_size=num_layers * SIZE, num_levels=memory + num_layers - 1, dropout=0.0
    )
    model = TrellisNet(config, VOCABULARIES)
    nn.init.normal_(model.embedding)
    for parameter in (*model.input.parameters(), *model.between.parameters()):
        nn.init.zeros_(parameter)
    inputs = model.input.weight.view(4, num_layers, SIZE, 2, SIZE)  # gate, block, row, before or now, column
    biases = model.input.bias.view(4, num_layers, SIZE)
    between = model.between.weight.view(4, num_layers, SIZE, 2, num_layers, SIZE)
    for layer in range(num_layers):
        own = dict(lstm.named_parameters())
        of_input = own[f"weight_ih_l{layer}"].view(4, SIZE, SIZE)[list(FROM_PYTORCH)]
        if layer == 0:
            inputs[:, 0, :, 1] = of_input
        else:
            between[:, layer, :, 1, layer - 1] = of_input
        between[:, layer, :, 0, layer] = own[f"weight_hh_l{layer}"].view(4, SIZE, SIZE)[list(FROM_PYTORCH)]
        if lstm.bias:
            both = own[f"bias_ih_l{layer}"] + own[f"bias_hh_l{layer}"]
            biases[:, layer] = both.view(4, SIZE)[list(FROM_PYTORCH)]
    return model


@pytest.mark.parametrize("memory", [1, 3, 6])
@pytest.mark.parametrize(("num_layers", "bias"), [(1, True), (2, False), (3, False)])
@torch.no_grad()
def test_it_equals_a_truncated_lstm(num_layers: int, bias: bool, memory: int) -> None:
    """A layer above the first must stay zero where it reads nothing, so it has no bias there."""
    torch.manual_seed(2)
    lstm = nn.LSTM(SIZE, SIZE, num_layers, bias=bias, batch_first=True)
    for parameter in lstm.parameters():
        nn.init.normal_(parameter)
    model, ids = trellis_of(lstm, memory), random_targets(2, 9)
    found, _ = model.advance(ids, model.start(None, 2))
    vectors = model.embedding[ids]
    for t in range(9):
        remembered = vectors[:, max(0, t + 1 - memory) : t + 1]
        torch.testing.assert_close(found[:, t], lstm(remembered)[0][:, -1], rtol=1e-4, atol=1e-5)


@torch.no_grad()
def test_a_token_sees_as_many_tokens_as_there_are_levels_and_no_more() -> None:
    torch.manual_seed(2)
    model = TrellisNet(TrellisNetConfig(d_model=SIZE, hidden_size=7, num_levels=3), VOCABULARIES)
    for parameter in model.parameters():
        nn.init.normal_(parameter)
    ids = random_targets(1, 8)
    before, _ = model.advance(ids, model.start(None))
    ids[0, 2] = 3 if ids[0, 2] != 3 else 4
    after, _ = model.advance(ids, model.start(None))
    changed = [not torch.equal(a, b) for a, b in zip(before[0], after[0], strict=True)]
    assert changed == [False, False, True, True, True, True, False, False], "x comes in with W_1 too: one step more"


def test_dropout_is_the_same_at_all_positions() -> None:
    config = TrellisNetConfig(d_model=SIZE, hidden_size=7, num_levels=3, dropout=0.5)
    model = TrellisNet(config, VOCABULARIES)
    features, _ = model.advance(
        random_targets(3, 9), model.start(None, 3, dropout_keys=DropoutKeys.for_step(1, 1, torch.arange(3)))
    )
    dropped = features == 0
    assert 0 < dropped.float().mean() < 1
    assert torch.equal(dropped.all(1), dropped.any(1))


def test_an_output_wider_than_a_level_is_refused() -> None:
    with pytest.raises(UsageError, match="at least d_model"):
        TrellisNetConfig(d_model=8, hidden_size=7)
