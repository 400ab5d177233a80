"""Tests of `heed compress` and `heed decompress`: every file is restored exactly, or refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import call

pytest.importorskip("constriction", reason="constriction is not installed")

TEXT = b"the ba sees the ce .\nthe di sees the fo .\n" * 3


@pytest.mark.parametrize("which", ["bigram", "speaker"])
@pytest.mark.parametrize("flags", [(), ("--rows", "3")])
def test_compression_is_lossless(which: str, flags: tuple[str, ...], request: pytest.FixtureRequest) -> None:
    folder = request.getfixturevalue(which)
    packed = call("compress", folder, *flags, stdin=TEXT)
    assert packed.code == 0, packed.err
    assert "126 bytes compressed to" in packed.err
    assert "bits per byte" in packed.err
    unpacked = call("decompress", folder, stdin=packed.stdout)
    assert (unpacked.code, unpacked.stdout) == (0, TEXT), unpacked.err


def test_compression_in_bfloat16_is_lossless(speaker: Path) -> None:
    packed = call("compress", speaker, "--precision", "bfloat16", "--quiet", stdin=TEXT)
    assert (packed.code, packed.err) == (0, "")
    assert call("decompress", speaker, "--quiet", stdin=packed.stdout).stdout == TEXT


@pytest.mark.parametrize("data", [b"", b"\x00\xff\xfe binary\r\n", bytes(range(256))])
def test_empty_and_binary_files_are_compressed_losslessly(data: bytes, speaker: Path) -> None:
    packed = call("compress", speaker, "--quiet", stdin=data)
    assert packed.code == 0, packed.err
    unpacked = call("decompress", speaker, "--quiet", stdin=packed.stdout)
    assert (unpacked.code, unpacked.stdout) == (0, data)


def test_damaged_and_foreign_files_are_refused_with_nothing_on_stdout(
    bigram: Path, speaker: Path, translator: Path
) -> None:
    blob = call("compress", speaker, "--quiet", stdin=TEXT).stdout
    flipped = bytearray(blob)
    flipped[-20] ^= 16
    for folder, data, message in (
        (speaker, bytes(flipped), "damaged: its checksum differs"),
        (speaker, blob[:-1], "damaged"),
        (bigram, blob, "compressed with another model"),
        (speaker, TEXT, "not written by heed compress"),
        (speaker, b"", "not written by heed compress"),
    ):
        result = call("decompress", folder, "--quiet", stdin=data)
        assert (result.code, result.stdout) == (65, b""), result.err
        assert message in result.err
    result = call("compress", translator, stdin=TEXT)
    assert (result.code, result.stdout) == (2, b"")
    assert "compressing needs a run that can compress" in result.err
