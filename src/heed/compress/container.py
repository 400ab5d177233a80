"""What does a compressed file say about itself?

    8 bytes   a signature that shows when a program has changed line ends, and that it is no text
    4 bytes   the length of the header, little-endian
    header    JSON: the format, the model's fingerprint, what its arithmetic depends on, the text's length and SHA-256
    payload   the code
    4 bytes   CRC-32 of all before

The header tells everything that must be the same for the code to be read; if it is not, nothing is decoded.
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
    """What is written before the code."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    format: PositiveInt = FORMAT
    """Of the file."""
    heed: str
    """The version that wrote it."""
    model: str
    """Fingerprint of the model, its tokenizer and how it reads text."""
    arithmetic: Mapping[str, str]
    """What the last bits of probabilities may depend on: precision, threads, PyTorch, the processor's instructions."""
    coded: bool
    """False where the text itself is the payload, which was shorter."""
    num_bytes: NonNegativeInt
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
    rows: PositiveInt = 1
    """Pieces that were coded side by side."""
    lengths: tuple[PositiveInt, ...] | None = None
    """Items of each piece; None where pieces are lines that end by themselves."""
    num_lines: NonNegativeInt = 0
    """Pieces, where they are lines."""
    unended: bool = False
    framed: bool = False


def written(header: Header, payload: bytes) -> bytes:
    """The whole file."""
    text = header.model_dump_json(exclude_defaults=True).encode()
    body = SIGNATURE + len(text).to_bytes(4, "little") + text + payload
    return body + zlib.crc32(body).to_bytes(4, "little")


def read(blob: bytes) -> tuple[Header, bytes]:
    """(header, payload). Raises DataError for what is no such file, or damaged, and NewerFormatError."""
    if not blob.startswith(SIGNATURE):
        raise DataError("this is no file that heed compress wrote.")
    body, check = blob[:-4], blob[-4:]
    if len(blob) < len(SIGNATURE) + 8 or zlib.crc32(body).to_bytes(4, "little") != check:
        raise DataError("the file is damaged: its checksum does not fit. Get a new copy of it.")
    begin = len(SIGNATURE) + 4
    end = begin + int.from_bytes(body[len(SIGNATURE) : begin], "little")
    if end > min(len(body), MAX_HEADER_BYTES):
        raise DataError("the file is damaged: its header is longer than it.")
    return _parsed(body[begin:end]), body[end:]


def _parsed(text: bytes) -> Header:
    try:
        header = Header.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        if b'"format":' in text and b'"format":1' not in text:
            raise NewerFormatError("the file has a newer format: a newer heed wrote it. Update heed.") from error
        where = ".".join(map(str, first["loc"]))
        raise DataError(f"the file's header is wrong at {where!r}: {first['msg']}.") from error
    if header.format > FORMAT:
        raise NewerFormatError(f"the file has format {header.format}, this heed reads {FORMAT}: update heed.")
    return header


def checksum(data: bytes) -> str:
    """SHA-256."""
    return hashlib.sha256(data).hexdigest()
