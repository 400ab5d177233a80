"""Is a file that is not whole, or not ours, told before anything is decoded?"""

from __future__ import annotations

import zlib

import pytest

from heed.compress.container import SIGNATURE, Header, checksum, read, written
from heed.core.errors import DataError
from heed.core.formats import NewerFormatError

HEADER = Header(
    heed="0.1.0", model="ab" * 32, arithmetic={"threads": "1"}, coded=True, num_bytes=3, sha256=checksum(b"abc"),
    lengths=(3,),
)  # fmt: skip
BLOB = written(HEADER, b"payload!")


def test_a_file_is_read_as_it_was_written() -> None:
    assert read(BLOB) == (HEADER, b"payload!")
    assert read(written(HEADER, b"")) == (HEADER, b"")


def test_every_flipped_bit_is_noticed() -> None:
    for place in range(len(BLOB)):
        for bit in (1, 128):
            with pytest.raises(DataError):
                read(BLOB[:place] + bytes([BLOB[place] ^ bit]) + BLOB[place + 1 :])


@pytest.mark.parametrize("length", [0, 5, 8, 12, 40, len(BLOB) - 5, len(BLOB) - 1])
def test_a_file_that_was_cut_off_is_noticed(length: int) -> None:
    with pytest.raises(DataError):
        read(BLOB[:length])


def test_a_signature_shows_line_ends_that_were_changed() -> None:
    with pytest.raises(DataError, match="no file that heed compress wrote"):
        read(BLOB.replace(b"\r\n", b"\n"))


def sealed(text: bytes) -> bytes:
    """A file with this header and a good checksum."""
    body = SIGNATURE + len(text).to_bytes(4, "little") + text
    return body + zlib.crc32(body).to_bytes(4, "little")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"{}", "header is wrong at"),
        (b"no json", "header is wrong at"),
        (HEADER.model_dump_json().replace('"num_bytes":3', '"num_bytes":-3').encode(), "'num_bytes'"),
        (HEADER.model_dump_json().replace('"lengths":[3]', '"lengths":[0]').encode(), "'lengths"),
        (HEADER.model_dump_json().replace('"coded":true', '"coded":"yes"').encode(), "'coded'"),
    ],
)
def test_a_header_that_is_none_is_refused(text: bytes, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(sealed(text))


def test_a_newer_format_is_told_from_damage() -> None:
    newer = HEADER.model_dump_json().replace('"format":1', '"format":2').encode()
    with pytest.raises(NewerFormatError, match="update heed"):
        read(sealed(newer))
    with pytest.raises(NewerFormatError, match="newer heed wrote it"):
        read(sealed(newer.replace(b'"rows"', b'"lanes"')))


def test_a_header_that_claims_more_than_the_file_is_refused() -> None:
    body = SIGNATURE + (1 << 30).to_bytes(4, "little") + b"{}"
    with pytest.raises(DataError, match="header is longer"):
        read(body + zlib.crc32(body).to_bytes(4, "little"))
