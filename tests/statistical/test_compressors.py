"""Compressors as baselines."""

from __future__ import annotations

import bz2
import gzip
import lzma

import pytest

from heed.core.errors import UsageError
from heed.statistical.compressors import COMPRESSORS, compressed_bits

TEXT = "".join(f"the {i % 7} old dogs of {i % 11} sleep in the sun\n" for i in range(400)).encode()


@pytest.mark.parametrize("name", COMPRESSORS)
def test_a_primer_makes_similar_text_smaller(name: str) -> None:
    bare = compressed_bits(name, TEXT)
    assert 0 < bare < 8 * len(TEXT)
    assert 0 < compressed_bits(name, TEXT, TEXT) < bare


@pytest.mark.parametrize("name", COMPRESSORS)
def test_empty_text_costs_at_most_a_header(name: str) -> None:
    assert 0 <= compressed_bits(name, b"") <= 8 * 40
    assert compressed_bits(name, b"", TEXT) == 0


def test_sizes_are_those_of_the_programs_at_their_strongest_setting() -> None:
    assert compressed_bits("gzip", TEXT) == 8 * len(gzip.compress(TEXT, 9))
    assert compressed_bits("bzip2", TEXT) == 8 * len(bz2.compress(TEXT, 9))
    assert compressed_bits("xz", TEXT) == 8 * len(lzma.compress(TEXT, preset=9 | lzma.PRESET_EXTREME))


def test_an_unknown_name_is_an_error_that_lists_the_compressors() -> None:
    with pytest.raises(UsageError, match=r"'rar' is not a known compressor.* gzip, bzip2, xz, zstd, lz78"):
        compressed_bits("rar", b"")


@pytest.mark.slow
def test_the_penn_treebank_has_its_known_sizes(shared_data) -> None:  # type: ignore[no-untyped-def]
    """Bits per byte of the test file alone: gzip 2.654, bzip2 1.960, xz 2.197."""
    data = lzma.decompress((shared_data / "ptb" / "ptb.test.txt.xz").read_bytes())
    actual = {name: compressed_bits(name, data) / len(data) for name in ("gzip", "bzip2", "xz")}
    assert actual == pytest.approx({"gzip": 2.654, "bzip2": 1.960, "xz": 2.197}, abs=0.002)
