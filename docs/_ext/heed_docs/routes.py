"""Reference of the server's HTTP APIs, from its own OpenAPI description."""

from __future__ import annotations

from functools import cache
from typing import Any

from heed.core.toml import show
from heed.serve.app import make_app
from heed.serve.engine.catalogue import Catalogue
from heed.serve.service import make_service
from heed_docs.markdown import code, escaped, table

Schema = dict[str, Any]
_WORDS = {"integer": "whole number", "null": "null", "array": "list", "object": "object", "boolean": "true or false"}
_BOUNDS = {
    "minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below",
}  # fmt: skip


@cache
def description() -> Schema:
    """The OpenAPI description of a server, which is the same for all models."""
    return make_app(make_service(Catalogue.of_runs([]))).openapi()


def routes_markdown() -> str:
    """All routes by API, then the objects that they receive and send."""
    by_api: dict[str, list[str]] = {}
    for path, methods in description()["paths"].items():
        for method, operation in methods.items():
            by_api.setdefault(operation["tags"][0], []).append(_route(method, path, operation))
    parts = [f"## {api}\n\n" + "\n\n".join(routes) for api, routes in by_api.items()]
    objects = [
        f"### {_title(name)}\n\n{_text(schema)}{_fields(schema)}"
        for name, schema in sorted(description()["components"]["schemas"].items(), key=lambda each: _title(each[0]))
    ]
    return "\n\n".join([*parts, "## Objects", *objects])


def _route(method: str, path: str, operation: Schema) -> str:
    parts = [f"### {method.upper()} {escaped(path)}", escaped(operation["description"])]
    if parameters := operation.get("parameters"):
        rows = [(code(each["name"]), each["in"], _type(each["schema"])) for each in parameters]
        parts.append(table(("parameter", "in", "type"), rows))
    if bodies := operation.get("requestBody", {}).get("content"):
        parts.append(f"Body ({', '.join(map(code, bodies))}):")
        parts.append(_fields(next(iter(bodies.values()))["schema"]))
    answers = sorted(operation["responses"].items())
    rows = [(code(status), escaped(each["description"]), _content(each)) for status, each in answers]
    parts.append(table(("status", "meaning", "answer"), rows))
    return "\n\n".join(parts)


def _content(answer: Schema) -> str:
    """What an answer holds: an object, or data of a media type."""
    contents = answer.get("content", {}).items()
    return ", ".join(_type(each["schema"]) if each.get("schema") else code(kind) for kind, each in contents)


def _fields(schema: Schema) -> str:
    required = schema.get("required", [])
    rows = [
        (
            code(name),
            escaped(field.get("description", "")),
            _type(field),
            "required" if name in required else _default(field.get("default")),
        )
        for name, field in schema.get("properties", {}).items()
    ]
    return table(("field", "meaning", "type", "default"), rows) if rows else ""


def _default(value: Any) -> str:
    return "" if value in (None, [], {}) else code(show(value))


def _text(schema: Schema) -> str:
    return f"{escaped(schema['description'])}\n\n" if "description" in schema else ""


def _title(name: str) -> str:
    """`Translated (heed_schema)` for a name with its module."""
    *module, last = name.split("__")
    return f"{last} ({module[-1]})" if module else last


def _type(schema: Schema) -> str:
    """The values that a schema allows, as Markdown."""
    if "$ref" in schema:
        title = _title(schema["$ref"].rpartition("/")[2])
        anchor = title.lower().replace(" ", "-").replace("(", "").replace(")", "").replace("_", "-")
        return f"[{escaped(title)}](#{anchor})"
    for union in ("anyOf", "oneOf"):
        if union in schema:
            return " or ".join(dict.fromkeys(map(_type, schema[union])))
    if "enum" in schema or "const" in schema:
        return ", ".join(code(show(value)) for value in schema.get("enum", [schema.get("const")]))
    kind = schema.get("type", "any")
    if kind == "array":
        inner = " of " + _type(schema["items"]) if schema.get("items") else ""
        return f"list{inner}" + (f" (at most {schema['maxItems']})" if "maxItems" in schema else "")
    bounds = [f"{word} {schema[key]:g}" for key, word in _BOUNDS.items() if key in schema]
    length = [f"at most {schema['maxLength']} characters"] if "maxLength" in schema else []
    return " ".join([_WORDS.get(kind, kind), *([f"({', '.join([*bounds, *length])})"] if bounds or length else [])])
