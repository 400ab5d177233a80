"""Translation of whole files, by suffix.

A format is a module of this package, which says what is translated and what stays, and one key of `FORMATS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from heed.core.errors import UsageError
from heed.documents.converters import CONVERTERS
from heed.documents.file_format import FileContext, FileFormat
from heed.documents.html_file import HTML
from heed.documents.json_strings import JSON
from heed.documents.markdown import MARKDOWN
from heed.documents.office_open import SLIDES, WORD, WORKBOOK
from heed.documents.open_document import TEXT_DOCUMENT
from heed.documents.plain_text import PLAIN_TEXT
from heed.documents.po import PO
from heed.documents.subtitles import SUBTITLES, WEB_SUBTITLES
from heed.documents.tables import CSV, TSV
from heed.documents.text_translator import TextTranslator
from heed.documents.tmx import TMX
from heed.documents.xliff import XLIFF
from heed.documents.yaml_strings import YAML

FORMATS: Mapping[str, FileFormat] = {
    ".txt": PLAIN_TEXT,
    ".md": MARKDOWN,
    ".html": HTML,
    ".htm": HTML,
    ".docx": WORD,
    ".odt": TEXT_DOCUMENT,
    ".pptx": SLIDES,
    ".xlsx": WORKBOOK,
    ".csv": CSV,
    ".tsv": TSV,
    ".tmx": TMX,
    ".po": PO,
    ".pot": PO,
    ".xliff": XLIFF,
    ".xlf": XLIFF,
    ".json": JSON,
    ".arb": JSON,
    ".yaml": YAML,
    ".yml": YAML,
    ".srt": SUBTITLES,
    ".vtt": WEB_SUBTITLES,
}
"""By suffix."""


def format_of(name: str) -> FileFormat:
    """The format of a file by its name. Raises UsageError, with a converter if heed knows one."""
    suffix = suffix_of(name)
    if suffix in FORMATS:
        return FORMATS[suffix]
    what = f"{suffix} is" if suffix else "a file without a suffix is"
    advice = f" {CONVERTERS[suffix]}." if suffix in CONVERTERS else ""
    raise UsageError(f"{name}: {what} not supported.{advice} Supported formats: {', '.join(FORMATS)}.")


def translate_file(data: bytes, translator: TextTranslator, context: FileContext) -> bytes:
    """The translated file, in its own encoding. The suffix of its name is its format.

    Raises UsageError for an unknown format, DataError for a malformed file.
    """
    file_format = format_of(context.name)
    return file_format.translated(data, translator, context) if translator.path else data  # to its own language


def suffix_of(name: str) -> str:
    """`.txt`, in lower case."""
    return PurePosixPath(name.replace("\\", "/")).suffix.lower()
