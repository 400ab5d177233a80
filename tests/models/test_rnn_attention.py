"""Recurrent translation model: Bahdanau et al. (2015) with PyTorch's GRU, step by step."""

from __future__ import annotations

import pytest
import torch
from random_models import CONFIGS, VOCABULARIES, random_source, random_targets, row_of
from torch import nn

from heed.core.errors import UsageError
from heed.models.rnn_attention import RecurrentAttention, RecurrentAttentionConfig
from heed.nn.contract import Vocabularies
from heed.nn.dropout_keys import DropoutKeys

CONFIG = CONFIGS["rnn_attention"]
assert isinstance(CONFIG, RecurrentAttentionConfig)


def build(**choices: object) -> RecurrentAttention:
    """The model with random weights."""
    torch.manual_seed(13)
    return RecurrentAttention(CONFIG.model_copy(update=choices), VOCABULARIES)


@torch.no_grad()
def test_features_equal_those_of_the_equations() -> None:
    """h = biGRU(x), s_0 = tanh(W h_1); c = attention(s_{i-1}, h), s_i = GRU(s_{i-1}, [e; c]), t = tanh(U [s; c; e])."""
    model, source, ids = build(), random_source([5, 3]), random_targets(2, 4)
    scale = CONFIG.d_model**0.5
    for row in range(2):
        alone = row_of(source, row)
        h, backward = model.encoder(model.src_embedding[alone.ids] * scale, alone.mask)
        s = torch.tanh(backward @ model.initial.weight.T + model.initial.bias)
        cell = nn.GRUCell(CONFIG.d_model + 2 * CONFIG.hidden_size, CONFIG.hidden_size)
        cell.load_state_dict({
            "weight_ih": model.cell.input.weight, "bias_ih": model.cell.input.bias,
            "weight_hh": model.cell.recurrent.weight, "bias_hh": model.cell.recurrent.bias,
        })  # fmt: skip
        attention, expected = model.attention, []
        for token in ids[row]:
            inner = torch.tanh(s @ attention.query.weight.T + h[0] @ attention.key.weight.T + attention.key.bias)
            context = (inner @ attention.score.weight[0]).softmax(0) @ h[0]
            e = model.embedding[token] * scale
            s = cell(torch.cat((e, context))[None], s)
            expected.append(torch.tanh(model.readout(torch.cat((s[0], context, e)))))
        found, _ = model.advance(ids[row : row + 1], model.start(alone))
        torch.testing.assert_close(found[0], torch.stack(expected), rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_dropout_changes_what_is_computed_and_dropout_of_zero_does_not() -> None:
    source, ids, dropout_keys = random_source([5, 3]), random_targets(2, 4), DropoutKeys.for_step(1, 1, torch.arange(2))
    for share in (0.0, 0.5):
        model = build(dropout=share)
        noisy, _ = model.advance(ids, model.start(source, dropout_keys=dropout_keys))
        plain, _ = model.advance(ids, model.start(source))
        assert torch.allclose(noisy, plain) == (share == 0.0)


def test_shared_weights_are_one_and_the_same() -> None:
    torch.manual_seed(13)
    shared = RecurrentAttention(CONFIG.model_copy(update={"tie": "all"}), Vocabularies(9, 9))
    assert shared.src_embedding is shared.embedding is shared.head.weight
    target = build(tie="target")
    assert target.embedding is target.head.weight
    assert target.src_embedding is not target.embedding
    none = build(tie="none")
    assert none.embedding is not none.head.weight


def test_the_number_of_weights_follows_from_the_sizes() -> None:
    d, n, a = CONFIG.d_model, CONFIG.hidden_size, CONFIG.attention_size
    src, tgt = VOCABULARIES.src_size, VOCABULARIES.tgt_size

    def gru(inputs: int) -> int:
        return 3 * n * (inputs + n + 2)

    expected = (
        (src + tgt) * d + tgt  # embeddings, and the output's bias
        + 2 * gru(d) + n * n + n  # encoder, first state
        + n * a + 2 * n * a + a + a  # attention
        + gru(d + 2 * n) + (3 * n + d) * d + d  # decoder, layer before the output
    )  # fmt: skip
    assert sum(parameter.numel() for parameter in build().parameters()) == expected


def test_one_embedding_for_two_vocabularies_is_refused_with_advice() -> None:
    with pytest.raises(UsageError, match=r"\(8 and 9 pieces\).*tokenizer.joint = true"):
        RecurrentAttention(CONFIG.model_copy(update={"tie": "all"}), Vocabularies(8, 9))


def test_a_translation_model_without_a_source_is_refused() -> None:
    with pytest.raises(ValueError, match="needs a source"):
        build().start(None)
