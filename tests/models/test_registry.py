"""Registry of models: each is built from its own config, and those from outside are tables of a recipe, too."""

from __future__ import annotations

from typing import Literal

import pytest
import torch
from pydantic import TypeAdapter
from random_models import CONFIGS, VOCABULARIES

from heed.core.config import Config, Document, build, to_toml
from heed.core.errors import UsageError
from heed.models import MODELS, AnyConfig, Model, ModelConfig, build_model
from heed.models.ngram import NgramConfig


class Recipe(Config):
    """A recipe with nothing but a model."""

    model: AnyConfig = NgramConfig()
    """The model."""


def recipe(**model: object) -> Recipe:
    return build(Recipe, Document({"model": model}))


class ToyConfig(ModelConfig):
    """A toy model."""

    kind: Literal["toy"] = "toy"
    """Which model this is."""
    size: int = 3
    """Its size."""


class Toy(Model):
    """A model from outside the package."""

    Config = ToyConfig


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(MODELS, "toy", Toy)


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
def test_every_key_is_the_kind_of_its_model(kind: str) -> None:
    assert MODELS[kind].Config().kind == kind
    assert TypeAdapter(AnyConfig).validate_python({"kind": kind}) == MODELS[kind].Config()


@pytest.mark.parametrize("kind", MODELS)
def test_every_model_has_a_summary_and_papers_to_cite(kind: str) -> None:
    assert MODELS[kind].papers
    assert "kind" not in MODELS[kind].Config().summary()


def test_a_registered_model_is_a_table_of_the_recipe(toy: None) -> None:
    read = recipe(kind="toy", size=5)
    assert read.model == ToyConfig(size=5)
    assert to_toml(read) == '[model]\nkind = "toy"\nsize = 5\n'
    with pytest.raises(UsageError, match=r"model\.size: expected a whole number, got 'x'"):
        recipe(kind="toy", size="x")


def test_an_unregistered_kind_is_refused() -> None:
    with pytest.raises(UsageError, match=r"model\.kind: expected one of 'transformer', .*, got 'toy'"):
        recipe(kind="toy")


@pytest.mark.parametrize(("kind", "cell"), [("lstm", "lstm"), ("gru", "gru_reset_after"), ("LSTM", "lstm")])
def test_the_name_of_a_cell_suggests_the_recurrent_model(kind: str, cell: str) -> None:
    with pytest.raises(UsageError, match=f'set model.kind = "rnn" and model.cell = "{cell}"'):
        recipe(kind=kind)


def test_a_cell_is_a_key_of_its_registry() -> None:
    with pytest.raises(UsageError, match=r"model\.cell: expected one of 'tanh', .*'lstm', got 'rnn'"):
        recipe(kind="rnn", cell="rnn")
