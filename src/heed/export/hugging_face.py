"""Folders of Hugging Face `transformers`: the names of their files, and how these are read and checked."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from heed.core.errors import DataError, MissingInputError
from heed.core.json_text import parse_json
from heed.core.run_files import WEIGHTS
from heed.core.weight_file import read_header

CONFIG, TOKENIZER = "config.json", "tokenizer.json"
HEED = "heed"
"""The key of `config.json` for what only heed needs."""


def write_json(path: Path, document: dict[str, Any]) -> None:
    """Write a JSON file of a folder."""
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file of a folder. Raises MissingInputError or DataError."""
    if not path.is_file():
        raise MissingInputError(f"{path} is missing. Give a folder with {CONFIG}, {WEIGHTS} and {TOKENIZER}.")
    try:
        document = parse_json(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{path} is not valid JSON: {error}.") from error
    if not isinstance(document, dict):
        raise DataError(f"{path}: expected a JSON object, got {type(document).__name__}.")
    return document


def require_supported(
    document: Mapping[str, Any], supported: Mapping[str, tuple[Any, ...]], path: Path, defaults: Mapping[str, Any] = {}
) -> None:
    """Raise DataError for a key with a value that is not supported.

    A key that is missing has its value in `defaults`, or the first one that is supported.
    """
    for key, allowed in supported.items():
        if (value := document.get(key, defaults.get(key, allowed[0]))) not in allowed:
            expected = " or ".join(map(repr, allowed))
            raise DataError(f"{path}: {key} is {value!r}, but heed supports only {expected}.")


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a weight file by name. Raises MissingInputError or DataError."""
    read_header(path)
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise DataError(f"{path} cannot be read: {error}.") from error


def require_names(tensors: Mapping[str, Tensor], names: Iterable[str], path: Path) -> None:
    """Raise DataError for a name that no tensor of the file has."""
    if missing := next((name for name in names if name not in tensors), None):
        raise DataError(f"{path} has no weight {missing!r}, so it is not the model that {CONFIG} describes.")
