"""States of language models: saved, restored, split and joined."""

from __future__ import annotations

import pytest
import torch
from random_models import CONFIGS, model_of, random_targets
from safetensors.torch import load, save

from heed.models import MODELS
from heed.nn.dropout_keys import DropoutKeys
from heed.nn.state_io import renewed, state_tensors, with_tensors

LANGUAGE_MODELS = [name for name, config in CONFIGS.items() if not MODELS[config.kind].needs_source]
CPU = torch.device("cpu")
CLOSE = {"rtol": 1e-4, "atol": 1e-5}


def dropout_keys_of(step: int) -> DropoutKeys:
    return DropoutKeys.for_step(7, step, torch.arange(3))


@pytest.mark.parametrize("name", LANGUAGE_MODELS)
@pytest.mark.parametrize("num_before", [1, 5])
@torch.no_grad()
def test_a_state_restored_from_a_file_continues_exactly(name: str, num_before: int) -> None:
    model, ids = model_of(name), random_targets(3, 9)
    before, after = ids[:, :num_before], ids[:, num_before:]
    _, state = model.advance(before, model.start(None, 3))
    kept = load(save({key: tensor.clone().contiguous() for key, tensor in state_tensors(state).items()}))
    expected, _ = model.advance(after, state)
    found, _ = model.advance(after, with_tensors(model.start(None, 3), kept, CPU))
    torch.testing.assert_close(found, expected, rtol=0, atol=0)


@pytest.mark.parametrize("name", LANGUAGE_MODELS)
@torch.no_grad()
def test_a_state_continues_with_new_dropout_keys_whole_or_in_parts(name: str) -> None:
    model, ids = model_of(name), random_targets(3, 8)

    def carried(rows: list[int]) -> object:
        _, state = model.advance(
            ids[rows, :4], model.start(None, len(rows), dropout_keys=dropout_keys_of(1).select(torch.tensor(rows)))
        )
        return state.detach()

    def then(state: object, rows: list[int]) -> torch.Tensor:
        fresh = model.start(None, len(rows), dropout_keys=dropout_keys_of(2).select(torch.tensor(rows)))
        features, _ = model.advance(ids[rows, 4:], renewed(state, fresh))
        return features

    whole = carried([0, 1, 2])
    expected = then(whole, [0, 1, 2])
    parts = carried([0, 1]).join(carried([2]))  # type: ignore[attr-defined]
    torch.testing.assert_close(then(parts, [0, 1, 2]), expected, **CLOSE)
    cut = [then(whole.select(torch.tensor(rows)), rows) for rows in ([0, 1], [2])]  # type: ignore[attr-defined]
    torch.testing.assert_close(torch.cat(cut), expected, **CLOSE)
    taken_up = with_tensors(model.start(None, 3, dropout_keys=dropout_keys_of(2)), state_tensors(whole), CPU)  # type: ignore[arg-type]
    again, _ = model.advance(ids[:, 4:], taken_up)
    torch.testing.assert_close(again, expected, rtol=0, atol=0)
