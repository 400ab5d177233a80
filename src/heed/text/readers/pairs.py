"""How do sentence pairs come out of the files that people have?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import zip_longest
from pathlib import Path

from heed.core.errors import DataError, UsageError
from heed.text.archives import shown_name
from heed.text.readers.corpus import CorpusFiles, Format, Pair, format_of
from heed.text.readers.lines import Errors, read_lines
from heed.text.readers.records import read_jsonl, read_parquet
from heed.text.readers.tables import read_csv, read_tsv
from heed.text.readers.tmx import read_tmx

RECORD_READERS: dict[Format, Callable[[CorpusFiles, Errors, Counter[str]], Iterator[Pair]]] = {
    "tsv": read_tsv,
    "csv": read_csv,
    "jsonl": read_jsonl,
    "parquet": read_parquet,
    "tmx": read_tmx,
}


def read_pairs(
    files: CorpusFiles, errors: Errors = "strict", left_out: Counter[str] | None = None
) -> Iterator[tuple[str, str]]:
    """The sentence pairs, streamed: (source, target) in the order of the files.

    What holds no pair (a row of column names, a unit without one of the languages) is counted in `left_out`. Raises
    MissingInputError for a file that cannot be read; DataError, with file and line, for a line that is not as it
    should be, and for two files whose numbers of lines differ (found at the end of the shorter one).
    """
    if files.src is not None and files.tgt is not None:
        return _from_two_files(files.src, files.tgt, errors)
    return RECORD_READERS[files.record_format](files, errors, Counter() if left_out is None else left_out)


def _from_two_files(src: str | Path, tgt: str | Path, errors: Errors) -> Iterator[Pair]:
    src_lines, tgt_lines = read_lines(src, errors), read_lines(tgt, errors)
    for number, (src_line, tgt_line) in enumerate(zip_longest(src_lines, tgt_lines), start=1):
        if src_line is None or tgt_line is None:
            rest = sum(1 for _ in src_lines) + sum(1 for _ in tgt_lines)
            counts = [number - 1, number + rest]
            src_count, tgt_count = counts if src_line is None else reversed(counts)
            raise DataError(
                f"{shown_name(src)} has {src_count:,} lines, {shown_name(tgt)} has {tgt_count:,}: line k of one must "
                "be the translation of line k of the other. Find where they part (`paste` shows both side by side) or "
                "export both again."
            )
        yield src_line, tgt_line


def read_text(path: str | Path, errors: Errors = "strict") -> Iterator[str]:
    """The segments of a monolingual text, one a line; as `read_lines`, but refuses a file of records (UsageError)."""
    if (kind := format_of(Path(path))) not in (None, "tsv"):
        raise UsageError(f"{path} is {kind}; give plain text with one sentence or paragraph a line.")
    return read_lines(path, errors)
