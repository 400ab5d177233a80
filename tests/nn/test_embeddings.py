"""Position encodings: equal to the papers, and added to the right embeddings."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn
from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding

from heed.nn.dropout_keys import DropoutKeys
from heed.nn.embeddings import POSITIONS, TokenEmbedding, half_split, interleaved

SIZE = 6
kinds = pytest.mark.parametrize("kind", ["interleaved", "half_split", "concatenated"])


def embedding_of(kind: str, d_model: int = 8) -> TokenEmbedding:
    """Ten words; with concatenated positions a quarter of the features is left for the position."""
    torch.manual_seed(7)
    width = d_model * 3 // 4 if kind == "concatenated" else d_model
    return TokenEmbedding(nn.Parameter(torch.randn(10, width)), d_model, kind, dropout=0.5)


def test_interleaved_encodings_are_the_formula_of_the_paper() -> None:
    table = interleaved(50, SIZE)
    for pos in (0, 1, 7, 49):
        for i in range(SIZE // 2):
            angle = pos / 10000 ** (2 * i / SIZE)
            assert table[pos, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert table[pos, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-6)


def test_half_split_encodings_are_the_same_numbers_in_another_order() -> None:
    assert half_split(50, SIZE).equal(torch.cat((interleaved(50, SIZE)[:, ::2], interleaved(50, SIZE)[:, 1::2]), 1))


def test_half_split_encodings_are_those_of_marian() -> None:
    theirs = MarianSinusoidalPositionalEmbedding(300, 32)
    torch.testing.assert_close(half_split(300, 32), theirs.create_weight(), rtol=1e-5, atol=1e-5)


def test_an_odd_size_is_refused() -> None:
    with pytest.raises(ValueError, match="even size, got 5"):
        interleaved(3, 5)


@pytest.mark.parametrize("kind", POSITIONS)
def test_embeddings_are_scaled_by_the_root_of_their_size_and_positions_are_added(kind: str) -> None:
    embedding, ids = embedding_of(kind), torch.tensor([[3, 9, 3]])
    expected = embedding.weight[ids] * math.sqrt(8) + POSITIONS[kind](3, 8)
    torch.testing.assert_close(embedding(ids), expected)


def test_concatenated_positions_follow_the_embedding() -> None:
    """h_0(t) = [e(w_t); pos(t)] of McAllester's notes."""
    embedding, ids = embedding_of("concatenated"), torch.tensor([[3, 9, 3]])
    found = embedding(ids)
    torch.testing.assert_close(found[..., :6], embedding.weight[ids] * math.sqrt(6))
    torch.testing.assert_close(found[0, :, 6:], interleaved(3, 2))


@kinds
def test_a_row_that_began_later_counts_positions_from_its_beginning(kind: str) -> None:
    embedding, ids = embedding_of(kind), torch.tensor([[4, 5], [4, 5]])
    found = embedding(ids, offset=3, first=torch.tensor([0, 2]))
    torch.testing.assert_close(found[0], embedding(ids, offset=3)[0])
    torch.testing.assert_close(found[1], embedding(ids, offset=1)[1])


@kinds
def test_the_table_grows_with_the_text_and_training_still_works(kind: str) -> None:
    embedding = embedding_of(kind)
    ids = torch.randint(10, (1, 700), generator=torch.Generator().manual_seed(1))
    with torch.inference_mode():
        long = embedding(ids)
    torch.testing.assert_close(long[:, :5], embedding(ids[:, :5]))
    fresh = embedding_of(kind)
    fresh.positions = fresh.table(700)
    torch.testing.assert_close(embedding(ids), fresh(ids))
    embedding(ids).sum().backward()
    assert embedding.weight.grad is not None


def test_positions_are_not_saved_with_the_weights() -> None:
    assert embedding_of("interleaved").state_dict().keys() == {"weight"}


def test_dropout_is_applied_to_the_sum_of_embedding_and_position() -> None:
    """Vaswani et al. (2017), section 5.4."""
    embedding, ids, dropout_keys = embedding_of("interleaved"), torch.tensor([[3, 9], [1, 2]]), noise_of_two_rows()
    dropped: Tensor = embedding(ids, dropout_keys)
    kept = dropped != 0
    assert 0 < kept.sum() < kept.numel()
    torch.testing.assert_close(dropped[kept], 2 * embedding(ids)[kept])


def noise_of_two_rows() -> DropoutKeys:
    """The dropout of some update."""
    return DropoutKeys.for_step(3, 4, torch.tensor([10, 20]))
