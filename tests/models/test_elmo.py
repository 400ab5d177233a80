"""ELMo: equal to its formula written out, from heed's own language models."""

from __future__ import annotations

import pytest
import torch
from random_models import GPT, READER_CONFIGS, model_of, random_source
from torch import Tensor

from heed.core.errors import UsageError
from heed.models import build_model
from heed.models.elmo import Elmo, ElmoConfig
from heed.models.rnn_lm import RecurrentConfig
from heed.nn.contract import Vocabularies
from heed.nn.recurrent import unroll


def states(reader: Elmo, name: str, ids: list[int]) -> list[Tensor]:
    """h_0 … h_L of a language model after each of these tokens, cell by cell."""
    model = getattr(reader, f"{name}_lm")
    x = model.embedding[torch.tensor(ids)]
    layers = [x]
    for cell in model.layers:
        state, outputs = cell.zeros(1), []
        for vector in x:
            output, state = unroll(cell, vector[None, None], state, 0.0, None)
            outputs.append(output[0, 0])
        x = torch.stack(outputs)
        layers.append(x)
    return layers


@torch.no_grad()
def test_the_features_equal_the_formula_written_out() -> None:
    """γ Σ_j softmax(w)_j [→h_{k,j} ; ←h_{k,j}] (Peters et al. 2018, equation 1)."""
    reader, source = model_of("elmo"), random_source([5, 2])
    features = reader.read(source)
    for row, length in enumerate([5, 2]):
        text = source.ids[row, :length].tolist()
        forward = states(reader, "forward", [1, *text])
        backward = states(reader, "backward", [1, *text[::-1]])
        shares = reader.mix.weights.exp() / reader.mix.weights.exp().sum()
        for k in range(length):
            layers = [torch.cat((f[k + 1], b[length - k])) for f, b in zip(forward, backward, strict=True)]
            expected = reader.mix.scale * sum(share * layer for share, layer in zip(shares, layers, strict=True))
            torch.testing.assert_close(features[row, k], expected)
        end = [torch.cat((f[length], b[0])) for f, b in zip(forward, backward, strict=True)]
        torch.testing.assert_close(reader.layers(source)[1][row, length], end[1])


@torch.no_grad()
@pytest.mark.parametrize("name", ["rnn", "gpt"])
def test_the_last_hidden_layer_is_what_the_language_model_computes(name: str) -> None:
    model, ids = model_of(name), torch.tensor([[1, 5, 6, 7], [1, 8, 9, 4]])
    features, _ = model.advance(ids, model.start(None, 2))
    layers = model.hidden_layers(ids)
    torch.testing.assert_close(layers[-1], features)
    assert len(layers) == 3


def test_layers_of_different_sizes_cannot_be_mixed() -> None:
    lm = RecurrentConfig(d_model=10, hidden_size=20)
    with pytest.raises(UsageError, match=r'"mix" adds layers of equal size, .* \[10, 20\]'):
        ElmoConfig(forward=lm)
    assert ElmoConfig(forward=lm, layers="last").summary()
    with pytest.raises(UsageError, match="the same number of layers"):
        ElmoConfig(forward=GPT, backward=GPT.model_copy(update={"num_layers": 3}))


def test_all_layers_have_equal_shares_at_first() -> None:
    torch.manual_seed(1)
    reader = build_model(READER_CONFIGS["elmo"], Vocabularies(14, 3))
    assert reader.mix.weights.softmax(0).tolist() == pytest.approx([1 / 3] * 3)
    assert reader.mix.scale.tolist() == [1]
    assert not any("head" in name for name, _ in reader.named_parameters())
