"""Files of a parallel corpus: two files of lines, or one file of pairs, and its format."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from heed.core.errors import UsageError
from heed.text.archives import COMPRESSIONS, plain_name

Pair = tuple[str, str]
"""Source and target."""

Format = Literal["tsv", "csv", "jsonl", "parquet", "tmx"]

FORMATS: dict[str, Format] = {
    ".tsv": "tsv",
    ".tab": "tsv",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".tmx": "tmx",
}
SPREADSHEETS = (".xlsx", ".xls", ".ods", ".numbers")


def format_of(path: Path) -> Format | None:
    """The format by the suffix (`corpus.tsv.gz` is TSV); None for plain text or an unknown suffix."""
    return FORMATS.get(Path(plain_name(path)).suffix.lower())


def require_column_numbers(*columns: int | str | None) -> None:
    """Raise UsageError for a number below 1."""
    for column in columns:
        if isinstance(column, int) and column < 1:
            raise UsageError(f"There is no column {column}; columns are counted from 1.")


_ENTRY = re.compile(r"\b(?:row|line|unit)\b")


def counted(number: int, entry: str) -> str:
    """A number of entries that a reader counts under this name: `1 unit without de`, `60 units without de`."""
    entries = entry if number == 1 else _ENTRY.sub(r"\g<0>s", entry, count=1)
    return f"{number:,} {entries}"


@dataclass(frozen=True)
class CorpusFiles:
    """The files of sentence pairs: either `src` and `tgt`, with equally many lines, or `pairs`, one file of records.

    Raises UsageError for any other combination, and for an unknown format.
    """

    src: str | Path | None = None
    tgt: str | Path | None = None
    pairs: str | Path | None = None
    format: Format | None = None
    """Of `pairs`; None: by its suffix."""
    src_column: int | str | None = None
    """TSV and CSV: the column of the source, by number (from 1) or heading; None: see `columns`. JSONL and Parquet: its
    field."""
    tgt_column: int | str | None = None
    src_field: str = "src"
    """JSONL and Parquet: the field of the source, unless `src_column` names it."""
    tgt_field: str = "tgt"
    src_lang: str = ""
    """Language of the source: selects segments of TMX, columns of a table and fields of records, and is compared with
    the text."""
    tgt_lang: str = ""

    def __post_init__(self) -> None:
        given = [self.src is not None, self.tgt is not None, self.pairs is not None]
        if given not in ([True, True, False], [False, False, True]):
            raise UsageError("Give either two files, a source and a target, or one file of pairs.")
        if str(self.src) == "-" and str(self.tgt) == "-":
            raise UsageError("Standard input (-) can be the source or the target, not both.")
        for path in (self.src, self.tgt):
            if path is not None and format_of(Path(path)) not in (None, "tsv"):
                raise UsageError(
                    f"{path} is a file of pairs, not plain text: give it alone. If it holds only one side, save that "
                    "as plain text (.txt), one sentence per line."
                )
        require_column_numbers(self.src_column, self.tgt_column)
        numbered = isinstance(self.src_column, int) or isinstance(self.tgt_column, int)
        if numbered and self.pairs is not None and self.record_format in ("jsonl", "parquet"):
            raise UsageError(f"{self.pairs} has named fields, not numbered columns: give their names.")
        if self.src_column is not None and self.src_column == self.tgt_column:
            raise UsageError(f"Source and target cannot both be column {self.src_column}.")
        if self.pairs is not None and self.record_format == "parquet":
            if str(self.pairs) == "-":
                raise UsageError("Parquet cannot be read from standard input; give the file.")
            if Path(self.pairs).suffix.lower() in COMPRESSIONS:
                raise UsageError(f"{self.pairs}: Parquet is compressed internally; decompress the file first.")

    @property
    def record_format(self) -> Format:
        """The format of `pairs`."""
        path = Path(self.pairs or "")
        format = self.format or format_of(path)
        if format is None and path.suffix.lower() in SPREADSHEETS:
            raise UsageError(f'{path} is a spreadsheet: save the sheet as "CSV UTF-8" and give that file.')
        if format is None:
            raise UsageError(
                f"{path}: unknown format. Files of pairs end in .tsv, .csv, .jsonl, .parquet or .tmx; otherwise give "
                "two files of plain text, one for the source and one for the target."
            )
        return format

    @property
    def fields(self) -> tuple[str, str]:
        """JSONL and Parquet: the given names of the source and target fields, or the usual ones."""
        return (
            self.src_column if isinstance(self.src_column, str) else self.src_field,
            self.tgt_column if isinstance(self.tgt_column, str) else self.tgt_field,
        )

    @property
    def paths(self) -> dict[str, str | Path]:
        """The files by role: `src` and `tgt`, or `pairs`."""
        parts = {"src": self.src, "tgt": self.tgt, "pairs": self.pairs}
        return {part: path for part, path in parts.items() if path is not None}
