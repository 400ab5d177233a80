"""Recipes: each one is valid, and its first comment gives its command and what was measured."""

from __future__ import annotations

from pathlib import Path

import pytest

from heed.core.config import read_toml
from heed.recipe import build_recipe

RECIPES = sorted((Path(__file__).resolve().parent.parent / "recipes").rglob("*.toml"))


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.name)
def test_a_recipe_is_valid_and_its_first_comment_gives_its_command(path: Path) -> None:
    recipe = build_recipe(read_toml(path))
    assert recipe.data.dir == "", "a recipe's paths are relative to where --data.dir says"
    text = path.read_text(encoding="utf-8")
    assert text.startswith("#")
    assert f"heed train recipes/{path.parent.name}/{path.name}" in text
