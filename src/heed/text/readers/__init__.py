"""How do lines and sentence pairs come out of the files that people have, and what is said about a bad file?

A line of text ends at "\\n" and nowhere else: U+2028, U+0085 and a lone carriage return are part of the text, so that
line k is the same line for heed, for `wc -l` and for the tool that made the file.

| file            | what comes out of what                                               |
|-----------------|----------------------------------------------------------------------|
| lines.py        | lines of a text file                                                 |
| corpus.py       | where the pairs of a corpus are, and in which form                   |
| pairs.py        | pairs of two files of lines, or of one file of records               |
| tables.py       | TSV and CSV                                                          |
| columns.py      | which columns of a table they are                                    |
| records.py      | JSONL and Parquet                                                    |
| tmx.py          | translation memories                                                 |
| fingerprints.py | size, SHA-256 and lines of a file                                    |
"""

from __future__ import annotations

from heed.text.readers.columns import parse_column
from heed.text.readers.corpus import CorpusFiles
from heed.text.readers.fingerprints import FileFingerprint, fingerprint, fingerprint_file
from heed.text.readers.lines import Errors, read_lines
from heed.text.readers.pairs import read_pairs, read_text
from heed.text.readers.tables import column_languages, column_numbers, with_languages_of

__all__ = [
    "CorpusFiles",
    "Errors",
    "FileFingerprint",
    "column_languages",
    "column_numbers",
    "fingerprint",
    "fingerprint_file",
    "parse_column",
    "read_lines",
    "read_pairs",
    "read_text",
    "with_languages_of",
]
