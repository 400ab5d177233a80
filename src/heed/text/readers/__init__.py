"""Readers: lines and sentence pairs from text, tables, records and translation memories.

A line of text ends at "\\n" and nowhere else: U+2028, U+0085 and a lone carriage return are part of the text. So line k
is the same line for heed, for `wc -l` and for the tool that made the file.

| file          | contents                                                        |
|---------------|-----------------------------------------------------------------|
| lines.py      | lines of a text file                                            |
| corpus.py     | the files of a corpus and their formats                         |
| pairs.py      | sentence pairs, monolingual text and fingerprints, of any format |
| tables.py     | TSV and CSV                                                     |
| columns.py    | which columns of a table hold source and target                 |
| records.py    | JSONL and Parquet                                               |
| tmx.py        | pairs of a translation memory                                   |
| tmx_parser.py | units of a translation memory                                   |
"""

from __future__ import annotations

from heed.text.readers.columns import parse_column
from heed.text.readers.corpus import CorpusFiles
from heed.text.readers.lines import Errors, read_lines
from heed.text.readers.pairs import FileFingerprint, fingerprint, fingerprint_file, read_pairs, read_text
from heed.text.readers.tables import column_languages, column_numbers, with_languages_of

__all__ = [
    "CorpusFiles", "Errors", "FileFingerprint", "column_languages", "column_numbers", "fingerprint",
    "fingerprint_file", "parse_column", "read_lines", "read_pairs", "read_text", "with_languages_of",
]  # fmt: skip
