"""How is a whole file translated, its form kept, and held until its client fetches it?

Plain text, TSV (each cell), SubRip subtitles and HTML, all of them UTF-8.
"""

from __future__ import annotations

import html
import re
import threading
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from heed.serve.errors import BadRequestError
from heed.serve.translating import TextTranslator

MAX_HELD_BYTES = 64 << 20
MAX_HELD_SECONDS = 3600.0
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]+")
_BOM = "\ufeff"


def translate_file(name: str, data: bytes, translator: TextTranslator) -> bytes:
    """The file's translation. Raises BadRequestError for a format that is not known, and for what is not UTF-8."""
    suffix = suffix_of(name)
    if suffix not in FORMATS:
        known = ", ".join(FORMATS)
        what = suffix or "a file without a suffix"
        raise BadRequestError(f"Invalid request: {what} is not supported; supported are {known}", "file")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise BadRequestError(f"The file is not UTF-8 (byte {error.start}).", "file") from error
    mark, text = (_BOM, text[1:]) if text.startswith(_BOM) else ("", text)
    return (mark + FORMATS[suffix](text, translator)).encode("utf-8")


def suffix_of(name: str) -> str:
    """`.txt`; in lower case."""
    return PurePosixPath(name.replace("\\", "/")).suffix.lower()


def _plain(text: str, translator: TextTranslator) -> str:
    return translator.text(text).text


def _tsv(text: str, translator: TextTranslator) -> str:
    """Each cell on its own; tabs and line ends stay."""
    cells = re.split("([\t\r\n]+)", text)
    cells[::2] = translator.lines(cells[::2])
    return "".join(cells)


def _html(text: str, translator: TextTranslator) -> str:
    return translator.html(text).text


def _srt(text: str, translator: TextTranslator) -> str:
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


FORMATS: Mapping[str, Callable[[str, TextTranslator], str]] = {
    ".txt": _plain, ".tsv": _tsv, ".srt": _srt, ".html": _html, ".htm": _html,
}  # fmt: skip
"""By suffix."""


@dataclass(frozen=True)
class Held:
    """A translated file that waits for its client."""

    name: str
    data: bytes
    since: float


class Downloads:
    """Translated files, in memory, under names that nobody guesses. The oldest make room for new ones."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._held: OrderedDict[str, Held] = OrderedDict()
        self._lock = threading.Lock()

    def put(self, name: str, data: bytes) -> str:
        """Hold a file; the name to fetch it by."""
        shown = _NOT_IN_NAMES.sub("_", PurePosixPath(name.replace("\\", "/")).name)[-80:].lstrip(".") or "file"
        key = f"{uuid.uuid4()}.{shown}"
        with self._lock:
            self._held[key] = Held(shown, data, self._clock())
            self._forget()
        return key

    def get(self, key: str) -> Held | None:
        """The file, or None when there is none, or none any longer."""
        with self._lock:
            self._forget()
            return self._held.get(key)

    def _forget(self) -> None:
        oldest_allowed = self._clock() - MAX_HELD_SECONDS
        while self._held and (
            sum(len(held.data) for held in self._held.values()) > MAX_HELD_BYTES
            or next(iter(self._held.values())).since < oldest_allowed
        ):
            self._held.popitem(last=False)
