"""Reference of the keys of recipes: what each may hold, its default and its docstring, from the schemas themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import get_args

from heed.core.config import ChosenBy, Config, Key, keys
from heed.core.toml import show
from heed.models import MODELS
from heed.recipe import recipe_type
from heed.tasks import TASKS, task_type
from heed_docs.markdown import code, escaped, table

TABLES = ("data", "tokenizer", "model", "head", "training", "decoding")


@cache
def recipe_keys() -> list[tuple[str, Key]]:
    """Every key of a recipe with the task whose recipes have it."""
    return [(task, key) for task in TASKS for key in keys(recipe_type(task))]


def recipe_markdown(name: str = "") -> str:
    """The keys of a table of recipes, or those outside all tables."""
    if name == "model":
        return _models()
    of_table = [(task, key) for task, key in recipe_keys() if _table_of(key) == name]
    by_task = {task: [key for of, key in of_table if of == task] for task in TASKS}
    shared = [key for key in next(iter(by_task.values())) if all(key in each for each in by_task.values())]
    if name in ("", "tokenizer", "training", "decoding"):
        tasks = Key("task", "The task that is learned.", "", "one of " + ", ".join(map(show, TASKS)), None)
        return _rows([key if key.key != "task" else tasks for key in next(iter(by_task.values()))])
    parts = [f"## All tasks\n\n{_rows(shared)}"] if shared else []
    for task, of_task in by_task.items():
        if rest := [key for key in of_task if key not in shared]:
            parts.append(f"## {task}\n\n{_rows(rest)}")
    return "\n\n".join(parts)


def _table_of(key: Key) -> str:
    return key.key.partition(".")[0] if "." in key.key else ""


def _inner_models(kind: str) -> dict[str, list[str]]:
    """The tables of a model that are models themselves, such as its encoder, and the kinds that each may be."""
    tables: dict[str, list[str]] = {}
    for name, field in MODELS[kind].Config.model_fields.items():
        optional = [part for option in get_args(field.annotation) for part in getattr(option, "__metadata__", ())]
        for chosen in (*field.metadata, *optional):
            if isinstance(chosen, ChosenBy):
                tables[f"model.{name}"] = [each for each, config in chosen.members().items() if _is_model(each, config)]
    return {table: kinds for table, kinds in tables.items() if kinds}


def _is_model(kind: str, config: type[Config]) -> bool:
    return kind in MODELS and MODELS[kind].Config is config


def is_inside_model(key: Key) -> bool:
    """Whether a key is one of a model inside a model, which the section of that kind lists."""
    match = re.match(r"model\.kind = '(\w+)' with (model\.\w+)\.kind = '(\w+)'", key.only_for)
    return match is not None and match[3] in _inner_models(match[1]).get(match[2], ())


def _models() -> str:
    every = {(key.key, key.only_for): key for _, key in recipe_keys() if _table_of(key) == "model"}
    listed = [key for key in every.values() if not is_inside_model(key)]
    return "\n\n".join(
        _model(kind, [key for key in listed if f"model.kind = '{kind}'" in key.only_for]) for kind in MODELS
    )


def _model(kind: str, listed: Sequence[Key]) -> str:
    """The section of a kind of model, with its keys."""
    tasks = ", ".join(f"`{task}`" for task in TASKS if task_type(task).fits(MODELS[kind]))
    text = escaped((MODELS[kind].__doc__ or "").partition("\n\n")[0])
    parts = [f"## {kind}", f"{text} For {tasks}."]
    for choice in dict.fromkeys(key.only_for.partition(" with ")[2] for key in listed):
        parts += [f"With `{choice}`:"] if choice else []
        parts.append(_rows(key for key in listed if key.only_for.partition(" with ")[2] == choice))
    for place, kinds in _inner_models(kind).items():
        links = ", ".join(f"[{each}](#{each.replace('_', '-')})" for each in kinds)
        parts.append(f"`[{place}]` is a model of one of these kinds, with its keys: {links}.")
    return "\n\n".join(parts)


def _rows(listed: Iterable[Key]) -> str:
    rows = [
        (code(key.key), f"{escaped(key.docstring)} *{escaped(_sentence(key.allowed))}*", code(_shown(key.default)))
        for key in listed
    ]
    return table(("key", "meaning", "default"), rows)


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


def _shown(default: object) -> str:
    """A default as TOML writes it; empty for none."""
    if isinstance(default, list):
        return f"[{', '.join(map(show, default))}]"
    return "" if default is None else show(default)
