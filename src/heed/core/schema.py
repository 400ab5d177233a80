"""What a Config class accepts, read from its JSON schema: its keys, and in words what each of them may hold.

In the schema of a table whose class another key chooses, "chosen_by" is that key and "members" are pairs of a name
and a schema.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from heed.core.toml import KeyPath

Node = Mapping[str, Any]
"""A part of a JSON schema."""


class Key(NamedTuple):
    """One key of a Config class."""

    key: str
    """With its tables: `training.lr`; `stages[].lr` for a key of each table of a list of tables."""
    docstring: str
    only_for: str
    """For a key of a table whose class is chosen: by what, `model.kind = 'bigram'`. Else empty."""


_PLAIN = {"integer": "a whole number", "number": "a number", "string": "text", "boolean": "true or false"}


class Schema:
    """The JSON schema of a Config class: which keys it has, and what each of them may hold."""

    def __init__(self, root: Node) -> None:
        self._definitions: Node = root.get("$defs", {})
        self.root = self._followed(root)

    def _followed(self, node: Node) -> Node:
        """A node with its reference resolved, and without null."""
        options = [option for option in node.get("anyOf", ()) if option.get("type") != "null"]
        if len(options) == 1:
            node = options[0]
        if "$ref" in node:
            node = self._definitions[node["$ref"].rpartition("/")[2]]
        return {**node, "enum": [node["const"]]} if "const" in node else node

    def resolve(self, location: Sequence[str | int], values: Any) -> tuple[KeyPath, Node, Node]:
        """Follow the location of a pydantic error: the path of the key, the innermost table, and what it may hold."""
        path: KeyPath = ()
        node = table = self.root
        around: Any = {}
        for part in location:
            if "anyOf" in node:  # the name of an alternative: the error is about the union as a whole
                break
            node = self._chosen(node, values, around, table)
            around, values, path = values, _item(values, part), (*path, part)
            if "properties" in node:
                table, node = node, node["properties"].get(part, {})
            elif "prefixItems" in node:
                node = node["prefixItems"][int(part)]
            else:
                node = node.get("items") or node.get("additionalProperties") or {}
            node = self._followed(node)
        return path, table, node

    def _chosen(self, node: Node, values: Any, around: Any, table: Node) -> Node:
        """The class of a table that a key in it, or around it, chooses; any other node itself."""
        if "members" not in node:
            return node
        key, members = node["chosen_by"], dict(node["members"])
        default = _item(table["properties"].get(key), "default")
        name = _item(values, key) or _item(around, key) or default
        if isinstance(name, str) and name in members:
            return self._followed(members[name])
        return {"properties": {key: {"enum": list(members), "advice": node["advice"]}}}

    def describe(self, node: Node) -> str:
        """What a node allows: `a whole number from 1 to 8`, `one of 'a', 'b'`, `text or a list, each item text`."""
        words = list(dict.fromkeys(word for option in self.options(node) for word in self._words(option)))
        if len(words) > 1 and all(word.startswith("'") for word in words):
            return "one of " + ", ".join(words)
        return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)

    def options(self, node: Node) -> list[Node]:
        """The alternatives of a union; of any other node the node itself."""
        node = self._followed(node)
        return [option for part in node["anyOf"] for option in self.options(part)] if "anyOf" in node else [node]

    def _words(self, node: Node) -> list[str]:
        if "enum" in node:
            return [show(value) for value in node["enum"]]
        match node.get("type"):
            case "object":
                items = node.get("additionalProperties")
                return [f"a table, each value {self.describe(items)}" if isinstance(items, dict) else "a table"]
            case "array" if "prefixItems" in node:
                items = node["prefixItems"]
                return [f"a list of {len(items)}: {', '.join(map(self.describe, items))}"]
            case "array":
                most = f", of length {node['maxItems']} or less" if "maxItems" in node else ""
                return [f"a list, each item {self.describe(node['items'])}{most}"]
            case kind:
                word = "a path" if node.get("format") == "path" else _PLAIN.get(str(kind), "anything")
                return [word + _bounds(node)]

    def fields(self) -> Iterator[Key]:
        """Every key, in the order of the fields."""
        return self._keys(self.root, "", "")

    def _keys(self, table: Node, prefix: str, only_for: str) -> Iterator[Key]:
        for name, field in table["properties"].items():
            node, key = self._followed(field), prefix + name
            items = self._followed(node.get("items", {}))
            if "members" in node:
                yield from self._keys_of_members(node, prefix, key + ".")
            elif "properties" in node:
                yield from self._keys(node, key + ".", only_for)
            elif "properties" in items:
                yield from self._keys(items, key + "[].", only_for)
            else:
                yield Key(key, field.get("description", ""), only_for)

    def _keys_of_members(self, node: Node, around: str, prefix: str) -> Iterator[Key]:
        chooser = node["chosen_by"]
        for name, reference in node["members"]:
            member = self._followed(reference)
            inside = chooser in member["properties"]
            yield from self._keys(member, prefix, f"{prefix if inside else around}{chooser} = {show(name)}")


def _item(values: Any, part: str | int) -> Any:
    """An element of a table or of a list; None if there is none."""
    try:
        return values[part]
    except (KeyError, IndexError, TypeError):
        return None


def _bounds(node: Node) -> str:
    """The bounds of a number: ` from 1 to 8`, ` above 0 and below 1`."""
    words = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below"}
    text = " and".join(f" {word} {show(node[name])}" for name, word in words.items() if name in node)
    both = re.fullmatch(r" at least (\S+) and at most (\S+)", text)
    return f" from {both[1]} to {both[2]}" if both else text


def show(value: object) -> str:
    """A value as a message shows it: much as in TOML, on one line, cut when long."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a table" if value else "an empty table"
    if isinstance(value, list | tuple):
        text = "[" + ", ".join(show(item) for item in value) + "]"
    else:
        text = repr(str(value)) if isinstance(value, str | Path) else str(value)
    return text if len(text) <= 80 else text[:77] + "..."
