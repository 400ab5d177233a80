"""An attention from outside the package: one class and one key, with no change anywhere else."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from random_models import GPT, PAD, SMALL, VOCABULARIES, random_source, random_targets
from torch import Tensor

from heed.core.config import Document, build
from heed.models import build_model
from heed.models.gpt import GptConfig
from heed.models.model import ModelConfig
from heed.models.transformer import TransformerConfig
from heed.nn.attention import ATTENTION, BEGINNING, MultiHeadAttention
from heed.nn.contract import Smoothing
from heed.nn.scaled_dot_product import merge_heads, split_heads
from heed.nn.states import KeysValues, RowPositions


class TurningAttention(MultiHeadAttention):
    """Queries and keys are rotated by their positions (Su et al. 2021), so that scores depend on distances alone."""

    def queries(self, x: Tensor, positions: RowPositions) -> Tensor:
        heads = split_heads(super().queries(x, positions), self.num_heads)
        return merge_heads(rotated(heads, positions))

    def project(self, memory: Tensor, positions: RowPositions = BEGINNING) -> KeysValues:
        keys, values = super().project(memory, positions)
        return rotated(keys, positions), values


def rotated(x: Tensor, positions: RowPositions) -> Tensor:
    """Pairs of features `[B, H, T, K]`, each rotated at its own rate."""
    size = x.shape[-1] // 2
    at = positions.positions(x.shape[2], x.device)
    angles = at[..., None] * 100.0 ** (-torch.arange(size) / size)  # [T, K/2] or [B, T, K/2]
    angles = angles if angles.dim() == 2 else angles[:, None]
    a, b = x[..., :size], x[..., size:]
    return torch.cat((a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()), dim=-1)


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    ATTENTION["turning"] = TurningAttention
    yield
    del ATTENTION["turning"]


CONFIGS = [SMALL.model_copy(update={"attention": "turning"}), GPT.model_copy(update={"attention": "turning"})]
every_model = pytest.mark.parametrize("config", CONFIGS, ids=["transformer", "gpt"])


@pytest.mark.parametrize("table", [TransformerConfig, GptConfig])
def test_a_recipe_names_it(table: type[ModelConfig]) -> None:
    assert build(table, Document({"attention": "turning"})).model_dump()["attention"] == "turning"


@every_model
@torch.no_grad()
def test_decoding_token_by_token_equals_reading_at_once(config: ModelConfig) -> None:
    model, source, ids = build_model(config, VOCABULARIES), random_source([5, 3]), random_targets(2, 9)
    whole, _ = model.advance(ids, model.start(source))
    state, pieces = model.start(source, reserve=9), []
    for piece in ids.split([1, 6, 2], dim=1):
        features, state = model.advance(piece, state)
        pieces.append(features)
    torch.testing.assert_close(torch.cat(pieces, dim=1), whole, rtol=1e-4, atol=1e-5)


@every_model
@torch.no_grad()
def test_a_row_that_joins_later_has_its_own_positions(config: ModelConfig) -> None:
    model, ids = build_model(config, VOCABULARIES), random_targets(2, 6)
    _, first = model.advance(ids[:1, :4], model.start(random_source([5])))
    _, second = model.advance(ids[1:, :2], model.start(random_source([3], seed=1)))
    new = torch.tensor([[4], [5]])
    together, _ = model.advance(new, first.join(second))
    alone, _ = model.advance(new[1:], second)
    torch.testing.assert_close(together[1:], alone, rtol=1e-4, atol=1e-5)


@every_model
def test_it_learns(config: ModelConfig) -> None:
    torch.manual_seed(1)
    model, source, ids = build_model(config, VOCABULARIES), random_source([5, 3]), random_targets(2, 8)
    optimizer, losses = torch.optim.Adam(model.parameters(), lr=1e-2), []
    for _ in range(40):
        features, _ = model.advance(ids[:, :-1], model.start(source))
        loss, _ = model.head.loss(features, ids[:, 1:], ids[:, 1:] != PAD, Smoothing())
        optimizer.zero_grad()
        num_tokens = int((ids[:, 1:] != PAD).sum())
        (loss / num_tokens).backward()
        optimizer.step()
        losses.append(loss.item() / num_tokens)
    assert losses[-1] < 0.2 * losses[0]
