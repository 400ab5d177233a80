"""What does a TOML file or a command line say, and on which line does it say it?

The standard library's `tomllib` reads the values but forgets where they stood; `key_lines` finds that again,
so that an error in a recipe can point at its line.
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

KeyPath = tuple[str | int, ...]
"""Where a value stands: table and key names, and positions in lists. `("stages", 0, "lr")`."""


@dataclass(frozen=True)
class Document:
    """A parsed TOML text; `name` is the file as the person wrote it, empty when there is no file."""

    values: Mapping[str, Any] = field(default_factory=dict)
    text: str = ""
    name: str = ""

    @cached_property
    def lines(self) -> dict[KeyPath, int]:
        """The line, counted from 1, on which each table and key stands."""
        return key_lines(self.text)


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
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n")  # some editors put a byte order mark in front
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{name}:{line}: not UTF-8 text. Save the file as UTF-8.") from error
    return Document(_parse(text, name), text, name)


def _parse(text: str, name: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise UsageError(f"{name}: nested too deeply.") from error
    except ValueError as error:  # TOMLDecodeError, or a whole number of more digits than Python reads
        problem, _, place = str(error).partition(" (at ")
        found = re.match(r"line (\d+), column (\d+)", place)
        line = int(found[1]) if found else text.rstrip("\n").count("\n") + 1
        if problem.startswith("Cannot") and (second := _given_twice(text, line)):
            raise UsageError(f"{name}:{second}") from error
        hint = ' Text needs quotes: key = "value".' if problem == "Invalid value" else ""
        raise UsageError(f"{name}:{line}: not valid TOML: {problem[:1].lower()}{problem[1:]}.{hint}") from error


def _given_twice(text: str, last_line: int) -> str:
    """What is wrong with the statement that ends on a line, when it says again what was said; else empty."""
    first: dict[KeyPath, int] = {}
    table: KeyPath = ()
    found = ""
    for line, tokens in _statements(text):
        if line > last_line:
            break
        keys = tuple(_key_parts(tokens))
        if tokens[:2] == ["[", "["]:  # a new table of an array may say everything again
            first = {path: number for path, number in first.items() if path[: len(keys)] != keys}
        is_header = tokens[0] == "["
        path = keys if is_header else (*table, *keys)
        parents = _parents(path, 0 if is_header else len(table))
        table = keys if is_header else table
        before = path if path in first else next((parent for parent in parents if parent in first), None)
        found = f"{line}: '{dotted(before)}' stands here again, after line {first[before]}." if before else ""
        for part in (*_parents(path, 0), path):
            first.setdefault(part, line)
    return found


def _parents(path: KeyPath, start: int) -> list[KeyPath]:
    """The paths of more than `start` keys that lead to a path."""
    return [path[:length] for length in range(start + 1, len(path))]


_OVERRIDE = re.compile(r"--(?P<key>[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*)(=(?P<value>.*))?", re.DOTALL)


def parse_overrides(arguments: Sequence[str]) -> dict[str, object]:
    """Read `--training.lr=3e-4` or `--training.lr 3e-4` into `{"training.lr": 0.0003}`; of equal keys the last wins.

    A value that is TOML (a number, true, ["a", "b"], "quoted") is read as such; anything else is text.
    Raises UsageError for a word that is no override and for an override without a value.
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


_TOKEN = re.compile(
    r'''(?P<skip>[ \t\r]+|\#[^\n]*)
      | (?P<newline>\n)
      | (?P<text>"""(?:\\.|[^\\])*?"""(?!") | \'\'\'.*?\'\'\'(?!\') | "(?:\\.|[^"\\])*" | '[^']*')
      | (?P<mark>[\[\]{}=.,])
      | (?P<bare>[^\s\[\]{}=.,\#"']+)''',
    re.DOTALL | re.VERBOSE,
)


def key_lines(text: str) -> dict[KeyPath, int]:
    """Map each table and key of a valid TOML text to its line, counted from 1.

    Arrays of tables are numbered as `tomllib` returns them. What stands inside a value (lists, inline tables)
    is not listed: its place is that of the key it belongs to.
    """
    lines: dict[KeyPath, int] = {}
    num_tables: dict[KeyPath, int] = {}

    def note(path: KeyPath, line: int) -> KeyPath:
        lines.setdefault(path, line)
        return path

    def descend(table: KeyPath, keys: Sequence[str], line: int) -> KeyPath:
        for key in keys:
            table = note((*table, key), line)
            if table in num_tables:  # the last one written of an array of tables
                table = (*table, num_tables[table] - 1)
        return table

    table: KeyPath = ()
    for line, tokens in _statements(text):
        keys = _key_parts(tokens)
        if tokens[:2] == ["[", "["]:
            array = note((*descend((), keys[:-1], line), keys[-1]), line)
            table = note((*array, num_tables.get(array, 0)), line)
            num_tables[array] = num_tables.get(array, 0) + 1
        elif tokens[0] == "[":
            table = descend((), keys, line)
            lines[table] = line  # a header is a better place than a mention in [table.below]
        else:
            descend(table, keys, line)
    return lines


def dotted(path: Sequence[str | int]) -> str:
    """A path as it is written in messages: `stages[0].lr`; names that TOML would quote are quoted."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += "." * bool(text) + (part if re.fullmatch(r"[A-Za-z0-9_-]+", part) else json.dumps(part))
    return text


def _statements(text: str) -> Iterator[tuple[int, list[str]]]:
    """The line and the tokens of each header and each `key = value`, whatever number of lines it runs over."""
    tokens: list[str] = []
    line = start = 1
    depth = 0
    for match in _TOKEN.finditer(text + "\n"):
        token = match[0]
        if match.lastgroup == "newline" and depth == 0 and tokens:
            yield start, tokens
            tokens = []
        elif match.lastgroup in ("mark", "text", "bare"):
            start = start if tokens else line
            tokens.append(token)
            depth += (token in ("[", "{")) - (token in ("]", "}"))
        line += token.count("\n")


def _key_parts(tokens: Sequence[str]) -> list[str]:
    end = tokens.index("=") if "=" in tokens else len(tokens)
    keys = [token for token in tokens[:end] if token not in ("[", "]", ".")]
    return [tomllib.loads(f"key = {key}")["key"] if key[0] in "\"'" else key for key in keys]
