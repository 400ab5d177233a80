"""TOML documents with line numbers, and overrides from the command line.

The standard library's `tomllib` reads the values but forgets their lines; `key_lines` finds these again, so that an
error in a recipe can point at its line.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from heed.core.errors import MissingInputError, UsageError

MAX_BYTES = 1_000_000
MAX_DEPTH = 40
"""Tables inside each other that a key may name. `tomllib` takes quadratic time for the parts of one key."""
_SEARCHED = 20
"""How often the text is parsed again, at most, in search of the lines of its keys."""

KeyPath = tuple[str | int, ...]
"""Where a value is: names of tables and keys, and positions in lists. `("stages", 0, "lr")`."""


@dataclass(frozen=True)
class Document:
    """A parsed TOML document; `name` is the path as the user gave it, or empty if there is no file."""

    values: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""
    name: str = ""

    @cached_property
    def lines(self) -> dict[KeyPath, int]:
        """The line of each table and key, counted from 1."""
        return key_lines(self.text)

    def line_of(self, path: KeyPath) -> int:
        """The line of a key, or of the innermost table around it that the document has; 0 if it has neither."""
        return next((self.lines[path[:n]] for n in range(len(path), 0, -1) if path[:n] in self.lines), 0)


def flattened(table: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The values of a table and of those inside it, by their dotted keys."""
    values: dict[str, Any] = {}
    for name, value in table.items():
        inner = isinstance(value, Mapping)
        values |= flattened(value, f"{prefix}{name}.") if inner else {prefix + name: value}
    return values


def element(values: Any, part: str | int) -> Any:
    """An element of a table or of a list; None if it does not exist."""
    try:
        return values[part]
    except (KeyError, IndexError, TypeError):
        return None


def read_toml(path: str | Path) -> Document:
    """Read and parse a TOML file of at most 1 MB.

    Raises MissingInputError when it cannot be read and UsageError (with file and line) when it is not TOML.
    """
    name = str(path)
    try:
        with Path(path).open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except FileNotFoundError as error:
        raise MissingInputError(f"{name}: no such file.") from error
    except IsADirectoryError as error:
        raise MissingInputError(f"{name}: is a folder; give the TOML file itself.") from error
    except OSError as error:
        raise MissingInputError(f"{name}: cannot be read: {error.strerror}.") from error
    if len(data) > MAX_BYTES:
        raise UsageError(f"{name}: larger than 1 MB; this does not look like a recipe. Give a TOML file.")
    return parse_toml(data, name)


def parse_toml(data: bytes, name: str) -> Document:
    """The document in the bytes of a file. Raises UsageError, with the file's name and line, when it is not TOML."""
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n")  # some editors start a file with a byte order mark
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{name}:{line}: not UTF-8 text. Save the file as UTF-8.") from error
    return Document(_parse(text, name), text, name)


_NAME = r"""(?:[\w-]+|"[^"\n]*"|'[^'\n]*')"""
_DEEP = re.compile(rf"(?:^|[\[{{,])[ \t]*{_NAME}(?:[ \t]*\.[ \t]*{_NAME}){{{MAX_DEPTH}}}", re.MULTILINE)


def _parse(text: str, name: str) -> dict[str, Any]:
    if deep := _DEEP.search(text):
        line = text.count("\n", 0, deep.end()) + 1
        raise UsageError(f"{name}:{line}: nested too deeply: a key has more than {MAX_DEPTH} parts.")
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise UsageError(f"{name}: nested too deeply.") from error
    except ValueError as error:  # TOMLDecodeError, or a whole number of more digits than Python reads
        problem, _, place = str(error).partition(" (at ")
        match = re.match(r"line (\d+)", place)
        line = int(match[1]) if match else text.rstrip("\n").count("\n") + 1
        if problem.startswith("Cannot") and (duplicate := _duplicate(text, line)):
            raise UsageError(f"{name}:{duplicate}") from error
        hint = ' Text needs quotes: key = "value".' if problem == "Invalid value" else ""
        raise UsageError(f"{name}:{line}: not valid TOML: {problem[:1].lower()}{problem[1:]}.{hint}") from error


def _duplicate(text: str, last_line: int) -> str:
    """The message about the statement that ends on a line and defines a key again; empty if it does not."""
    *before, (line, path) = [place for place in _statements(text) if place[0] <= last_line] or [(0, ())]
    first = _first_lines(before)
    defined = next((path[:length] for length in range(len(path), 0, -1) if path[:length] in first), ())
    return f"{line}: '{dotted(defined)}' is already defined on line {first[defined]}." if defined else ""


_OVERRIDE = re.compile(r"--(?P<key>[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*)(=(?P<value>.*))?", re.DOTALL)


def parse_overrides(arguments: Sequence[str]) -> dict[str, object]:
    """Read `--training.lr=3e-4` or `--training.lr 3e-4` into `{"training.lr": 0.0003}`; of equal keys the last wins.

    A value that is TOML (a number, true, ["a", "b"], "quoted") is read as such; anything else is text.
    Raises UsageError for a word that is not an override and for an override without a value.
    """
    overrides: dict[str, object] = {}
    words = iter(arguments)
    for word in words:
        match = _OVERRIDE.fullmatch(word)
        if not match:
            raise UsageError(f"unexpected argument {word!r}. A recipe key is set with --table.key=value.")
        key, value = match["key"], match["value"]
        if value is None:
            value = next(words, "--")
            if value.startswith("--"):
                raise UsageError(f"--{key}: needs a value: --{key}=value.")
        overrides[key] = _parse_value(key, value)
    return overrides


def _parse_value(key: str, text: str) -> object:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"--{key}: {text!r} is not valid UTF-8.") from error
    try:
        # Inside an inline table neither a comment, a line break nor a second key can slip in unnoticed.
        table = tomllib.loads(f"table = {{ value = {text} }}")["table"]
    except (ValueError, RecursionError):
        return text
    value = table["value"]
    if len(table) != 1 or not isinstance(value, (bool, int, float, str, list, dict)):
        return text  # dates are text here: no recipe key is a date
    if isinstance(value, float) and not -float("inf") < value < float("inf"):
        return text  # "nan" is the code of a language (Min Nan), and no recipe key may be infinite
    return value


def key_lines(text: str) -> dict[KeyPath, int]:
    """Map each table and key of a valid TOML text to its line, counted from 1.

    Lists of tables are numbered as `tomllib` returns them. The line of a table is that of its header, if it has one.
    """
    statements = list(_statements(text))
    rows = text.split("\n")
    headers = {path: line for line, path in statements if rows[line - 1].lstrip().startswith("[")}
    return _first_lines(statements) | headers


def _first_lines(statements: Sequence[tuple[int, KeyPath]]) -> dict[KeyPath, int]:
    """The line on which each key, and each table around it, is first mentioned."""
    lines: dict[KeyPath, int] = {}
    for line, path in statements:
        for length in range(1, len(path) + 1):
            lines.setdefault(path[:length], line)
    return lines


def _statements(text: str) -> Iterator[tuple[int, KeyPath]]:
    """The first line and the path of each header and each `key = value`, which may take several lines.

    A statement of very many lines may end the search, as nothing but parsing it tells where it ends.
    """
    num_tables: dict[KeyPath, int] = {}
    left = _SEARCHED * len(text)
    table: KeyPath = ()
    statement, start = "", 1
    for number, row in enumerate(text.split("\n"), start=1):
        start = start if statement else number
        statement += row + "\n"
        if row.rstrip().endswith(",") and "#" not in row:  # inside a list; spares a long list many attempts
            continue
        if (left := left - len(statement)) < 0:
            return
        try:
            parsed = tomllib.loads(statement)
        except (ValueError, RecursionError):  # incomplete
            continue
        is_header, statement = statement.lstrip().startswith("["), ""
        path, value = () if is_header else table, parsed
        while isinstance(value, dict) and len(value) == 1:
            [(name, value)] = value.items()
            path = (*path, name)
            if is_header and value == [{}]:
                num_tables[path] = num_tables.get(path, 0) + 1
            if path in num_tables:  # the last table of a list of tables
                path = (*path, num_tables[path] - 1)
        table = path if is_header else table
        if parsed:  # neither blank nor a comment
            yield start, path


def dotted(path: Sequence[str | int]) -> str:
    """A path as messages show it: `stages[0].lr`; names that TOML would quote are quoted."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += "." * bool(text) + (part if re.fullmatch(r"[A-Za-z0-9_-]+", part) else json.dumps(part))
    return text


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
