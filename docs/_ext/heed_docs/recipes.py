"""Reference of the keys of recipes: what each may hold, its default and its docstring, from the schemas themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from heed.core.config import Key, keys
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


def is_nested(key: Key) -> bool:
    """Whether a key is one of a model inside a model, such as the reader of an encoder-decoder."""
    return any(kind in MODELS for kind in re.findall(r" with .*?\.kind = '(\w+)'", key.only_for))


def _models() -> str:
    parts = []
    every = {(key.key, key.only_for): key for _, key in recipe_keys() if _table_of(key) == "model"}
    for kind, model in MODELS.items():
        tasks = [f"`{task}`" for task in TASKS if task_type(task).fits(model)]
        own = [key for key in every.values() if key.only_for.split(" with ")[0] == f"model.kind = '{kind}'"]
        text = escaped((model.__doc__ or "").partition("\n\n")[0])
        section = f"## {kind}\n\n{text} For {', '.join(tasks)}.\n\n"
        section += _rows(key for key in own if " with " not in key.only_for)
        inner: dict[str, list[Key]] = {}
        for key in own:
            if " with " in key.only_for and not is_nested(key):
                inner.setdefault(key.only_for.split(" with ")[1], []).append(key)
        section += "".join(f"\nWith `{chosen}`:\n\n{_rows(rows)}" for chosen, rows in inner.items())
        nested: dict[str, list[str]] = {}
        for place, chosen in dict.fromkeys(
            pair for key in own for pair in re.findall(r" with ([\w.]+)\.kind = '(\w+)'$", key.only_for)
        ):
            if chosen in MODELS and place.count(".") == 1:
                nested.setdefault(place, []).append(f"[{chosen}](#{chosen.replace('_', '-')})")
        section += "".join(
            f"\n`[{place}]` is a model of one of these kinds, with its keys: {', '.join(kinds)}.\n"
            for place, kinds in nested.items()
        )
        parts.append(section)
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
