"""Is every model built from its own config, and from nothing but that and the random numbers?"""

from __future__ import annotations

import pytest
import torch
from pydantic import TypeAdapter
from random_models import CONFIGS, VOCABULARIES

from heed.models import MODELS, ModelConfig, build_model


@pytest.mark.parametrize("name", CONFIGS)
def test_a_config_builds_the_model_of_its_kind(name: str) -> None:
    assert type(build_model(CONFIGS[name], VOCABULARIES)) is MODELS[CONFIGS[name].kind]


@pytest.mark.parametrize("name", CONFIGS)
def test_the_same_seed_gives_the_same_weights(name: str) -> None:
    models = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        models.append(dict(build_model(CONFIGS[name], VOCABULARIES).named_parameters()))
    first, same, other = models
    assert all(weight.equal(same[key]) for key, weight in first.items())
    assert not first or not all(weight.equal(other[key]) for key, weight in first.items())


@pytest.mark.parametrize("kind", MODELS)
def test_a_recipe_tells_the_models_apart_by_their_kind(kind: str) -> None:
    assert TypeAdapter(ModelConfig).validate_python({"kind": kind}).kind == kind
