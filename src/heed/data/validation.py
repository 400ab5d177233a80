"""Validation rows of a run folder, in `data/valid.jsonl`: the texts of a row's columns, one row a line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from heed.core.errors import DataError, MissingInputError
from heed.core.json_text import parse_json
from heed.core.own_files import LARGE
from heed.core.run_files import RunFiles

Row = tuple[str, ...]

VALID = "data/valid.jsonl"
"""The file, in a run folder."""
RESTART = "Start again with --overwrite."


def write_valid(folder: Path, rows: Sequence[Row]) -> None:
    """Write the validation rows into the run folder, so that a resumed run uses the same ones."""
    require_valid(rows)
    with RunFiles(folder).write(VALID, "w") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def require_valid(rows: Sequence[Row]) -> None:
    """Raise DataError if there are no validation rows."""
    if not rows:
        raise DataError(
            "no validation data: no row was held out, or the validation file has none that can be used. Give a file "
            "with some (such as --valid-src and --valid-tgt, --valid-table or --valid-text), or more rows that differ."
        )


def read_valid(folder: Path) -> list[Row]:
    """Read the validation rows. Raises DataError if the file is damaged."""
    try:
        text = RunFiles(folder).read(VALID, LARGE, RESTART).decode()
        return [tuple(parse_json(line)) for line in text.split("\n") if line]
    except (MissingInputError, ValueError, TypeError) as error:
        raise DataError(f"{folder / VALID} is damaged or missing. {RESTART}") from error
