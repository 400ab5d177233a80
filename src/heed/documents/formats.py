"""Translation of whole files, by suffix.

A format is a module of this package, which says what is translated and what stays, and one key of `FORMATS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from heed.core.errors import UsageError
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

_OFFICE = "Save it as {0} in LibreOffice (soffice --convert-to {0}) and use that file"
_MACROS = "heed does not take files with macros. Save it as {0}"
_PANDOC = "Convert it with pandoc to {0} and use that file"
_TOOLKIT = "Convert it to .po with {0} of the Translate Toolkit, and back after the translation"
CONVERTERS: Mapping[str, str] = {
    **{suffix: _OFFICE.format("docx") for suffix in (".doc", ".rtf", ".dot", ".wpd", ".pages")},
    **{suffix: _OFFICE.format("xlsx") for suffix in (".xls", ".ods", ".numbers", ".xlsb")},
    **{suffix: _OFFICE.format("pptx") for suffix in (".ppt", ".odp", ".key")},
    **{suffix: _MACROS.format(f"{suffix[:-1]}x") for suffix in (".docm", ".xlsm", ".pptm")},
    **{suffix: _PANDOC.format(".md") for suffix in (".rst", ".tex", ".adoc", ".org", ".ipynb", ".wiki")},
    **{suffix: _TOOLKIT.format(tool) for suffix, tool in (
        (".properties", "prop2po"), (".resx", "resx2po"), (".ts", "ts2po"), (".strings", "prop2po"),
        (".ini", "ini2po"), (".ftl", "moz2po"), (".php", "php2po"), (".rc", "rc2po"),
    )},
    ".pdf": "Convert it with pdf2docx to .docx, or with pdftotext to .txt, and use that file",
    ".epub": "Convert it with Calibre (ebook-convert) or pandoc to .docx and use that file",
    ".mobi": "Convert it with Calibre (ebook-convert) to .docx and use that file",
    ".mo": "Convert it with msgunfmt to .po and use that file",
    ".xml": "If it is XLIFF, name it .xliff; Android's strings become .po with android2po",
    **dict.fromkeys((".ass", ".ssa", ".sub", ".sbv"), "Convert it with ffmpeg to .srt and use that file"),
}  # fmt: skip
"""What turns a file of another format into one that heed takes."""


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
