"""File format of compressed texts.

    8 bytes   signature, which also reveals changed line ends
    4 bytes   length of the header, little-endian
    header    JSON: format, fingerprint of the model, arithmetic, length and SHA-256 of the text
    payload   the code
    4 bytes   CRC-32 of everything before

The header lists everything that must be equal for the code to be decoded; if anything differs, nothing is decoded.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, PositiveInt, ValidationError

from heed.core.errors import DataError
from heed.core.formats import NewerFormatError

SIGNATURE = b"\x89heed\r\n\x1a"
FORMAT = 1
MAX_HEADER_BYTES = 1 << 20


class Header(BaseModel):
    """Header of a compressed file."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    format: PositiveInt = FORMAT
    """Version of the file format."""
    heed: str
    """Version of heed that wrote the file."""
    model: str
    """Fingerprint of the model, its tokenizer and how it reads text."""
    arithmetic: Mapping[str, str]
    """Properties that affect the last bits of probabilities: precision, threads, PyTorch, processor instructions."""
    coded: bool
    """False if the payload is the text itself, which was shorter than its code."""
    num_bytes: NonNegativeInt
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    rows: PositiveInt = 1
    """Pieces that were coded in parallel."""
    lengths: tuple[PositiveInt, ...] | None = None
    """Number of items of each piece; None if pieces are lines that end with an end of sentence."""
    num_lines: NonNegativeInt = 0
    """Number of pieces if they are lines."""
    unended: bool = False
    framed: bool = False
    spaced: bool = False


def pack(header: Header, payload: bytes) -> bytes:
    """The whole file."""
    text = header.model_dump_json(exclude_defaults=True).encode()
    body = SIGNATURE + len(text).to_bytes(4, "little") + text + payload
    return body + zlib.crc32(body).to_bytes(4, "little")


def unpack(blob: bytes) -> tuple[Header, bytes]:
    """(header, payload). Raises DataError for a foreign or damaged file, and NewerFormatError for a newer one."""
    if not blob.startswith(SIGNATURE):
        raise DataError("the input was not written by heed compress: its signature is missing.")
    body, check = blob[:-4], blob[-4:]
    if len(blob) < len(SIGNATURE) + 8 or zlib.crc32(body).to_bytes(4, "little") != check:
        raise DataError("the compressed file is damaged: its checksum differs. Get a new copy of it.")
    begin = len(SIGNATURE) + 4
    end = begin + int.from_bytes(body[len(SIGNATURE) : begin], "little")
    if end > min(len(body), MAX_HEADER_BYTES):
        raise DataError("the compressed file is damaged: its header is longer than the file.")
    return _parse_header(body[begin:end]), body[end:]


def _parse_header(text: bytes) -> Header:
    try:
        header = Header.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        if b'"format":' in text and b'"format":1' not in text:
            raise NewerFormatError("the compressed file was written by a newer heed. Update heed.") from error
        where = ".".join(map(str, first["loc"]))
        raise DataError(f"the header of the compressed file is invalid at {where!r}: {first['msg']}.") from error
    if header.format > FORMAT:
        raise NewerFormatError(
            f"the compressed file has format {header.format}, but this heed reads only up to {FORMAT}. Update heed."
        )
    return header


def checksum(data: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(data).hexdigest()
