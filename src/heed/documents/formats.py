"""Translation of whole files, by suffix.

| suffix | what is translated |
| --- | --- |
| .txt | sentences; white space, lines and paragraphs stay |
| .csv, .tsv | rows of one column without a translation (`tables.py`) |
| .tmx | units without a translation (`tmx.py`) |
| .srt | the text of each subtitle (`subtitles.py`) |
| .html, .htm | text; markup stays (`html_spans.py`) |
"""

from __future__ import annotations

import codecs
import io
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath

from heed.core.errors import DataError, UsageError
from heed.documents.subtitles import translate_srt
from heed.documents.tables import Notify, translate_csv, translate_tsv
from heed.documents.text_translator import TextTranslator
from heed.documents.tmx import translate_tmx
from heed.text.readers.columns import Sides
from heed.text.readers.corpus import SPREADSHEETS
from heed.text.readers.lines import UTF_16_MARKS, Errors, LineDecoder, utf_16_of
from heed.text.readers.tmx import encoding_of, mended

_BYTE_ORDER_MARKS = {"utf-8-sig": codecs.BOM_UTF8, "utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}


def translate_file(
    name: str,
    data: bytes,
    translator: TextTranslator,
    sides: Sides,
    errors: Errors = "strict",
    notify: Notify | None = None,
) -> bytes:
    """The translated file, in its own encoding.

    The suffix of `name` is the format. `sides`: the languages, and the columns of a table. `notify` gets a message
    about what will be translated. Raises UsageError for an unknown format, DataError for a malformed file.
    """
    suffix = suffix_of(name)
    if suffix in SPREADSHEETS:
        raise UsageError(f'{suffix} is not supported. Save the sheet as "CSV UTF-8" and use that file.')
    if suffix not in FORMATS:
        what = f"{suffix} is" if suffix else "a file without a suffix is"
        raise UsageError(f"{what} not supported; supported formats: {', '.join(FORMATS)}.")
    if not translator.path:  # to its own language
        return data
    encoding = _encoding_of(data, name, suffix)
    mark = _BYTE_ORDER_MARKS.get(encoding, b"") if data.startswith(tuple(_BYTE_ORDER_MARKS.values())) else b""
    text = _decoded(data[len(mark) :], encoding, name, errors)
    if suffix == ".tmx" and errors == "replace":
        text = "".join(mended([text]))
    translated = FORMATS[suffix](text, name, sides, translator, notify or (lambda message: None))
    return mark + translated.encode(encoding.removesuffix("-sig"), "xmlcharrefreplace")  # TMX may be in an old encoding


def sample_of(name: str, data: bytes) -> str:
    """The beginning of a file as text, for language detection; undecodable bytes become U+FFFD."""
    encoding = _encoding_of(data, name, suffix_of(name))
    return data[:100_000].decode(encoding, "replace")


def suffix_of(name: str) -> str:
    """`.txt`, in lower case."""
    return PurePosixPath(name.replace("\\", "/")).suffix.lower()


def _encoding_of(data: bytes, name: str, suffix: str) -> str:
    if data.startswith(UTF_16_MARKS):
        return "utf-16-le" if data.startswith(codecs.BOM_UTF16_LE) else "utf-16-be"
    start = data[:1000]
    if suffix != ".tmx" and 4 * start.count(0) > len(start):
        return utf_16_of(start).lower().replace("utf-16", "utf-16-")
    return encoding_of(data, name) if suffix == ".tmx" else "utf-8-sig"


def _decoded(data: bytes, encoding: str, name: str, errors: Errors) -> str:
    try:
        return data.decode(encoding, errors)
    except UnicodeDecodeError as error:
        if encoding == "utf-8-sig":  # which line is wrong, and why
            return "".join(map(LineDecoder(name, errors).decode, io.BytesIO(data)))
        raise DataError(
            f"{name}: byte {error.start + 1} is not valid {encoding.upper()}. Save the file again."
        ) from error


def _text(text: str, name: str, sides: Sides, translator: TextTranslator, notify: Notify) -> str:
    return translator.text(text).text


def _html(text: str, name: str, sides: Sides, translator: TextTranslator, notify: Notify) -> str:
    return translator.html(text).text


def _srt(text: str, name: str, sides: Sides, translator: TextTranslator, notify: Notify) -> str:
    return translate_srt(text, translator)


FORMATS: Mapping[str, Callable[[str, str, Sides, TextTranslator, Notify], str]] = {
    ".txt": _text,
    ".csv": translate_csv,
    ".tsv": translate_tsv,
    ".tmx": translate_tmx,
    ".srt": _srt,
    ".html": _html,
    ".htm": _html,
}
"""By suffix."""
MARKUP = (".html", ".htm", ".tmx")
"""Formats with markup."""
BILINGUAL = (".csv", ".tsv", ".tmx")
"""Formats that may have texts in two languages."""
