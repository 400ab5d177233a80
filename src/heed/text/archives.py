"""Plain and compressed files (.gz, .xz, .zst): reading, writing, and errors that say why one cannot be read."""

from __future__ import annotations

import difflib
import gzip
import io
import lzma
import re
import sys
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any, BinaryIO, TextIO, cast

from heed.core.errors import DataError, MissingInputError
from heed.core.files import atomic_write, format_bytes

if sys.version_info >= (3, 14):
    from compression.zstd import ZstdError
else:
    from zstandard import ZstdCompressor, ZstdDecompressor, ZstdError

_MAGIC = {".gz": rb"\x1f\x8b", ".xz": rb"\xfd7zXZ\x00", ".zst": rb"\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18"}
"""The first bytes of an archive, as regular expressions; Zstandard may start with a skippable frame."""

COMPRESSIONS = tuple(_MAGIC)

_DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError, ZstdError)
"""The exceptions that reading a damaged archive raises."""

MAX_LINE_BYTES = 16_000_000
"""Of a line, which is held in memory several times; a long novel has a few million."""
_BLOCK = 1 << 16
_PACKED = 1 << 8
"""Bytes of Zstandard that are unpacked at once; at most 2^15 times as many."""
MAX_UNPACKING_BYTES = 130 << 20
"""Memory for the dictionary of an `.xz` file: twice that of `xz -9`. Zstandard's own limit is about the same."""


@contextmanager
def open_bytes(path: str | Path) -> Iterator[BinaryIO]:
    """The unpacked bytes of a plain, `.gz`, `.xz` or `.zst` file, or of standard input for `-`.

    Raises MissingInputError for a file that does not exist or cannot be read, DataError for a damaged archive or one
    with the wrong suffix.
    """
    if str(path) == "-":
        yield sys.stdin.buffer
        return
    with open_file(Path(path)) as file:
        try:
            yield _unpacked(file, Path(path))
        except _DAMAGED as error:
            raise DataError(_damage(path, error)) from error


@contextmanager
def open_output(path: str | Path) -> Iterator[IO[bytes]]:
    """A new file for bytes, compressed if its suffix says so, which replaces `path` when the with-block ends.

    The same bytes are always compressed in the same way. Raises what `atomic_write` raises.
    """
    with atomic_write(path) as file, _packed(file, Path(path).suffix.lower()) as packed:
        yield packed


@contextmanager
def open_text_output(path: str | Path) -> Iterator[TextIO]:
    """The same for text, which is written as UTF-8 with line feeds."""
    with open_output(path) as file:
        text = io.TextIOWrapper(cast(BinaryIO, file), "utf-8", newline="\n")
        yield text
        text.detach()  # writes the rest


def raw_lines(path: str | Path, offset: int = 0, num_before: int = 0) -> Iterator[bytes]:
    """The bytes of each line with its line end; from the byte `offset` of a plain file, after `num_before` lines.

    Raises what `open_bytes` raises, and DataError for a line of more than `MAX_LINE_BYTES`.
    """
    number, name = num_before, shown_name(path)
    with open_bytes(path) as file:
        if offset:
            file.seek(offset)
        try:
            while raw := file.readline(MAX_LINE_BYTES + 1):
                require_line(len(raw), name, number + 1)
                yield raw
                number += 1
        except _DAMAGED as error:
            where = f" after line {number:,}" if number else " in its first line"
            raise DataError(_damage(path, error, where)) from error


def count_lines(path: str | Path) -> tuple[int, int]:
    """The number of lines of a file, and of those that end in CRLF, however long they are. Raises as `raw_lines`."""
    lines = crlf_lines = 0
    last = b"\n"
    with open_bytes(path) as file:
        while block := file.read(_BLOCK):
            lines += block.count(b"\n")
            crlf_lines += block.count(b"\r\n") + (last == b"\r" and block[:1] == b"\n")
            last = block[-1:]
    return lines + (last != b"\n"), crlf_lines


def require_line(size: int, name: str, number: int) -> None:
    """Raise DataError where a line of a file is longer than any text: so much memory could not be had for all."""
    if size > MAX_LINE_BYTES:
        raise DataError(
            f"{name}:{number}: the line has more than {format_bytes(MAX_LINE_BYTES)}, the most that heed reads. Is it "
            "text, with a sentence or a paragraph in each line? Only a line feed ends a line."
        )


def _damage(path: str | Path, error: BaseException, where: str = "") -> str:
    if "memory" in str(error).lower():
        return (
            f"{shown_name(path)} needs more than {format_bytes(MAX_UNPACKING_BYTES)} of memory to be decompressed. "
            "Compress it again with the usual settings, such as `xz -9` or `zstd -19`."
        )
    what = "ends unexpectedly" if isinstance(error, EOFError) else f"cannot be decompressed ({error})"
    return f"{shown_name(path)} {what}{where}. The archive is damaged or incomplete: copy or create it again."


def open_file(path: Path) -> BinaryIO:
    """The file, opened for reading bytes. Raises MissingInputError with the reason when it cannot be."""
    try:
        return path.open("rb")
    except FileNotFoundError as error:
        raise MissingInputError(f"{path} does not exist.{_did_you_mean(path)}") from error
    except IsADirectoryError as error:
        raise MissingInputError(f"{path} is a folder; give a file.") from error
    except PermissionError as error:
        raise MissingInputError(
            f"{path}: permission denied. Check the access rights of the file and its folder."
        ) from error
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise MissingInputError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}.") from error


def _did_you_mean(path: Path) -> str:
    try:
        names = [entry.name for entry in path.parent.iterdir()]
    except OSError:
        return f" The folder {path.parent} does not exist or cannot be listed."
    near = [name for name in names if name.startswith(path.name)] + difflib.get_close_matches(path.name, names)
    return f" Did you mean {path.parent / near[0]}?" if near else ""


def _unpacked(file: BinaryIO, path: Path) -> BinaryIO:
    suffix = path.suffix.lower()
    if suffix in _MAGIC and (start := cast(io.BufferedReader, file).peek(6)) and not re.match(_MAGIC[suffix], start):
        raise DataError(f"{path} is not a {suffix} archive. If it is plain text, remove {suffix} from its name.")
    if suffix == ".gz":
        return cast(BinaryIO, gzip.GzipFile(fileobj=file))
    if suffix == ".xz":
        return io.BufferedReader(_XzStream(file))
    return _unpack_zstandard(file) if suffix == ".zst" else file


def _packed(file: IO[bytes], suffix: str) -> AbstractContextManager[IO[bytes]]:
    """A writer into a file that stays open, which compresses by suffix."""
    if suffix == ".gz":
        return gzip.GzipFile("", "wb", 6, file, mtime=0)  # type: ignore[return-value]
    if suffix == ".xz":
        return lzma.LZMAFile(file, "wb")
    return _pack_zstandard(file) if suffix == ".zst" else nullcontext(file)


class _XzStream(io.RawIOBase):
    """The streams of an `.xz` file, one after another; the standard library's own reader limits no memory."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._stream = self._next_stream()
        self._is_started = False

    @staticmethod
    def _next_stream() -> lzma.LZMADecompressor:
        return lzma.LZMADecompressor(lzma.FORMAT_XZ, MAX_UNPACKING_BYTES)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        plain = b""
        while not plain:
            packed = b""
            if self._stream.eof:
                packed = self._stream.unused_data.lstrip(b"\0")  # streams may be padded
                self._stream, self._is_started = self._next_stream(), False
            if not packed and self._stream.needs_input and not (packed := self._file.read(_BLOCK)):
                break
            if not self._is_started and not (packed := packed.lstrip(b"\0")):
                continue
            self._is_started = True
            plain = self._stream.decompress(packed, len(buffer))
        if not plain and self._is_started:
            raise EOFError("the last stream is incomplete")
        buffer[: len(plain)] = plain
        return len(plain)


if sys.version_info >= (3, 14):

    def _unpack_zstandard(file: BinaryIO) -> BinaryIO:
        from compression.zstd import ZstdFile

        return cast(BinaryIO, ZstdFile(file))

    def _pack_zstandard(file: IO[bytes]) -> AbstractContextManager[IO[bytes]]:
        from compression.zstd import ZstdFile

        return cast(Any, ZstdFile(file, "wb"))

else:

    def _pack_zstandard(file: IO[bytes]) -> AbstractContextManager[IO[bytes]]:
        return ZstdCompressor().stream_writer(file, closefd=False)

    def _unpack_zstandard(file: BinaryIO) -> BinaryIO:
        return io.BufferedReader(_ZstandardStream(file))

    class _ZstandardStream(io.RawIOBase):
        """The frames of a file, one after another; the package's own reader does not notice a truncated frame."""

        def __init__(self, file: BinaryIO) -> None:
            self._file = file
            self._frame = ZstdDecompressor().decompressobj()
            self._inside_frame = False
            self._packed = b""
            self._plain = memoryview(b"")

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            while not self._plain:
                block = self._packed or self._file.read(_PACKED)
                if not block and self._inside_frame:
                    raise EOFError("the last frame is incomplete")
                if not block:
                    return 0
                if not self._inside_frame:
                    self._frame = ZstdDecompressor().decompressobj()
                self._plain = memoryview(self._frame.decompress(block))
                self._inside_frame = not self._frame.eof
                self._packed = self._frame.unused_data
            part, self._plain = self._plain[: len(buffer)], self._plain[len(buffer) :]
            buffer[: len(part)] = part
            return len(part)


def is_stream(path: str | Path) -> bool:
    """Whether a path is standard input or a pipe, such as the shell's `<(...)`, which can be read only once."""
    try:
        return str(path) == "-" or Path(path).is_fifo()
    except OSError:  # opening it reports the reason
        return False


def shown_name(path: str | Path) -> str:
    """A path as shown in messages."""
    return "standard input" if str(path) == "-" else str(path)


def plain_name(path: str | Path) -> str:
    """The name of the file after decompression: `a.csv` for `a.csv.gz`."""
    file = Path(path)
    return str(file.with_suffix("")) if file.suffix.lower() in COMPRESSIONS else str(file)
