"""How does a recipe become a checked Config, and a Config a recipe again?

    document = read_toml("recipe.toml")
    recipe = build(Recipe, document, parse_overrides(["--training.lr=3e-4"]))
    text = to_toml(recipe, {"training.lr": "chosen for a small corpus"})

`build` reports every mistake at once, each with its line and what would be allowed.
"""

from __future__ import annotations

import copy
import difflib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from heed.core.errors import UsageError
from heed.core.schema import TAG, Config, FieldDescription, alternatives, configs, describe, keys, resolve, show, tags
from heed.core.toml import Document, KeyPath, dotted, parse_overrides, read_toml

if TYPE_CHECKING:
    from tomlkit import TOMLDocument
    from tomlkit.items import Table

__all__ = ["Config", "Document", "FieldDescription", "build", "keys", "parse_overrides", "read_toml", "to_toml"]

MAX_ERRORS = 20  # an error fits on one screen

C = TypeVar("C", bound=Config)


@dataclass(frozen=True)
class _Problem:
    path: KeyPath
    text: str
    about_value: bool = False  # "expected ..., got ...": the key is named in front


def build(schema: type[C], document: Document, overrides: Mapping[str, object] = {}) -> C:
    """Check a document, with the overrides put over it, and return it as a `schema`.

    `overrides` maps dotted keys to values, as `parse_overrides` returns them. Raises one UsageError with a line
    for every mistake.
    """
    values, problems = _merge(document.values, overrides)
    try:
        # TOML has JSON's few types, so JSON's strict rules are the ones to check it by:
        # a list may become a tuple and text a path, but "8" is no number and true is not 1.
        config = schema.model_validate_json(json.dumps(values, default=str))
    except ValidationError as invalid:
        problems += [_problem(schema, error, values) for error in invalid.errors(include_url=False)]
    if problems:
        raise UsageError(_report(problems, document, overrides))
    return config


def _merge(values: Mapping[str, Any], overrides: Mapping[str, object]) -> tuple[dict[str, Any], list[_Problem]]:
    merged = copy.deepcopy(dict(values))
    problems: list[_Problem] = []
    for key, value in overrides.items():
        path = key.split(".")
        table = merged
        for depth, name in enumerate(path[:-1], start=1):
            table = table.setdefault(name, {})
            if not isinstance(table, dict):
                problems.append(_Problem(tuple(path), f"{'.'.join(path[:depth])} is no table, it has no keys"))
                break
        else:
            table[path[-1]] = copy.deepcopy(value)
    return merged, problems


def _problem(schema: type[Config], error: ErrorDetails, values: Mapping[str, Any]) -> _Problem:
    location, kind = error["loc"], error["type"]
    if kind == "missing" and isinstance(location[-1], int):  # a list of fixed length that is too short
        location, kind = location[:-1], "too_short"
    path, table, annotation = resolve(schema, location)
    if kind == "extra_forbidden":
        return _Problem(path, _unknown_key(schema, table, path))
    if kind == "missing":
        return _Problem(path, f"missing key '{dotted(path)}': {describe(annotation)}")
    if kind in ("union_tag_not_found", "union_tag_invalid"):
        return _bad_tag(path, annotation, values)
    if kind in ("value_error", "assertion_error"):  # raised by a validator of ours, in words of its own
        return _Problem(path, str(error["ctx"]["error"]), about_value=True)
    if kind == "json_invalid":
        return _Problem(path, "nested too deeply")
    got = _value(values, path)
    text = f"expected {describe(annotation)}, got {show(got)}"
    wants_text = any(base in (str, Path) for base, _ in alternatives(annotation))
    if wants_text and isinstance(got, bool | int | float):
        text += f""". Text needs quotes: "{show(got)}" (in a shell '"{show(got)}"')"""
    return _Problem(path, text, about_value=True)


def _bad_tag(path: KeyPath, annotation: Any, values: Mapping[str, Any]) -> _Problem:
    choices = [tag for config in configs(annotation) for tag in tags(config)]
    listed, here, table = ", ".join(map(show, choices)), (*path, TAG), _value(values, path)
    if TAG not in table:
        return _Problem(here, f"missing key '{dotted(here)}': one of {listed}")
    text = f"expected one of {listed}, got {show(table[TAG])}"
    suggestion = _closest(str(table[TAG]), choices)
    return _Problem(here, f"{text}.{_did_you_mean(suggestion)}" if suggestion else text, about_value=True)


def _unknown_key(schema: type[Config], table: type[Config], path: KeyPath) -> str:
    *parents, name = path
    suggestion = _closest(str(name), list(table.model_fields))
    if suggestion:
        suggestion = dotted((*parents, suggestion))
    else:  # the right name in the wrong table
        elsewhere = [field.key for field in keys(schema) if name != TAG and field.key.endswith(f".{name}")]
        suggestion = elsewhere[0] if elsewhere else ""
    text = f"unknown key '{dotted(path)}'."
    where = f"in {dotted(parents)}" if parents else "at the top"
    return text + (_did_you_mean(suggestion) or f" Allowed {where}: {', '.join(table.model_fields)}.")


def _closest(name: str, choices: Sequence[str]) -> str:
    return next(iter(difflib.get_close_matches(name.lower(), choices, n=1)), "")


def _did_you_mean(suggestion: str) -> str:
    return f" Did you mean '{suggestion}'?" if suggestion else ""


def _value(values: Any, path: KeyPath) -> Any:
    for part in path:
        values = values[part]
    return values


def _report(problems: Sequence[_Problem], document: Document, overrides: Mapping[str, object]) -> str:
    """One line a problem, in the order of the file, then those of the command line."""
    rows = []
    for problem in problems:
        path = problem.path or _mentioned(problem.text)
        override = _override_at(path, document, overrides) if path else ""
        line = 0 if override else _line_at(path, document)
        place = f"--{override}" if override else f"{document.name}:{line}" if line else document.name
        named = problem.about_value and override != dotted(problem.path) and problem.path
        text = f"{dotted(problem.path)}: {problem.text}" if named else problem.text
        rows.append((bool(override), line, f"{place}: {text}" if place else text))
    messages = list(dict.fromkeys(message for _, _, message in sorted(rows, key=lambda row: row[:2])))
    rest = len(messages) - MAX_ERRORS
    return "\n".join(messages[:MAX_ERRORS] + ([f"... and {rest} more"] if rest > 0 else []))


def _override_at(path: KeyPath, document: Document, overrides: Mapping[str, object]) -> str:
    """The override that set the value at `path`, or made the table there; empty when the document did."""
    matches = [key for key in overrides if path[: key.count(".") + 1] == tuple(key.split("."))]
    if not matches and path not in document.lines:
        below = [key for key in overrides if tuple(key.split("."))[: len(path)] == path]
        matches = below if len(below) == 1 else []  # of several, any may be the one
    return max(matches, key=len, default="")


def _line_at(path: KeyPath, document: Document) -> int:
    """The line of the key, or of the innermost table or key around it that is written down; 0 when there is none."""
    return next((document.lines[path[:n]] for n in range(len(path), 0, -1) if path[:n] in document.lines), 0)


def _mentioned(text: str) -> KeyPath:
    """The first `table.key` in a message about the recipe as a whole."""
    found = re.search(r"\b[a-z_]+(\.[a-z_]+)+\b", text)
    return tuple(found[0].split(".")) if found else ()


def to_toml(config: Config, comments: Mapping[str, str] = {}) -> str:
    """Write a Config completely, defaults included; None is left out. `build` reads an equal Config back.

    `comments` maps dotted keys to one-line comments: behind a value, or under the header of a table.
    """
    import tomlkit  # here, because reading is frequent and writing is rare

    document = tomlkit.document()
    _fill(document, config.model_dump(mode="json", exclude_none=True), "", comments)
    return tomlkit.dumps(document)


def _fill(table: TOMLDocument | Table, values: Mapping[str, Any], prefix: str, comments: Mapping[str, str]) -> None:
    import tomlkit

    # In TOML a key that follows a table belongs to it, so the plain values come first.
    for name, value in sorted(values.items(), key=lambda entry: _is_table(entry[1])):
        key = prefix + name
        comment = " ".join(comments.get(key, "").split())
        if isinstance(value, dict):
            table.append(name, _table(value, key, comments, comment))
        elif _is_table(value):
            array = tomlkit.aot()
            for item in value:
                array.append(_table(item, key, comments, ""))
            table.append(name, array)
        else:
            item = tomlkit.item(value)
            table.append(name, item.comment(comment) if comment else item)


def _is_table(value: object) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and bool(value) and isinstance(value[0], dict))


def _table(values: Mapping[str, Any], path: str, comments: Mapping[str, str], comment: str) -> Table:
    import tomlkit

    table = tomlkit.table()
    if comment:
        table.add(tomlkit.comment(comment))
    _fill(table, values, path + ".", comments)
    return table
