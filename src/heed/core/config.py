"""Typed settings: from a TOML document and command-line overrides to a checked `Config`, and back to TOML.

    document = read_toml("recipe.toml")
    recipe = build(Recipe, document, parse_overrides(["--training.lr=3e-4"]))
    text = to_toml(recipe, {"training.lr": "chosen for a small corpus"})

`build` reports all mistakes at once, each with its key, its line and what is allowed. What a Config allows is read
from its JSON schema, so tables whose class is chosen at run time (`ChosenBy`) are described like any other.
"""

from __future__ import annotations

import copy
import difflib
import json
import re
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationError, ValidationInfo
from pydantic_core import CoreSchema, ErrorDetails, PydanticKnownError, core_schema

from heed.core.errors import UsageError
from heed.core.schema import Key, Node, Schema, show
from heed.core.toml import Document, KeyPath, dotted, parse_overrides, read_toml

__all__ = [
    "ChosenBy", "Config", "Document", "KeyOf", "build", "keys", "parse_overrides", "read_toml", "show", "to_toml",
]  # fmt: skip

MAX_ERRORS = 20  # an error message fits on one screen


class Config(BaseModel):
    """Settings of one component, defined next to it: typed, frozen, strict, with a docstring for each field.

    TOML has no null: a field that may be None is None when it is left out, so None must be its default.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True, allow_inf_nan=False
    )

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        for name, field in cls.model_fields.items():
            is_union = get_origin(field.annotation) in (Union, types.UnionType)
            if is_union and type(None) in get_args(field.annotation) and field.default is not None:
                raise TypeError(f"{cls.__name__}.{name} may be None, so its default must be None: TOML has no null")


C = TypeVar("C", bound=Config)


@dataclass(frozen=True)
class ChosenBy:
    """Annotation of a table whose Config class another key chooses by name.

        model: Annotated[Config, ChosenBy("kind", lambda: {"rnn": RnnConfig, "gpt": GptConfig})]

    `key` is a field of each of the classes, or else an earlier field of the Config around the table. `members` is
    called for each document, so it may return classes that were registered at run time.
    """

    key: str
    members: Callable[[], Mapping[str, type[Config]]]
    advice: Callable[[], Mapping[str, str]] = dict
    """For names that people try and that are not members: a sentence that says what to write instead."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        return core_schema.with_info_plain_validator_function(self._validate)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        members = [[name, handler(member.__pydantic_core_schema__)] for name, member in self.members().items()]
        # Members are a list, which keeps its order.
        return {"type": "object", "chosen_by": self.key, "members": members, "advice": dict(self.advice())}

    def _validate(self, value: Any, info: ValidationInfo) -> Any:
        members = self.members()
        if isinstance(value, tuple(members.values())):
            return value
        if not isinstance(value, dict):
            raise ValueError(f"expected a table, got {show(value)}")
        is_inside = all(self.key in member.model_fields for member in members.values())
        name = (value if is_inside else info.data or {}).get(self.key)
        if isinstance(name, str) and name in members:
            return _validated(members[name], value)
        if not is_inside:
            return value  # the key around the table is wrong, and reported
        kind: Any = "literal_error" if self.key in value else "missing"
        details: Any = {"type": kind, "loc": (self.key,), "input": name, "ctx": {"expected": ", ".join(members)}}
        raise ValidationError.from_exception_data("", [details])


@dataclass(frozen=True)
class KeyOf:
    """Annotation of text that is a key of a registry, to which members may be added at run time.

    cell: Annotated[str, KeyOf(CELLS)] = "lstm"
    """

    registry: Mapping[str, object]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._validate, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"type": "string", "enum": list(self.registry)}

    def _validate(self, name: str) -> str:
        if name not in self.registry:
            raise PydanticKnownError("literal_error", {"expected": ", ".join(self.registry)})
        return name


def _validated(schema: type[C], values: object) -> C:
    """Check values by the strict rules of JSON, which has TOML's few types.

    A list may become a tuple and text a path, but "8" is not a number and true is not 1.
    """
    return schema.model_validate_json(json.dumps(values, default=str))


@dataclass(frozen=True)
class _Problem:
    path: KeyPath
    text: str
    about_value: bool = False  # "expected ..., got ...": the key is named in front


def build(schema: type[C], document: Document, overrides: Mapping[str, object] = {}) -> C:
    """Check a document, with the overrides applied to it, and return it as a `schema`.

    `overrides` maps dotted keys to values, as `parse_overrides` returns them. Raises one UsageError with a line
    for each mistake.
    """
    values, problems = _merge(document.values, overrides)
    try:
        config = _validated(schema, values)
    except ValidationError as invalid:
        explain = _Explainer(schema, values)
        problems += [explain(error) for error in invalid.errors(include_url=False)]
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
                problems.append(_Problem(tuple(path), f"{'.'.join(path[:depth])} is not a table and has no keys"))
                break
        else:
            table[path[-1]] = copy.deepcopy(value)
    return merged, problems


class _Explainer:
    """Turns pydantic's errors about some values into messages for the person who wrote them."""

    def __init__(self, schema: type[Config], values: Mapping[str, Any]) -> None:
        self.schema = Schema(schema.model_json_schema())
        self.values = values

    def __call__(self, error: ErrorDetails) -> _Problem:
        location, kind = error["loc"], error["type"]
        if kind == "missing" and isinstance(location[-1], int):  # a list of fixed length that is too short
            location, kind = location[:-1], "too_short"
        path, table, node = self.schema.resolve(location, self.values)
        if kind == "extra_forbidden":
            return _Problem(path, self._unknown_key(table, path))
        if kind == "missing":
            return _Problem(path, f"missing key '{dotted(path)}': {self.schema.describe(node)}")
        if kind in ("value_error", "assertion_error"):  # raised by a validator of ours, with its own message
            return _Problem(path, str(error["ctx"]["error"]), about_value=True)
        if kind == "json_invalid":
            return _Problem(path, "nested too deeply")
        return _Problem(path, self._unexpected(node, self._value(path)), about_value=True)

    def _unexpected(self, node: Node, value: object) -> str:
        text = f"expected {self.schema.describe(node)}, got {show(value)}"
        names = [choice for choice in node.get("enum", ()) if isinstance(choice, str)]
        if advice := node.get("advice", {}).get(str(value).lower()):
            return f"{text}. {advice}"
        if isinstance(value, str) and (suggestion := closest(value, names)):
            return f"{text}. Did you mean '{suggestion}'?"
        strings = [option for option in self.schema.options(node) if option.get("type") == "string"]
        if any("enum" not in option for option in strings) and isinstance(value, bool | int | float):
            text += f""". Text needs quotes: "{show(value)}" (in a shell '"{show(value)}"')"""
        return text

    def _unknown_key(self, table: Node, path: KeyPath) -> str:
        *parents, name = path
        allowed = list(table["properties"])
        elsewhere = [field for field in self.schema.fields() if field.key.endswith(f".{name}")]
        where = f"in {dotted(parents)}" if parents else "at the top"
        advice = f"Allowed {where}: {', '.join(allowed)}."
        if similar := closest(str(name), allowed):
            advice = f"Did you mean '{dotted((*parents, similar))}'?"
        elif classes := [field.only_for for field in elsewhere if field.key == dotted(path)]:
            advice = f"It is only for {' or '.join(classes)}."
        elif elsewhere and name != "kind":  # several tables have a kind
            advice = f"Did you mean '{elsewhere[0].key}'?"
        return f"unknown key '{dotted(path)}'. {advice}"

    def _value(self, path: KeyPath) -> Any:
        value: Any = self.values
        for part in path:
            value = value[part]
        return value


def closest(name: str, choices: Sequence[str]) -> str:
    """The choice that is most like a name; empty when none is."""
    return next(iter(difflib.get_close_matches(name.lower(), choices, n=1)), "")


def _report(problems: Sequence[_Problem], document: Document, overrides: Mapping[str, object]) -> str:
    """One line for each problem: those of the file in its order, then those of the command line."""
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
    """The override that set the value at `path`, or created the table there; empty if the document did."""
    matches = [key for key in overrides if path[: key.count(".") + 1] == tuple(key.split("."))]
    if not matches and path not in document.lines:
        below = [key for key in overrides if tuple(key.split("."))[: len(path)] == path]
        matches = below if len(below) == 1 else []  # of several, any may be the one
    return max(matches, key=len, default="")


def _line_at(path: KeyPath, document: Document) -> int:
    """The line of a key, or of the innermost key around it that the document has; 0 if it has none."""
    return next((document.lines[path[:n]] for n in range(len(path), 0, -1) if path[:n] in document.lines), 0)


def _mentioned(text: str) -> KeyPath:
    """The first `table.key` in a message about the document as a whole."""
    match = re.search(r"\b[a-z_]+(\.[a-z_]+)+\b", text)
    return tuple(match[0].split(".")) if match else ()


def keys(schema: type[Config]) -> list[Key]:
    """Every key of a Config class, in the order of its fields; of a table whose class is chosen, those of each."""
    return list(Schema(schema.model_json_schema()).fields())


def to_toml(config: Config, comments: Mapping[str, str] = {}) -> str:
    """Write a Config completely, defaults included; None is left out. `build` reads an equal Config back.

    `comments` maps dotted keys to one-line comments, which follow the value or the header of a table.
    """
    import tomlkit  # here, because reading is frequent and writing is rare

    document = tomlkit.document()
    document.update(config.model_dump(mode="json", exclude_none=True))
    for key, comment in comments.items():
        *tables, name = key.split(".")
        container: Any = document
        for table in tables:
            container = container[table].value
        container.item(name).comment(" ".join(comment.split()))  # [name] would unwrap a boolean
    return tomlkit.dumps(document)
