"""Claims of the notes about order: positions, permutations and shifts."""

from __future__ import annotations

import math

import pytest
import torch
from random_models import ONE_LAYER, SMALL, VOCABULARIES, random_rows
from torch import Tensor

from heed.models.one_layer import OneLayer
from heed.models.transformer import Transformer
from heed.nn.contract import TokenSource, Vocabularies
from heed.nn.embeddings import POSITIONS

SIZE = 12


def one_layer() -> OneLayer:
    """Kakade's one-layer Transformer in float64, so that what is equal is equal to the last digits."""
    torch.manual_seed(3)
    return OneLayer(ONE_LAYER, Vocabularies(0, SIZE)).double().requires_grad_(False)


def random_ids(length: int) -> Tensor:
    """A text of real tokens."""
    return torch.tensor(random_rows([length], SIZE))


def attend(model: OneLayer, x: Tensor) -> Tensor:
    """h = softmax(QKᵀ / √d_hidden) V of embedded tokens, each of which sees all others."""
    return (scores(model, x) / math.sqrt(model.config.hidden_size)).softmax(-1) @ model.value(x)


def scores(model: OneLayer, x: Tensor) -> Tensor:
    """M = QKᵀ."""
    return model.query(x) @ model.key(x).transpose(1, 2)


@pytest.mark.parametrize("kind", POSITIONS)
def test_a_fixed_offset_of_sinusoids_is_a_linear_map(kind: str) -> None:
    """O'Connor, "Why this function???": PE(pos + k) is a linear function of PE(pos). One matrix M_k serves all
    positions: it turns each pair of sine and cosine by k times its rate."""
    size, offset = 8, 5
    table = POSITIONS[kind](80, size).double()
    found = torch.linalg.lstsq(table[:-offset], table[offset:]).solution
    torch.testing.assert_close(table[:-offset] @ found, table[offset:], rtol=1e-4, atol=1e-5)
    turn = offset * 10000.0 ** (-torch.arange(0, size, 2, dtype=torch.float64) / size)
    of_sine, of_cosine = ((0, 1), (0, size // 2))[kind == "half_split"]
    pair = found[[of_sine, of_cosine]][:, [of_sine, of_cosine]]
    cosine, sine = turn[0].cos(), turn[0].sin()
    torch.testing.assert_close(pair, torch.stack((torch.stack((cosine, -sine)), torch.stack((sine, cosine)))),
                               rtol=1e-3, atol=1e-3)  # fmt: skip


def test_permuting_the_sequence_permutes_h() -> None:
    """Kakade, section 4.1, the lemma: with P = 0, x ↦ Πx makes h ↦ Πh; with positions it does not."""
    model, ids = one_layer(), random_ids(10)
    x, order = model.embedding[ids], torch.randperm(10, generator=torch.Generator().manual_seed(4))
    assert (attend(model, x[:, order]) - attend(model, x)[:, order]).abs().max() < 1e-14
    positions = model.positions[:10]
    assert not torch.allclose(attend(model, x[:, order] + positions), attend(model, x + positions)[:, order], rtol=1e-3)


@pytest.mark.parametrize("attention", ["dot", "scaled_dot", "projected", "projected_heads", "multi_head"])
@torch.no_grad()
def test_self_attention_without_positions_is_a_model_of_sets(attention: str) -> None:
    """Lecture 9, "Simple self attention is not a sequence model": a set model is every rung of its ladder, and a whole
    encoder of them. Once a mean forgets the positions, nothing tells two orders apart."""
    torch.manual_seed(5)
    config = SMALL.model_copy(update={"encoder_attention": attention, "positions": "none"})
    encoder, ids = Transformer(config, VOCABULARIES).encoder, torch.arange(3, 12)[None]
    order = torch.randperm(9, generator=torch.Generator().manual_seed(6))
    plain, permuted = (encoder.read(TokenSource(each, each > 0)) for each in (ids, ids[:, order]))
    torch.testing.assert_close(permuted, plain[:, order], rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(permuted.mean(1), plain.mean(1), rtol=1e-4, atol=1e-5)
    with_positions = Transformer(config.model_copy(update={"positions": "interleaved"}), VOCABULARIES).encoder
    plain, permuted = (with_positions.read(TokenSource(each, each > 0)) for each in (ids, ids[:, order]))
    assert not torch.allclose(permuted, plain[:, order], atol=1e-2)


def test_shifting_the_sequence_shifts_the_scores() -> None:
    """Kakade, section 4.1, P = 0: M_{i+τ, j+τ} of the shifted text is M_{i,j}, where both are inside."""
    model, shift = one_layer(), 3
    text = random_ids(10 + shift)
    here, moved = (model.embedding[text[:, begin : begin + 10]] for begin in (shift, 0))
    torch.testing.assert_close(scores(model, moved)[:, shift:, shift:], scores(model, here)[:, :-shift, :-shift])


def test_shifting_the_sequence_shifts_h_only_where_the_window_has_no_boundary() -> None:
    """Kakade, section 4.1: h_i ↦ h_{i+τ}. The softmax is over the whole window, so what moves out of it at one end and
    in at the other changes every h; where the window is a circle nothing moves out."""
    model, shift = one_layer(), 3
    text = random_ids(10 + shift)
    here, moved = (model.embedding[text[:, begin : begin + 10]] for begin in (shift, 0))
    assert not torch.allclose(attend(model, moved)[:, shift:], attend(model, here)[:, :-shift], rtol=1e-3)
    circle = attend(model, here.roll(shift, dims=1))
    torch.testing.assert_close(circle, attend(model, here).roll(shift, dims=1))


def test_an_embedded_text_has_a_row_for_each_position() -> None:
    """Kakade, section 4, step 1: "now x is of size d_embedding x T". With E of m x d and x of T x m, xE is T x d, as
    steps 2 and 3 need: QKᵀ is T x T."""
    model, text = one_layer(), random_ids(7)
    one_hot = torch.nn.functional.one_hot(text[0], SIZE).double()  # T x m
    embedded = one_hot @ model.embedding
    assert embedded.shape == (7, ONE_LAYER.d_model)
    assert scores(model, embedded[None]).shape == (1, 7, 7)
    torch.testing.assert_close(embedded, model.embedding[text[0]])
