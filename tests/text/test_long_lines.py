"""Is a line, a row or a unit without end refused in little memory, however well it is packed?"""

from __future__ import annotations

import gzip
import lzma
import sys
import tracemalloc
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import zstandard
from command import call

from heed.cli import stdio
from heed.core.errors import DataError
from heed.statistical.arpa import read_arpa
from heed.text import archives
from heed.text.archives import count_lines, open_bytes
from heed.text.readers import CorpusFiles, fingerprint_file, read_lines, read_pairs

LIMIT = 1000
PACKED: dict[str, Callable[[bytes], bytes]] = {
    "": bytes, ".gz": gzip.compress, ".xz": partial(lzma.compress, preset=0), ".zst": zstandard.compress,
}  # fmt: skip
REFUSAL = r"{}: the line has more than 1\.0 kB, the most that heed reads\. Is it text"


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit that needs no large files."""
    monkeypatch.setattr(archives, "MAX_LINE_BYTES", LIMIT)
    monkeypatch.setattr("heed.text.readers.tmx.MAX_LINE_BYTES", LIMIT)
    monkeypatch.setattr("heed.statistical.arpa.MAX_LINE_BYTES", LIMIT)


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("suffix", PACKED)
def test_a_line_up_to_the_limit_is_read_and_a_longer_one_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"text{suffix}"
    path.write_bytes(PACKED[suffix](b"one\n" + b"a" * (LIMIT - 1) + b"\n"))
    assert [len(line) for line in read_lines(path)] == [3, LIMIT - 1]
    path.write_bytes(PACKED[suffix](b"one\n" + b"a" * 100 * LIMIT))
    lines = read_lines(path)
    assert next(lines) == "one"
    with pytest.raises(DataError, match=REFUSAL.format(rf"text{suffix}:2")):
        next(lines)


ROW = '"a\n",' * LIMIT
ENDLESS = {
    "x.tsv": (b"a\tb\n" + b"c" * 2 * LIMIT, REFUSAL.format("x.tsv:2")),
    "x.jsonl": (b'{"src": "' + b"c" * 2 * LIMIT, REFUSAL.format("x.jsonl:1")),
    "x.csv": (b"a,b\n" + b"c" * 2 * LIMIT, REFUSAL.format("x.csv:2")),
    "rows.csv": (b"a,b\n" + ROW.encode(), REFUSAL.format(r"rows\.csv:\d+")),
    "wide.csv": ("a,b\n".encode("utf-16") + ("\u0a0a" * 2 * LIMIT).encode("utf-16-le"), REFUSAL.format(r"wide\.csv:2")),
    "text.tmx": (b"<tmx><body><tu><tuv><seg>" + b"c" * 99 * LIMIT, "more than 1.0 kB without the end of a unit"),
    "tag.tmx": (b"<tmx><body><tu x='" + b"c" * 99 * LIMIT, "more than 1.0 kB without the end of a unit"),
    "deep.tmx": (b"<tmx>" + b"<tu>" * 99 * LIMIT, "more than 1.0 kB without the end of a unit"),
}


@pytest.mark.usefixtures("short")
@pytest.mark.parametrize("name", ENDLESS)
def test_a_row_a_record_and_a_unit_without_end_are_refused(tmp_path: Path, name: str) -> None:
    content, message = ENDLESS[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        list(read_pairs(CorpusFiles(pairs=tmp_path / name, src_lang="en", tgt_lang="de")))


@pytest.mark.usefixtures("short")
def test_a_memory_of_many_units_may_be_one_line(tmp_path: Path) -> None:
    unit = '<tu><tuv xml:lang="en"><seg>a</seg></tuv><tuv xml:lang="de"><seg>b</seg></tuv></tu>'
    (tmp_path / "x.tmx").write_text(f"<tmx><body>{unit * 100}</body></tmx>")
    files = CorpusFiles(pairs=tmp_path / "x.tmx", src_lang="en", tgt_lang="de")
    assert list(read_pairs(files)) == [("a", "b")] * 100
    assert fingerprint_file(tmp_path / "x.tmx", "tmx")["lines"] == 1


@pytest.mark.usefixtures("short")
def test_an_n_gram_without_end_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.arpa").write_bytes(b"\\data\\\nngram 1=2\n\n\\1-grams:\n-1\t" + b"c" * 9 * LIMIT)
    with pytest.raises(DataError, match="Give a complete ARPA file"):
        read_arpa(tmp_path / "x.arpa")


def test_lines_are_counted_in_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for size in (1, 2, 3, 1 << 16):
        monkeypatch.setattr(archives, "_BLOCK", size)
        for content, expected in ((b"", (0, 0)), (b"a", (1, 0)), (b"a\r\n\r\nb\n\r", (4, 2)), (b"\n\r\n", (2, 1))):
            (tmp_path / "x").write_bytes(content)
            assert count_lines(tmp_path / "x") == expected


@pytest.mark.parametrize("suffix", [".xz", ".zst"])
def test_data_check_refuses_a_packed_line_without_end_in_little_memory(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "MAX_LINE_BYTES", 100_000)
    path = tmp_path / f"bomb{suffix}"
    path.write_bytes(PACKED[suffix](b"a" * 40_000_000))
    call("data", "check", path, path)  # imports
    tracemalloc.start()
    try:
        result = call("data", "check", path, path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert result.code == 65
    assert f"bomb{suffix}:1:thelinehasmorethan100kB,themostthatheedreads." in "".join(result.out.split())
    assert peak < 20_000_000


def test_a_block_of_zstandard_is_unpacked_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "bomb.zst"
    path.write_bytes(zstandard.compress(bytes(100_000_000)))
    tracemalloc.start()
    try:
        with open_bytes(path) as file:
            assert file.read(10) == bytes(10)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 15_000_000


@pytest.mark.parametrize("suffix", [".xz", ".zst"])
def test_an_archive_with_a_huge_dictionary_is_refused_before_memory_is_taken(tmp_path: Path, suffix: str) -> None:
    window = zstandard.ZstdCompressionParameters(window_log=29)
    to_zstandard = zstandard.ZstdCompressor(compression_params=window).compressobj()
    packed = {
        ".xz": lzma.compress(b"a\n", filters=[{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 29}]),
        ".zst": to_zstandard.compress(b"a\n") + to_zstandard.flush(),
    }
    (tmp_path / f"a{suffix}").write_bytes(packed[suffix])
    with pytest.raises(DataError, match="needs more than 136 MB of memory to be decompressed"):
        list(read_lines(tmp_path / f"a{suffix}"))


def test_streams_of_xz_follow_one_another_with_padding(tmp_path: Path) -> None:
    path = tmp_path / "a.xz"
    one, two = lzma.compress(b"one\n", preset=9), lzma.compress(b"two\n" * 50_000)
    path.write_bytes(one + bytes(8) + lzma.compress(b"") + two + bytes(4))
    assert list(read_lines(path)) == ["one", *["two"] * 50_000]
    for rest in (b"garbage", b"more of it than a header", two[:-20]):
        path.write_bytes(one + rest)
        with pytest.raises(DataError, match=r"The archive is damaged or incomplete"):
            list(read_lines(path))


def test_a_line_without_end_on_standard_input_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(archives, "MAX_LINE_BYTES", LIMIT)
    monkeypatch.setattr(stdio, "_blocks", lambda descriptor: iter([b"one\n"] + [b"a" * 100] * 50))
    with (tmp_path / "x").open("w+") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        groups = stdio.groups_as_they_come()
        assert next(groups) == ["one"]
        with pytest.raises(DataError, match=REFUSAL.format("standard input:2")):
            next(groups)
