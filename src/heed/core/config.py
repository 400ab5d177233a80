"""Typed settings: from a TOML document and command-line overrides to a checked `Config`, and back to TOML.

    document = read_toml("recipe.toml")
    recipe = build(Recipe, document, parse_overrides(["--training.lr=3e-4"]))
    text = to_toml(recipe, {"training.lr": "chosen for a small corpus"})

`build` reports all mistakes at once, each with its key, its line and what is allowed. The allowed keys and values come
from the JSON schema of the Config class, so tables whose class is chosen at run time (`ChosenBy`) are described too.
"""

from __future__ import annotations

import copy
import difflib
import json
import re
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationError, ValidationInfo
from pydantic_core import CoreSchema, ErrorDetails, PydanticKnownError, core_schema

from heed.core.errors import UsageError
from heed.core.field_docstrings import field_docstrings
from heed.core.files import require_utf8
from heed.core.toml import Document, KeyPath, dotted, element, flattened, parse_overrides, read_toml, show

__all__ = [
    "ChosenBy", "Config", "Document", "KeyOf", "build", "flattened", "keys", "parse_overrides", "read_toml", "show",
    "to_toml",
]  # fmt: skip

MAX_ERRORS = 20  # an error message fits on one screen
MOST_NAMED = 6  # of the kinds of models that have a key


class Config(BaseModel):
    """Settings of one component, defined next to it: typed, frozen, strict, with a docstring for each field.

    TOML has no null: a field that may be None is None when it is left out, so None must be its default.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    def __init__(self, /, **values: Any) -> None:
        """Check values given in Python like those of a document: a list may become a tuple. Raises UsageError."""
        with suppress(ValidationError):
            super().__init__(**values)
            return
        self.__setstate__(build(type(self), Document(values, name=type(self).__name__)).__getstate__())

    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]  # or pydantic would call it for documents, too

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        for name, field in cls.model_fields.items():
            is_union = get_origin(field.annotation) in (Union, types.UnionType)
            if is_union and type(None) in get_args(field.annotation) and field.default is not None:
                raise TypeError(f"{cls.__name__}.{name} may be None, so its default must be None: TOML has no null")

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """The JSON schema of the class, with the docstrings of its fields.

        They are read from the source here and not by pydantic, which would read them whenever a class is imported.
        """
        described = handler(schema)
        properties = handler.resolve_ref_schema(described).get("properties", {})
        for name, field in cls.model_fields.items():
            docstrings = (field_docstrings(base).get(name) for base in cls.__mro__[: cls.__mro__.index(Config)])
            if docstring := next(filter(None, docstrings), None):
                properties[field.alias or name].setdefault("description", docstring)
        return described


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
    """Advice for names that users may try although they are not members."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> CoreSchema:
        return core_schema.with_info_plain_validator_function(self._validate)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        members = [
            [name, member.__get_pydantic_json_schema__(member.__pydantic_core_schema__, handler)]
            for name, member in self.members().items()
        ]
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
    """Annotation of a string that must be a key of a registry, to which members may be added at run time.

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
    """Check values by JSON's strict rules: a list may become a tuple and text a path; "8" and true are not numbers."""
    require_utf8(text := json.dumps(values, default=_plain, ensure_ascii=False))
    return schema.model_validate_json(text)


def _plain(value: object) -> object:
    """What JSON holds in place of another object; NumPy's numbers count as Python's."""
    if isinstance(value, BaseModel):
        return value.model_dump(mode="json")
    item = value.item() if getattr(value, "ndim", None) == 0 else value  # type: ignore[attr-defined]
    return item if isinstance(item, bool | int | float) else str(value)


def build(schema: type[C], document: Document, overrides: Mapping[str, object] = {}) -> C:
    """Check a document, with the overrides applied to it, and return it as a `schema`.

    `overrides` maps dotted keys to values, as `parse_overrides` returns them. Raises one UsageError with a line
    for each mistake.
    """
    values, problems = _merge(document.values, overrides)
    try:
        config = _validated(schema, values)
    except ValidationError as invalid:
        allowed = Schema(schema)
        problems += [allowed.explain(error, values) for error in invalid.errors(include_url=False)]
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


class _Problem(NamedTuple):
    path: KeyPath
    text: str
    about_value: bool = False  # "expected ..., got ...": the key is named in front


class Key(NamedTuple):
    """One key of a Config class."""

    key: str
    """With its tables: `training.lr`; `stages[].lr` for a key of each table of a list of tables."""
    docstring: str
    only_for: str
    """For a key of a table whose class is chosen: the choice, `model.kind = 'bigram'`. Otherwise empty. Choices inside
    a chosen table follow after "with"."""
    allowed: str
    """What it may hold, in words."""
    default: Any
    """None for a key that must be given, or that is None when it is left out."""


Node = Mapping[str, Any]
"""A part of a JSON schema."""

_PLAIN = {"integer": "a whole number", "number": "a number", "string": "text", "boolean": "true or false"}


class Schema:
    """The JSON schema of a Config class: its keys, what each may hold, and what is wrong with given values.

    In the schema of a table whose class another key chooses, "chosen_by" is that key and "members" are pairs of a name
    and a schema.
    """

    def __init__(self, config: type[Config]) -> None:
        root = config.model_json_schema()
        self._definitions: Node = root.get("$defs", {})
        self._root = self._followed(root)

    def _followed(self, node: Node) -> Node:
        """A node with its reference resolved, and without null."""
        options = [option for option in node.get("anyOf", ()) if option.get("type") != "null"]
        if len(options) == 1:
            node = options[0]
        if "$ref" in node:
            node = self._definitions[node["$ref"].rpartition("/")[2]]
        return {**node, "enum": [node["const"]]} if "const" in node else node

    def keys(
        self, table: Node | None = None, prefix: str = "", only_for: str = "", values: Any = None
    ) -> Iterator[Key]:
        """Every key of a table, by default of the whole Config, in the order of the fields.

        `values`: the defaults of this table that the Config around it sets.
        """
        for name, field in (self._root if table is None else table)["properties"].items():
            node, key, default = self._followed(field), prefix + name, element(values, name)
            default = field.get("default") if default is None else default
            items = self._followed(node.get("items", {}))
            if "members" in node:
                for choice, reference in node["members"]:
                    member = self._followed(reference)
                    around = f"{key}." if node["chosen_by"] in member["properties"] else prefix
                    chosen = f"{around}{node['chosen_by']} = {show(choice)}"
                    own = default if element(default, node["chosen_by"]) == choice else None
                    yield from self.keys(member, f"{key}.", " with ".join(filter(None, (only_for, chosen))), own)
            elif "properties" in node:
                yield from self.keys(node, f"{key}.", only_for, default)
            elif "properties" in items:
                yield from self.keys(items, f"{key}[].", only_for)
            else:
                yield Key(key, field.get("description", ""), only_for, self._describe(node), default)

    def explain(self, error: ErrorDetails, values: Mapping[str, Any]) -> _Problem:
        """Turn an error of pydantic about some values into a message for the person who wrote them."""
        location, kind = error["loc"], error["type"]
        if kind == "missing" and isinstance(location[-1], int):  # a list of fixed length that is too short
            location, kind = location[:-1], "too_short"
        path, table, node, value = self._resolve(location, values)
        if kind == "extra_forbidden":
            return _Problem(path, self._unknown_key(table, path))
        if kind == "missing":
            return _Problem(path, f"missing key '{dotted(path)}': {self._describe(node)}")
        if kind in ("value_error", "assertion_error"):  # raised by a validator of heed, with its own message
            return _Problem(path, str(error["ctx"]["error"]), about_value=True)
        if kind == "json_invalid":
            return _Problem(path, "nested too deeply")
        return _Problem(path, self._unexpected(node, value), about_value=True)

    def _resolve(self, location: Sequence[str | int], values: Any) -> tuple[KeyPath, Node, Node, Any]:
        """Follow the location of an error: the path of the key, the innermost table, what it may hold, what it has."""
        path: KeyPath = ()
        node = table = self._root
        around: Any = {}
        for part in location:
            if "anyOf" in node:  # the name of an alternative: the error is about the union as a whole
                break
            node = self._chosen(node, values, around, table)
            around, values, path = values, element(values, part), (*path, part)
            if "properties" in node:
                table, node = node, node["properties"].get(part, {})
            elif "prefixItems" in node:
                node = node["prefixItems"][int(part)]
            else:
                node = node.get("items") or node.get("additionalProperties") or {}
            node = self._followed(node)
        return path, table, node, values

    def _chosen(self, node: Node, values: Any, around: Any, table: Node) -> Node:
        """The class of a table that a key in it, or around it, chooses; any other node itself."""
        if "members" not in node:
            return node
        key, members = node["chosen_by"], dict(node["members"])
        default = element(table["properties"].get(key), "default")
        name = element(values, key) or element(around, key) or default
        if isinstance(name, str) and name in members:
            return self._followed(members[name])
        return {"properties": {key: {"enum": list(members), "advice": node["advice"]}}}

    def _unexpected(self, node: Node, value: object) -> str:
        text = f"expected {self._describe(node)}, got {show(value)}"
        names = [choice for choice in node.get("enum", ()) if isinstance(choice, str)]
        if advice := node.get("advice", {}).get(str(value).lower()):
            return f"{text}. {advice}"
        if isinstance(value, str) and (suggestion := _closest(value, names)):
            return f"{text}. Did you mean '{suggestion}'?"
        strings = [option for option in self._options(node) if option.get("type") == "string"]
        if any("enum" not in option for option in strings) and isinstance(value, bool | int | float):
            text += f""". Text needs quotes: "{show(value)}" (in a shell '"{show(value)}"')"""
        return text

    def _unknown_key(self, table: Node, path: KeyPath) -> str:
        *parents, name = path
        allowed = list(table["properties"])
        elsewhere = [key for key in self.keys() if key.key.endswith(f".{name}")]
        where = f"in {dotted(parents)}" if parents else "at the top"
        advice = f"Allowed {where}: {', '.join(allowed)}."
        if similar := _closest(str(name), allowed):
            advice = f"Did you mean '{dotted((*parents, similar))}'?"
        elif choices := [key.only_for for key in elsewhere if key.key == dotted(path)]:
            advice = f"It is only for {_any_of(choices)}."
            if kind := self._followed(table["properties"].get("kind", {})).get("const"):
                advice += f" Here {dotted((*parents, 'kind'))} = '{kind}'."
        elif elsewhere and name != "kind":  # several tables have a kind
            advice = f"Did you mean '{elsewhere[0].key}'?"
        return f"unknown key '{dotted(path)}'. {advice}"

    def _describe(self, node: Node) -> str:
        """The values that a node allows: `a whole number from 1 to 8`, `one of 'a', 'b'`, `text or a list`."""
        words = list(dict.fromkeys(word for option in self._options(node) for word in self._words(option)))
        if len(words) > 1 and all(word.startswith("'") for word in words):
            return "one of " + ", ".join(words)
        return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)

    def _options(self, node: Node) -> list[Node]:
        """The alternatives of a union; of any other node the node itself."""
        node = self._followed(node)
        return [option for part in node["anyOf"] for option in self._options(part)] if "anyOf" in node else [node]

    def _words(self, node: Node) -> list[str]:
        if "enum" in node:
            return [show(value) for value in node["enum"]]
        match node.get("type"):
            case "object":
                items = node.get("additionalProperties")
                return [f"a table, each value {self._describe(items)}" if isinstance(items, dict) else "a table"]
            case "array" if "prefixItems" in node:
                items = node["prefixItems"]
                return [f"a list of {len(items)}: {', '.join(map(self._describe, items))}"]
            case "array":
                most = f", of length {node['maxItems']} or less" if "maxItems" in node else ""
                return [f"a list, each item {self._describe(node['items'])}{most}"]
            case "null":  # not given
                return []
            case kind:
                word = "a path" if node.get("format") == "path" else _PLAIN.get(str(kind), "anything")
                return [word + _bounds(node)]


def _any_of(choices: Sequence[str]) -> str:
    """Choices such as `model.kind = 'gpt'` in a phrase: the simple ones if there are any, and only some of many."""
    simple = [choice for choice in choices if " with " not in choice] or choices
    values: dict[str, list[str]] = {}
    for choice in simple[:MOST_NAMED]:
        key, _, value = choice.rpartition(" = ")
        values.setdefault(key, []).append(value)
    phrases = [f"{key} = {' or '.join(', '.join(of_key).rsplit(', ', 1))}" for key, of_key in values.items()]
    return " or ".join(phrases) + f" ({len(simple) - MOST_NAMED} more have it)" * (len(simple) > MOST_NAMED)


def _closest(name: str, choices: Sequence[str]) -> str:
    """The most similar choice; empty if none is similar."""
    return next(iter(difflib.get_close_matches(name.lower(), choices, n=1)), "")


def _bounds(node: Node) -> str:
    """The bounds of a number: ` from 1 to 8`, ` above 0 and below 1`."""
    words = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below"}
    bounds = {name: node[name] for name in words if name in node}  # pydantic writes 0 or 0.0, by its version
    whole = {name: int(bound) if bound == int(bound) else bound for name, bound in bounds.items()}
    text = " and".join(f" {words[name]} {show(bound)}" for name, bound in whole.items())
    both = re.fullmatch(r" at least (\S+) and at most (\S+)", text)
    return f" from {both[1]} to {both[2]}" if both else text


def _report(problems: Sequence[_Problem], document: Document, overrides: Mapping[str, object]) -> str:
    """One line for each problem: those of the file in its order, then those of the command line."""
    rows = []
    for problem in problems:
        path = problem.path or _mentioned(problem.text)
        override = _override_at(path, document, overrides) if path else ""
        line = 0 if override else document.line_of(path)
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


def _mentioned(text: str) -> KeyPath:
    """The first `table.key` in a message about the document as a whole."""
    match = re.search(r"\b[a-z_]+(\.[a-z_]+)+\b", text)
    return tuple(match[0].split(".")) if match else ()


def keys(schema: type[Config]) -> list[Key]:
    """Every key of a Config class in the order of its fields; for a table whose class is chosen, those of all."""
    return list(Schema(schema).keys())


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
