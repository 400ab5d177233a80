"""General-purpose compressors, a baseline for language models as compressors.

Each runs at its strongest setting. With a primer, the cost of a text is the size of both compressed together, minus
that of the primer. gzip looks back 32 KiB and bzip2 sorts blocks of 900 kB, so they forget an older primer.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache

from heed.core.errors import UsageError
from heed.statistical import lempel_ziv

if sys.version_info >= (3, 14):
    from compression import zstd

    def _zstd(data: bytes) -> bytes:
        keys = zstd.CompressionParameter
        return zstd.compress(data, options={keys.compression_level: 22, keys.window_log: 27})

else:
    import zstandard

    def _zstd(data: bytes) -> bytes:
        parameters = zstandard.ZstdCompressionParameters.from_level(22, window_log=27)
        return zstandard.ZstdCompressor(compression_params=parameters).compress(data)


def _size(compress: Callable[[bytes], bytes]) -> Callable[[bytes, bytes], float]:
    """The function that gives the bits of a text after a primer, for a program without primers."""

    @lru_cache(maxsize=1)  # several texts are measured after the same primer
    def alone(primer: bytes) -> int:
        return len(compress(primer)) if primer else 0

    def bits(data: bytes, primer: bytes) -> float:
        return 8.0 * (len(compress(primer + data)) - alone(primer))

    return bits


COMPRESSORS: Mapping[str, Callable[[bytes, bytes], float]] = {
    "gzip": _size(lambda data: gzip.compress(data, 9, mtime=0)),
    "bzip2": _size(lambda data: bz2.compress(data, 9)),
    "xz": _size(lambda data: lzma.compress(data, preset=9 | lzma.PRESET_EXTREME)),
    "zstd": _size(_zstd),
    "lz78": lempel_ziv.code_bits,
}
"""Bits of a text after a primer; `lz78` is the code itself, without a file format."""


def compressed_bits(name: str, text: bytes, primer: bytes = b"") -> float:
    """Bits that a compressor of COMPRESSORS needs for `text` after `primer`, which the decoder has too.

    Raises UsageError for an unknown name.
    """
    if name not in COMPRESSORS:
        raise UsageError(f"{name!r} is not a known compressor. Choose one of: {', '.join(COMPRESSORS)}.")
    return COMPRESSORS[name](text, primer)
