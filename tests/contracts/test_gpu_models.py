"""Laws of models on a GPU: features, losses and gradients are those of a CPU, with keyed dropout, too."""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import Any

import pytest
import torch
from gpu import GPU, assert_all_close, needs_gpu
from random_models import (
    BOS,
    CONFIGS,
    EOS,
    NAMES,
    PAD,
    READER_CONFIGS,
    VOCABULARIES,
    model_of,
    random_rows,
    random_targets,
    source_for,
)  # fmt: skip
from torch import Tensor

from heed.data.batch import collate
from heed.nn.contract import Smoothing
from heed.nn.dropout_keys import DropoutKeys
from heed.tasks.generation import chain_rule_loss

pytestmark = needs_gpu

LENGTHS = [5, 2, 9, 1]
ROWS = torch.arange(4)
TRAINED = [name for name in CONFIGS if not model_of(name).count_based]


def on_gpu(model: Any) -> Any:
    """A copy of a model."""
    return copy.deepcopy(model).to(GPU)


def keys_on(device: torch.device) -> DropoutKeys:
    return DropoutKeys.for_step(7, 3, ROWS.to(device))


def test_dropout_masks_are_those_of_a_cpu() -> None:
    cpu, gpu = keys_on(torch.device("cpu")), keys_on(GPU)
    for shape in [(5, 16), (3, 2, 7)]:
        assert gpu.keep(shape, 0.3).cpu().equal(cpu.keep(shape, 0.3))
    assert gpu.keep_ragged((3, 2, 7), 0.3, site=2).cpu().equal(cpu.keep_ragged((3, 2, 7), 0.3, site=2))
    assert gpu.uniform(9, site=1).cpu().equal(cpu.uniform(9, site=1))


@pytest.mark.parametrize("name", TRAINED)
@pytest.mark.parametrize("with_dropout", [False, True])
def test_losses_and_gradients(name: str, with_dropout: bool) -> None:
    model = model_of(name)
    has_words = model.needs_source and not hasattr(source_for(model, [1]), "pixels")
    sources = random_rows(LENGTHS, VOCABULARIES.src_size) if has_words else None
    batch = collate(sources, random_rows([3, 6, 2, 4], VOCABULARIES.tgt_size, 1), range(4), BOS, EOS, PAD)
    if model.needs_source and not has_words:
        batch = replace(batch, source=source_for(model, LENGTHS))
    found = _loss_and_gradients(on_gpu(model), batch.to(GPU), keys_on(GPU) if with_dropout else None)
    expected = _loss_and_gradients(model, batch, keys_on(torch.device("cpu")) if with_dropout else None)
    assert_all_close(found, expected, 2e-3)


def _loss_and_gradients(model: Any, batch: Any, keys: DropoutKeys | None) -> dict[str, Tensor]:
    model.zero_grad()
    smoothing = Smoothing() if getattr(model.config, "cutoffs", ()) else Smoothing(0.1)
    loss, nll, _ = chain_rule_loss(model, batch, smoothing, keys)
    loss.backward()
    gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    return {"loss": loss.detach(), "nll": nll, **gradients}


@pytest.mark.parametrize("name", NAMES)
@torch.no_grad()
def test_steps_of_rows_that_are_selected_and_joined(name: str) -> None:
    features = {}
    for device in (torch.device("cpu"), GPU):
        model = on_gpu(model_of(name)) if device == GPU else model_of(name)
        ids = random_targets(8, 6).to(device)
        state = model.start(source_for(model, LENGTHS).to(device), rows_per_source=2, reserve=8)
        first, state = model.advance(ids[:, :2], state)
        state = state.select(torch.tensor([1, 0, 2, 2, 7], device=device))
        second, state = model.advance(ids[:5, 2:3], state)
        third, _ = model.advance(ids[:5, 3:4], state)
        steps = {"first": first, "second": second, "third": third}
        features[device] = {at: model.head.log_probs(each).exp() for at, each in steps.items()}
    assert_all_close(features[GPU], features[torch.device("cpu")], 1e-3)


@pytest.mark.parametrize("name", READER_CONFIGS)
@pytest.mark.parametrize("with_dropout", [False, True])
@torch.no_grad()
def test_features_of_readers(name: str, with_dropout: bool) -> None:
    reader = model_of(name)
    source = source_for(reader, LENGTHS)
    expected = reader.read(source, keys_on(torch.device("cpu")) if with_dropout else None)
    found = on_gpu(reader).read(source.to(GPU), keys_on(GPU) if with_dropout else None)
    assert_all_close({"features": found}, {"features": expected}, 1e-3)
