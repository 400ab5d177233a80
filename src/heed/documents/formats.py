"""How is a whole file translated, its form kept?

| suffix | what is translated |
| --- | --- |
| .txt | sentences; white space, lines and paragraphs stay |
| .csv, .tsv | the rows of one column that have no translation yet (`tables.py`) |
| .tmx | the units that lack a translation (`memories.py`) |
| .srt | the text of each subtitle |
| .html, .htm | text; markup stays (`html_text.py`) |
"""

from __future__ import annotations

import codecs
import html
import io
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath

from heed.core.errors import DataError, UsageError
from heed.documents.memories import translate_tmx
from heed.documents.tables import Sides, translate_csv, translate_tsv
from heed.documents.translating import TextTranslator
from heed.text.readers.lines import UTF_16_MARKS, Errors, LineDecoder
from heed.text.readers.tmx import encoding_of, mended

_MARKS = {"utf-8-sig": codecs.BOM_UTF8, "utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}


def translate_file(
    name: str, data: bytes, translator: TextTranslator, sides: Sides, errors: Errors = "strict"
) -> bytes:
    """The file's translation, in the file's own encoding.

    `name`: its suffix says the format. `sides`: which languages, and of a table which columns, are meant. Raises
    UsageError for a format that is not known, DataError for what is not of its format or cannot be decoded.
    """
    suffix = suffix_of(name)
    if suffix not in FORMATS:
        what = f"{suffix} is" if suffix else "a file without a suffix is"
        raise UsageError(f"{what} not supported; supported are {', '.join(FORMATS)}.")
    encoding = _encoding_of(data, name, suffix)
    mark = _MARKS.get(encoding, b"") if data.startswith(tuple(_MARKS.values())) else b""
    text = _decoded(data[len(mark) :], encoding, name, errors)
    if suffix == ".tmx" and errors == "replace":
        text = "".join(mended([text]))
    translated = FORMATS[suffix](text, name, sides, translator)
    return mark + translated.encode(encoding.removesuffix("-sig"), "xmlcharrefreplace")  # TMX may be in an old encoding


def suffix_of(name: str) -> str:
    """`.txt`; in lower case."""
    return PurePosixPath(name.replace("\\", "/")).suffix.lower()


def _encoding_of(data: bytes, name: str, suffix: str) -> str:
    if data.startswith(UTF_16_MARKS):
        return "utf-16-le" if data.startswith(codecs.BOM_UTF16_LE) else "utf-16-be"
    return encoding_of(data, name) if suffix == ".tmx" else "utf-8-sig"


def _decoded(data: bytes, encoding: str, name: str, errors: Errors) -> str:
    if encoding == "utf-8-sig":
        return "".join(map(LineDecoder(name, errors).decode, io.BytesIO(data)))
    try:
        return data.decode(encoding, errors)
    except UnicodeDecodeError as error:
        raise DataError(
            f"{name}: byte {error.start + 1} is not valid {encoding.upper()}. Save the file again."
        ) from error


def _plain(text: str, name: str, sides: Sides, translator: TextTranslator) -> str:
    return translator.text(text).text


def _csv(text: str, name: str, sides: Sides, translator: TextTranslator) -> str:
    return translate_csv(text, name, sides, translator.lines)


def _tsv(text: str, name: str, sides: Sides, translator: TextTranslator) -> str:
    return translate_tsv(text, name, sides, translator.lines)


def _tmx(text: str, name: str, sides: Sides, translator: TextTranslator) -> str:
    return translate_tmx(text, name, sides, translator.lines)


def _html(text: str, name: str, sides: Sides, translator: TextTranslator) -> str:
    return translator.html(text).text


def _srt(text: str, name: str, sides: Sides, translator: TextTranslator) -> str:
    """The text of each subtitle in one piece, in as many lines as before; numbers and times stay."""
    lines = text.split("\n")
    cues = _cues(lines)
    texts = [" ".join(line.strip() for line in lines[cue]) for cue in cues]
    plain = iter(translator.lines([each for each in texts if "<" not in each]))
    outputs = [html.unescape(translator.html(each).text) if "<" in each else next(plain) for each in texts]
    for cue, output in reversed(list(zip(cues, outputs, strict=True))):
        ends = ["\r" if line.endswith("\r") else "" for line in lines[cue]]
        lines[cue] = [line + end for line, end in zip(_wrapped(output, len(ends)), ends, strict=False)]
    return "\n".join(lines)


def _cues(lines: list[str]) -> list[slice]:
    """The lines of text of each subtitle: those behind the line of its times, up to an empty one."""
    cues, begin = [], -1
    for number, line in enumerate([*lines, ""]):
        if "-->" in line:
            begin = number + 1
        elif not line.strip() and begin >= 0:
            cues += [slice(begin, number)] if number > begin else []
            begin = -1
    return cues


def _wrapped(text: str, num_lines: int) -> list[str]:
    """A text in so many lines of like length, or fewer."""
    lines: list[str] = []
    for left in range(num_lines, 1, -1):
        aim = len(text) / left
        spaces = [place for place, char in enumerate(text) if char == " "]
        if not spaces:
            break
        cut = min(spaces, key=lambda place: abs(place - aim))
        lines.append(text[:cut])
        text = text[cut + 1 :]
    return [*lines, text]


FORMATS: Mapping[str, Callable[[str, str, Sides, TextTranslator], str]] = {
    ".txt": _plain, ".csv": _csv, ".tsv": _tsv, ".tmx": _tmx, ".srt": _srt, ".html": _html, ".htm": _html,
}  # fmt: skip
"""By suffix."""
MARKUP = (".html", ".htm", ".tmx")
"""What is not all text."""
