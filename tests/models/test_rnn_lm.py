"""Recurrent language models: plain, AWD-LSTM, residual, and with an adaptive softmax."""

from __future__ import annotations

import pytest
import torch
from pydantic import ValidationError
from random_models import VOCABULARIES, random_targets
from torch import Tensor, nn

from heed.models.rnn_lm import Recurrent, RecurrentConfig
from heed.nn.contract import Smoothing
from heed.nn.dropout_keys import DropoutKeys
from heed.nn.packing import pack
from heed.nn.recurrent import CELLS

V = VOCABULARIES.tgt_size
ROWS, STEPS = 3, 9
AWD = RecurrentConfig(
    d_model=8, hidden_size=12, num_layers=3, variational=True, dropout=0.4, input_dropout=0.5, layer_dropout=0.25,
    embedding_dropout=0.3, recurrent_dropout=0.5, activation_penalty=2.0, change_penalty=1.0,
)  # fmt: skip


def build(config: RecurrentConfig) -> Recurrent:
    """The model with random weights."""
    torch.manual_seed(3)
    model = Recurrent(config, VOCABULARIES)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5)
    return model


def dropout_keys_of(seed: int = 1) -> DropoutKeys:
    """The dropout of one update."""
    return DropoutKeys.for_step(seed, 2, torch.arange(ROWS))


def run(model: Recurrent, dropout_keys: DropoutKeys | None = None) -> Tensor:
    """Features of random tokens from a fresh start."""
    return model.advance(random_targets(ROWS, STEPS), model.start(None, ROWS, dropout_keys=dropout_keys))[0]


@torch.no_grad()
def test_it_is_an_embedding_a_stack_of_lstms_and_a_softmax_with_the_same_weights() -> None:
    model, ids = build(RecurrentConfig(d_model=8, hidden_size=12, num_layers=3)), random_targets(ROWS, STEPS)
    x = model.embedding[ids]
    for layer, (size_in, size_out) in zip(model.layers, [(8, 12), (12, 12), (12, 8)], strict=True):
        theirs = nn.LSTM(size_in, size_out, batch_first=True)
        theirs.load_state_dict({
            "weight_ih_l0": layer.input.weight, "bias_ih_l0": layer.input.bias,
            "weight_hh_l0": layer.recurrent.weight, "bias_hh_l0": layer.recurrent.bias,
        })  # fmt: skip
        x, _ = theirs(x)
    expected = (x @ model.embedding.T + model.head.bias).log_softmax(-1)
    torch.testing.assert_close(model.head.log_probs(run(model)), expected, rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_without_a_bias_the_softmax_is_over_the_products_with_the_embeddings_alone() -> None:
    """P(w | h) = softmax_w e(w) · h, as in McAllester's notes."""
    model = build(RecurrentConfig(d_model=8, hidden_size=8, num_layers=1, output_bias=False))
    features = run(model)
    expected = (features @ model.embedding.T).log_softmax(-1)
    torch.testing.assert_close(model.head.log_probs(features), expected)
    assert model.head.bias is None


@pytest.mark.parametrize("cell", CELLS)
@torch.no_grad()
def test_residual_layers_add_their_input_to_their_output(cell: str) -> None:
    plain = RecurrentConfig(cell=cell, d_model=8, hidden_size=8, num_layers=1)
    for num_layers in (1, 2):
        with_sum = build(plain.model_copy(update={"residual": True, "num_layers": num_layers}))
        x = with_sum.embedding[random_targets(ROWS, STEPS)]
        for layer in with_sum.layers:
            alone = build(plain)
            alone.layers[0].load_state_dict(layer.state_dict())
            alone.embedding.data = x.flatten(0, 1)  # each position is a word of its own
            places = torch.arange(ROWS * STEPS).view(ROWS, STEPS)
            out, _ = alone.advance(places, alone.start(None, ROWS))
            x = x + out
        torch.testing.assert_close(run(with_sum), x)


# Dropout


@torch.no_grad()
def test_variational_dropout_drops_the_same_features_everywhere_and_plain_dropout_others() -> None:
    for variational in (True, False):
        features = run(build(RecurrentConfig(d_model=40, dropout=0.5, variational=variational)), dropout_keys_of())
        dropped = features == 0
        assert 0.3 < dropped.float().mean() < 0.7
        assert torch.equal(dropped.all(1), dropped.any(1)) == variational
        assert not torch.equal(dropped[0], dropped[1]), "rows have masks of their own"


@torch.no_grad()
def test_embedding_dropout_drops_words_from_the_whole_batch() -> None:
    config = RecurrentConfig(d_model=30, hidden_size=30, num_layers=1, dropout=0.0, embedding_dropout=0.5)
    model = build(config)
    vectors = model._embed(torch.arange(V)[:, None], dropout_keys_of())[:, 0]
    factors = vectors / model.embedding
    assert set(factors.mean(1).round(decimals=3).tolist()) == {0.0, 2.0}
    assert torch.allclose(factors, factors[:, :1].expand_as(factors)), "a word as a whole"
    other = model._embed(torch.arange(V)[:, None], dropout_keys_of(seed=8))[:, 0]
    assert not torch.equal(other == 0, vectors == 0)


@torch.no_grad()
def test_each_kind_of_dropout_has_its_own_probability() -> None:
    none = dict.fromkeys(("dropout", "input_dropout", "layer_dropout", "embedding_dropout", "recurrent_dropout"), 0.0)
    still = AWD.model_copy(update={**none, "activation_penalty": 0.0, "change_penalty": 0.0})
    plain = run(build(still))
    torch.testing.assert_close(run(build(still), dropout_keys_of()), plain)
    for place in none:
        assert not torch.allclose(run(build(still.model_copy(update={place: 0.5})), dropout_keys_of()), plain), place
    usual = still.model_copy(update={"dropout": 0.5, "input_dropout": None, "layer_dropout": None})
    written = still.model_copy(update={"dropout": 0.5, "input_dropout": 0.5, "layer_dropout": 0.5})
    torch.testing.assert_close(run(build(usual), dropout_keys_of()), run(build(written), dropout_keys_of()))


# Activation regularisation


def test_the_penalty_is_that_of_merity_et_al() -> None:
    """loss + α mean(dropped output²) + β mean((h_{t+1} - h_t)²), for the mean loss of a batch without padding."""
    model, ids = build(AWD), random_targets(ROWS, STEPS)
    features = run(model, dropout_keys_of())
    dropped, plain = features.split(AWD.d_model, dim=-1)
    mask = torch.ones_like(ids, dtype=torch.bool)
    loss_sum, nll_sum = model.head.loss(features, ids, mask, Smoothing())
    nll = -model.head.log_prob(features, ids)
    expected = nll.mean() + 2 * dropped.pow(2).mean() + (plain[:, 1:] - plain[:, :-1]).pow(2).mean()
    torch.testing.assert_close(loss_sum / mask.sum(), expected)
    torch.testing.assert_close(nll_sum, nll.sum().detach())
    kept = dropped != 0
    torch.testing.assert_close(dropped[kept], plain[kept] * 256 / (256 - round(0.4 * 256)))


def test_padding_has_no_penalty() -> None:
    model, ids = build(AWD), random_targets(ROWS, STEPS)
    features = run(model, dropout_keys_of())
    mask = torch.arange(STEPS) < torch.tensor([STEPS, 4, 4])[:, None]
    whole, _ = model.head.loss(features, ids, mask, Smoothing())
    features[1:, 4:] = 99.0
    torch.testing.assert_close(model.head.loss(features, ids, mask, Smoothing())[0], whole)


def test_without_dropout_features_and_loss_are_plain() -> None:
    model, ids = build(AWD), random_targets(ROWS, STEPS)
    features = run(model)
    assert features.shape[-1] == AWD.d_model
    loss_sum, nll_sum = model.head.loss(features, ids, ids > 0, Smoothing())
    torch.testing.assert_close(loss_sum.detach(), nll_sum)


# Sizes and choices


@pytest.mark.parametrize("cell", CELLS)
def test_the_number_of_weights_follows_from_the_sizes(cell: str) -> None:
    gates = {"tanh": 1, "sigmoid": 1, "ugrnn": 2, "gru_reset_before": 3, "gru_reset_after": 3, "lstm": 4}[cell]
    biases = 2 if cell in ("tanh", "gru_reset_after", "lstm") else 1
    expected = V * 8 + V
    for size_in, size_out in ((8, 12), (12, 8)):
        expected += gates * size_out * (size_in + size_out + biases)
    model = build(RecurrentConfig(cell=cell, d_model=8, hidden_size=12))
    assert sum(parameter.numel() for parameter in model.parameters()) == expected


def test_initial_weights_are_within_the_chosen_bound() -> None:
    """As Zaremba et al. (2014) have it: all of them uniform in ± 0.05."""
    config = RecurrentConfig(d_model=30, hidden_size=30, tie=False, embedding_bound=0.05, layer_bound=0.05)
    torch.manual_seed(3)
    weights = torch.cat([parameter.detach().flatten() for parameter in Recurrent(config, VOCABULARIES).parameters()])
    assert 0.04 < weights.abs().max() <= 0.05


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"residual": True, "d_model": 8, "hidden_size": 9}, "hidden_size must equal d_model: got 9 and 8"),
        ({"cutoffs": (100,)}, "model.tie = false"),
    ],
)
def test_incompatible_options_are_refused(choices: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        RecurrentConfig.model_validate(choices)


@pytest.mark.parametrize("cell", ["lstm", "gru_reset_before"])
@torch.no_grad()
def test_a_packed_model_computes_the_same(cell: str) -> None:
    model = Recurrent(RecurrentConfig(cell=cell, d_model=384, hidden_size=384, num_layers=1), VOCABULARIES)
    expected = run(model)
    pack(model)
    assert model.layers[0].recurrent.weight.is_mkldnn
    torch.testing.assert_close(run(model), expected, rtol=1e-4, atol=1e-4)
