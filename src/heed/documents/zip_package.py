"""Zip packages, in which office documents keep their parts: reads some parts, and writes the package with them changed.

What does not change is copied as it is packed, byte by byte: pictures, styles, embedded files, macros, links to outside
files, and the order and dates of the parts. Nothing is extracted to disk and nothing inside is run or opened besides
the parts that are asked for. The standard library reads the table of contents; its writer would pack everything anew.
Sizes and places of 64 bits, which some programs write without need, are written with 32.

A package is refused if it is encrypted or damaged, or made to harm: too many parts, parts that unpack to more than is
allowed or than they declare, parts that overlap, names that lead out of a folder or occur twice.
"""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from heed.core.errors import DataError
from heed.core.files import format_bytes

MAX_PARTS = 10_000
MAX_RATIO = 200
"""To how many times its size a package may unpack, if that is more than `SMALL`; XML shrinks to a tenth or less."""
SMALL = 32 << 20
_OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_CENTRAL_HEAD = b"PK\x01\x02"
_LOCAL = struct.Struct("<4s5H3L2H")
_END = struct.Struct("<4s4H2LH")
_END_64 = b"PK\x06\x06"
_LOCATOR_64 = 20
"""Bytes between the end of the table of contents with 64 bits and that with 32."""
_64_BITS = 1
"""The kind of the further field that has sizes and places of 64 bits."""
_ELSEWHERE = 0xFFFFFFFF
"""A size or place that is in such a field."""
_IS_ENCRYPTED, _HAS_DESCRIPTOR = 1, 8


@dataclass(frozen=True)
class _Entry:
    """A part as it lies in the package."""

    info: zipfile.ZipInfo
    begin: int
    end: int
    """Where its bytes end: at the next part or at the table of contents."""


class ZipPackage:
    """A package in memory. `most`: the number of bytes to which the parts that are read may unpack, all together."""

    def __init__(self, data: bytes, name: str, most: int) -> None:
        self._data = data
        self._name = name
        self._left = most
        self._most = most
        self._read: set[str] = set()
        infos, self._contents = self._table_of_contents()
        self._listed = [info.filename for info in infos]
        self._require_harmless(infos)
        ordered = sorted(infos, key=lambda info: info.header_offset)
        ends = [*(info.header_offset for info in ordered[1:]), self._contents]
        self._entries = {
            info.filename: _Entry(info, info.header_offset, end) for info, end in zip(ordered, ends, strict=True)
        }
        if any(each.end - each.begin < _LOCAL.size + each.info.compress_size for each in self._entries.values()):
            raise self._damaged("its parts overlap")

    @property
    def names(self) -> list[str]:
        """The names of all parts, in the order in which they lie in the package."""
        return [*self._entries]

    def _damaged(self, what: str) -> DataError:
        return DataError(f"{self._name}: not a readable package ({what}). Open the document and save it again.")

    def _table_of_contents(self) -> tuple[list[zipfile.ZipInfo], int]:
        if self._data.startswith(_OLE):
            raise DataError(
                f"{self._name}: encrypted, or in the format of Office 97. Open the document, remove the password, and "
                "save it in today's format."
            )
        if not self._data.startswith(b"PK"):
            raise DataError(f"{self._name}: its content is not that of an office document. Check the suffix.")
        try:
            with zipfile.ZipFile(io.BytesIO(self._data)) as archive:
                return archive.infolist(), archive.start_dir
        except (zipfile.BadZipFile, ValueError, NotImplementedError, struct.error, OSError) as error:
            raise self._damaged(str(error)) from error

    def _require_harmless(self, infos: list[zipfile.ZipInfo]) -> None:
        names = [info.filename for info in infos]
        odd = next((name for name in names if name.startswith("/") or "\\" in name or ".." in name.split("/")), None)
        if odd is not None:
            raise self._damaged(f"a part is called {odd[:80]!r}")
        if len(infos) > MAX_PARTS or not infos:
            raise self._damaged(f"it has {len(infos):,} parts; heed reads up to {MAX_PARTS:,}")
        if len({*names}) < len(names):
            raise self._damaged("two parts have the same name")
        if any(info.flag_bits & _IS_ENCRYPTED for info in infos):
            raise DataError(f"{self._name}: encrypted. Open the document, remove the password, and save it again.")
        unpacked = sum(info.file_size for info in infos)
        if unpacked > max(SMALL, MAX_RATIO * len(self._data)):
            raise self._damaged(f"it would unpack to {format_bytes(unpacked)}, {MAX_RATIO} times its size or more")

    def read(self, name: str) -> bytes:
        """The content of a part. One that is read twice counts once."""
        info = self._entries[name].info
        self._left -= 0 if name in self._read else info.file_size
        self._read.add(name)
        if self._left < 0:
            raise DataError(f"{self._name}: its text unpacks to more than {format_bytes(self._most)}.")
        content = self._unpacked(name, info.file_size + 1)
        if len(content) != info.file_size or zlib.crc32(content) != info.CRC:
            raise self._damaged(f"{name} is cut off or changed")
        return content

    def beginning(self, name: str, size: int) -> bytes:
        """At most so many bytes of a part, which are not checked."""
        return self._unpacked(name, size)

    def _unpacked(self, name: str, most: int) -> bytes:
        entry = self._entries[name]
        *_, name_length, extra_length = _LOCAL.unpack_from(self._data, entry.begin)
        begin = entry.begin + _LOCAL.size + name_length + extra_length
        packed = self._data[begin : min(begin + entry.info.compress_size, entry.end)]
        if entry.info.compress_type == zipfile.ZIP_STORED:
            return packed[:most]
        if entry.info.compress_type != zipfile.ZIP_DEFLATED:
            raise self._damaged(f"{name} is packed by method {entry.info.compress_type}")
        try:
            return zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, most)
        except zlib.error as error:
            raise self._damaged(f"{name}: {error}") from error

    def with_parts(self, contents: Mapping[str, bytes]) -> bytes:
        """The package with other contents of some parts. Without any, the same bytes, but for fields of 64 bits."""
        out = [self._data[: min(each.begin for each in self._entries.values())]]
        moved: dict[str, int] = {}
        length = len(out[0])
        for name, entry in self._entries.items():
            moved[name] = length - entry.begin
            part = self._data[entry.begin : entry.end]
            if name in contents:
                part = self._written(entry, contents[name])
            out.append(part)
            length += len(part)
        moved[""] = length - self._contents
        return b"".join([*out, self._new_table(contents, moved)])

    def _written(self, entry: _Entry, content: bytes) -> bytes:
        """A part with its header, without further fields."""
        signature, version, flags, method, time, date, *_, name_length, _ = _LOCAL.unpack_from(self._data, entry.begin)
        name = self._data[entry.begin + _LOCAL.size :][:name_length]
        packed = _packed(content, method)
        sizes = _sizes(content, packed)
        fields = signature, version, flags & ~_HAS_DESCRIPTOR, method, time, date, *sizes, name_length, 0
        return _LOCAL.pack(*fields) + name + packed

    def _new_table(self, contents: Mapping[str, bytes], moved: Mapping[str, int]) -> bytes:
        out = []
        at = self._contents
        for name in self._listed:
            fields = [*_CENTRAL.unpack_from(self._data, at)]
            if fields[0] != _CENTRAL_HEAD:
                raise self._damaged("its table of contents is in pieces")
            begin, lengths = at + _CENTRAL.size, fields[10:13]
            at = begin + sum(lengths)
            rest = self._data[begin:at]
            if {fields[8], fields[9], fields[16]} & {_ELSEWHERE}:
                rest = self._as_32_bits(name, fields, rest)
                lengths = fields[10:13]
            fields[16] += moved[name]
            if name in contents:  # further fields, such as times in a finer unit, are left out
                fields[3] &= ~_HAS_DESCRIPTOR
                fields[7:10] = _sizes(contents[name], _packed(contents[name], fields[4]))
                fields[11], rest = 0, rest[: lengths[0]] + rest[sum(lengths[:2]) :]
            out.append(_CENTRAL.pack(*fields) + rest)
        return b"".join([*out, self._new_end(at, sum(map(len, out)), moved)])

    def _as_32_bits(self, name: str, fields: list[Any], rest: bytes) -> bytes:
        """Put sizes and the place of a part, which fit, into its fields of 32 bits; what follows them, without those
        of 64 bits."""
        entry, (name_length, extra_length) = self._entries[name], fields[10:12]
        fields[8:10] = entry.info.compress_size, entry.info.file_size
        fields[13], fields[16] = 0, entry.begin  # in the first and only piece of the package
        extra = _without_64_bits(rest[name_length : name_length + extra_length])
        fields[11] = len(extra)
        return rest[:name_length] + extra + rest[name_length + extra_length :]

    def _new_end(self, at: int, length: int, moved: Mapping[str, int]) -> bytes:
        """The end of the package, with the new place and size of the table of contents."""
        if self._data.startswith(_END_64, at):  # is left out, with what says where it is
            at += 12 + int.from_bytes(self._data[at + 4 : at + 12], "little") + _LOCATOR_64
        tail = self._data[at:]
        if not tail.startswith(b"PK\x05\x06") or len(tail) < _END.size:
            raise self._damaged("its table of contents has no end")
        fields = [*_END.unpack_from(tail)]
        begin = self._contents if fields[6] == _ELSEWHERE else fields[6]
        fields[1:7] = 0, 0, len(self._listed), len(self._listed), length, begin + moved[""]
        return _END.pack(*fields) + tail[_END.size :]


def _without_64_bits(extra: bytes) -> bytes:
    """The further fields of a part but for sizes and places of 64 bits."""
    kept, at = [], 0
    while at + 4 <= len(extra):
        kind, size = struct.unpack_from("<2H", extra, at)
        if kind != _64_BITS:
            kept.append(extra[at : at + 4 + size])
        at += 4 + size
    return b"".join([*kept, extra[at:]])


def _sizes(content: bytes, packed: bytes) -> tuple[int, int, int]:
    """What headers tell of a part: its checksum and both sizes."""
    return zlib.crc32(content), len(packed), len(content)


def _packed(content: bytes, method: int) -> bytes:
    if method == zipfile.ZIP_STORED:
        return content
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(content) + packer.flush()
