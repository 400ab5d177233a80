"""What does a Config accept, in words, and which keys does it have?

`describe` gives a type in words, for error messages and help alike; `keys` lists every key of a Config
with its tables; `resolve` finds the field that one of pydantic's errors is about.
"""

from __future__ import annotations

import types
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

import annotated_types
from pydantic import BaseModel, ConfigDict
from pydantic.fields import FieldInfo

from heed.core.toml import KeyPath

TAG = "kind"
"""The field that tells the Configs of a union apart: `model: A | B = Field(discriminator="kind")`."""


class Config(BaseModel):
    """The settings of one thing, kept beside it: typed, frozen, unknown keys refused, a docstring line per field.

    TOML has no null: a field that may be None is None when it is left out, so None must be its default.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, use_attribute_docstrings=True, allow_inf_nan=False
    )

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        for name, field in cls.model_fields.items():
            if _may_be_none(field.annotation) and field.default is not None:
                raise TypeError(f"{cls.__name__}.{name} may be None, so its default must be None: TOML has no null")


def _may_be_none(annotation: Any) -> bool:
    return get_origin(annotation) in (Union, types.UnionType) and type(None) in get_args(annotation)


Alternative = tuple[Any, tuple[Any, ...]]
"""A type and its constraints."""


def alternatives(annotation: Any, constraints: tuple[Any, ...] = ()) -> list[Alternative]:
    """The plain types that an annotation allows, each with its constraints; None is left out."""
    if get_origin(annotation) is Annotated:
        base, *extra = get_args(annotation)
        inner = [item for entry in extra for item in (entry.metadata if isinstance(entry, FieldInfo) else [entry])]
        return alternatives(base, (*constraints, *inner))
    if get_origin(annotation) in (Union, types.UnionType):
        members = [member for member in get_args(annotation) if member is not type(None)]
        return [alternative for member in members for alternative in alternatives(member, constraints)]
    return [(annotation, constraints)]


def configs(annotation: Any) -> list[type[Config]]:
    """The Configs among the types that an annotation allows."""
    found = [base for base, _ in alternatives(annotation)]
    return [base for base in found if isinstance(base, type) and issubclass(base, Config)]


def tags(config: type[Config]) -> tuple[Any, ...]:
    """The values of `kind` that stand for this Config; empty when it has no such field."""
    return get_args(config.model_fields[TAG].annotation) if TAG in config.model_fields else ()


def annotation_of(field: FieldInfo) -> Any:
    """A field's type together with its constraints."""
    return Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation


def resolve(schema: type[Config], location: Sequence[str | int]) -> tuple[KeyPath, type[Config], Any]:
    """Follow the location of a pydantic error through the schema.

    Returns the path a person would write (without the tags pydantic puts in), the Config of the innermost table
    on the way, and the annotation of the value (None for an unknown key).
    """
    path: KeyPath = ()
    table, here = schema, cast(Any, schema)
    for part in location:
        options, tables = alternatives(here), configs(here)
        if len(tables) > 1:
            table = here = next(config for config in tables if part in tags(config))
            continue
        if len(options) > 1:  # the name of one alternative of a plain union: the error is about the union as a whole
            break
        path = (*path, part)
        if tables:
            table = tables[0]
            field = table.model_fields.get(str(part))
            here = annotation_of(field) if field else None
        else:
            here = _item(options[0][0], part)
    return path, table, here


def _item(annotation: Any, part: str | int) -> Any:
    """The type of an element of a list, tuple or dict type."""
    arguments = get_args(annotation)
    if get_origin(annotation) is dict:
        return arguments[1]
    if isinstance(part, int) and not _is_list(annotation):  # a tuple of fixed length
        return arguments[part]
    return arguments[0]


_PLAIN = {int: "a whole number", float: "a number", str: "text", bool: "true or false", Path: "a path", Any: "anything"}


def describe(annotation: Any) -> str:
    """A type in words: `a whole number from 1 to 8`, `one of 'a', 'b'`, `text or a list, each item text`."""
    found = [word for base, constraints in alternatives(annotation) for word in _words(base, constraints)]
    words = list(dict.fromkeys(found))
    if len(words) > 1 and all(word.startswith("'") for word in words):
        return "one of " + ", ".join(words)
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _words(base: Any, constraints: Sequence[Any]) -> list[str]:
    origin, arguments = get_origin(base), get_args(base)
    if origin is Literal:
        return [show(value) for value in arguments]
    if origin is dict:
        word = f"a table, each value {describe(arguments[1])}"
    elif _is_list(base):
        word = f"a list, each item {describe(arguments[0])}"
    elif origin is tuple:
        word = f"a list of {len(arguments)}: {', '.join(map(describe, arguments))}"
    elif isinstance(base, type) and issubclass(base, Config):
        word = "a table"
    else:
        word = _PLAIN.get(base, getattr(base, "__name__", str(base)))
    return [word + _limits(constraints)]


def _is_list(base: Any) -> bool:
    """A list or a tuple of any length."""
    origin: Any = get_origin(base)
    return origin is list or (origin is tuple and get_args(base)[-1] is ...)


def _limits(constraints: Sequence[Any]) -> str:
    low, high, rest = "", "", ""
    for constraint in constraints:
        match constraint:
            case annotated_types.Ge(ge=bound):
                low = f" at least {bound}"
            case annotated_types.Gt(gt=bound):
                low = f" above {bound}"
            case annotated_types.Le(le=bound):
                high = f" at most {bound}"
            case annotated_types.Lt(lt=bound):
                high = f" below {bound}"
            case annotated_types.MultipleOf(multiple_of=factor):
                rest += f", a multiple of {factor}"
            case annotated_types.MinLen(min_length=length):
                rest += ", not empty" if length == 1 else f", of length {length} or more"
            case annotated_types.MaxLen(max_length=length):
                rest += f", of length {length} or less"
    if "least" in low and "most" in high:
        return low.replace("at least", "from") + high.replace("at most", "to") + rest
    return (f"{low} and{high}" if low and high else low + high) + rest


def show(value: object) -> str:
    """A value as a person reads it in a message: much as in TOML, on one line, cut when long."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a table" if value else "an empty table"
    if isinstance(value, list | tuple):
        text = "[" + ", ".join(show(item) for item in value) + "]"
    else:
        text = repr(str(value)) if isinstance(value, str | Path) else str(value)
    return text if len(text) <= 80 else text[:77] + "..."


@dataclass(frozen=True)
class FieldDescription:
    """One key of a schema, for `--help` and the docs."""

    key: str
    """With its tables: `training.lr`; `stages[].lr` for a key of each table of an array of tables."""
    type: str
    """In words: `a number above 0`."""
    default: str
    """Much as in TOML; `required` or `not set` when there is none."""
    docstring: str
    """What the field is for."""
    only_for: str
    """For a key of one Config of a union, which: `model.kind = 'bigram'`. Else empty."""


def keys(schema: type[Config]) -> list[FieldDescription]:
    """Every key of a schema, in the order of its fields. A union of Configs lists the keys of each."""
    return list(_keys(schema, None, "", ""))


def _keys(config: type[Config], instance: object, prefix: str, only_for: str) -> Iterator[FieldDescription]:
    """`instance` is the default value of the table, whose values are then the defaults of the keys below."""
    for name, field in config.model_fields.items():
        default = getattr(instance, name) if isinstance(instance, config) else _default(field)
        docstring = field.description or ""
        tables, dot = _tables_below(annotation_of(field))
        if not tables:
            words = describe(annotation_of(field))
            yield FieldDescription(prefix + name, words, _show_default(default), docstring, only_for)
        elif len(tables) == 1:
            yield from _keys(tables[0], default, prefix + name + dot, only_for)
        else:
            yield from _union_keys(tables, default, prefix + name + dot, docstring, only_for)


def _union_keys(
    tables: Sequence[type[Config]], default: object, prefix: str, docstring: str, only_for: str
) -> Iterator[FieldDescription]:
    choices = "one of " + ", ".join(show(value) for table in tables for value in tags(table))
    yield FieldDescription(prefix + TAG, choices, _show_default(getattr(default, TAG, ...)), docstring, only_for)
    for table in tables:
        condition = f"{prefix}{TAG} = {' or '.join(map(show, tags(table)))}"
        for field in _keys(table, default, prefix, condition):
            if field.key != prefix + TAG:
                yield field


def _default(field: FieldInfo) -> Any:
    """A field's default value; an ellipsis for a required field."""
    return ... if field.is_required() else field.get_default(call_default_factory=True, validated_data={})


def _show_default(default: object) -> str:
    return "required" if default is ... else "not set" if default is None else show(default)


def _tables_below(annotation: Any) -> tuple[list[type[Config]], str]:
    """The Configs that a field holds, directly or as the items of a list, and what stands between the two keys."""
    tables = configs(annotation)
    if tables:
        return tables, "."
    base = alternatives(annotation)[0][0]
    if _is_list(base):
        return configs(get_args(base)[0]), "[]."
    return [], ""
