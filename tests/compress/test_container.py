"""File format: damaged and foreign files are errors before anything is decoded."""

from __future__ import annotations

import zlib

import pytest

from heed.compress.container import SIGNATURE, Header, checksum, pack, unpack
from heed.core.errors import DataError
from heed.core.formats import NewerFormatError

HEADER = Header(
    heed="0.1.0", model="ab" * 32, arithmetic={"threads": "1"}, coded=True, num_bytes=3, sha256=checksum(b"abc"),
    lengths=(3,),
)  # fmt: skip
BLOB = pack(HEADER, b"payload!")


def test_a_file_is_read_as_it_was_written() -> None:
    assert unpack(BLOB) == (HEADER, b"payload!")
    assert unpack(pack(HEADER, b"")) == (HEADER, b"")


def test_every_flipped_bit_is_detected() -> None:
    for place in range(len(BLOB)):
        for bit in (1, 128):
            with pytest.raises(DataError):
                unpack(BLOB[:place] + bytes([BLOB[place] ^ bit]) + BLOB[place + 1 :])


@pytest.mark.parametrize("length", [0, 5, 8, 12, 40, len(BLOB) - 5, len(BLOB) - 1])
def test_a_truncated_file_is_detected(length: int) -> None:
    with pytest.raises(DataError):
        unpack(BLOB[:length])


def test_the_signature_reveals_changed_line_ends() -> None:
    with pytest.raises(DataError, match="not written by heed compress"):
        unpack(BLOB.replace(b"\r\n", b"\n"))


def sealed(text: bytes) -> bytes:
    """A file with this header and a valid checksum."""
    body = SIGNATURE + len(text).to_bytes(4, "little") + text
    return body + zlib.crc32(body).to_bytes(4, "little")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"{}", "is invalid at"),
        (b"no json", "is invalid at"),
        (HEADER.model_dump_json().replace('"num_bytes":3', '"num_bytes":-3').encode(), "'num_bytes'"),
        (HEADER.model_dump_json().replace('"lengths":[3]', '"lengths":[0]').encode(), "'lengths"),
        (HEADER.model_dump_json().replace('"coded":true', '"coded":"yes"').encode(), "'coded'"),
    ],
)
def test_an_invalid_header_is_an_error(text: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        unpack(sealed(text))


def test_a_newer_format_is_distinguished_from_damage() -> None:
    newer = HEADER.model_dump_json().replace('"format":1', '"format":2').encode()
    with pytest.raises(NewerFormatError, match="Update heed"):
        unpack(sealed(newer))
    with pytest.raises(NewerFormatError, match="written by a newer heed"):
        unpack(sealed(newer.replace(b'"rows"', b'"lanes"')))


def test_a_header_longer_than_its_file_is_an_error() -> None:
    body = SIGNATURE + (1 << 30).to_bytes(4, "little") + b"{}"
    with pytest.raises(DataError, match="header is longer"):
        unpack(body + zlib.crc32(body).to_bytes(4, "little"))
