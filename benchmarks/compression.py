"""Bits per character of language models used as codes, compared with gzip, bzip2, xz and zstd.

    python benchmarks/compression.py RUN [RUN ...] --text FOLDER/alice29.txt.xz FOLDER/book1.xz [--really]
    python benchmarks/compression.py --others --text FOLDER/*.xz --really -- --model.order=6

A model's row is its entropy: the size of `heed compress` without a header, to 1 % and 64 bits. `--really` also
compresses and decompresses each text and checks that the bytes are equal; this reads it token by token twice, which is
slow. `--primer F` primes the general-purpose compressors with a text, as the models have seen their training text.
`--others`: each text after all the others, for the compressors and for n-grams of bytes trained on them.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import peers

import heed
from heed.compress.codec import compress, decompress
from heed.core.environment import num_cpus
from heed.nn.device import set_threads
from heed.statistical.compressors import COMPRESSORS, compressed_bits
from heed.text.archives import open_bytes


def content_of(path: Path) -> bytes:
    """The bytes of a file, unpacked."""
    with open_bytes(path) as file:
        return file.read()


def really(folder: Path, rows: int, threads: int, data: bytes) -> str:
    """Bits per byte of the compressed file, and the speed in both directions."""
    set_threads(threads)
    loaded = heed.load(folder)
    begin = time.monotonic()
    found = compress(loaded, data, rows)
    between = time.monotonic()
    verdict = "" if decompress(loaded, found.blob) == data else " DIFFERENT BYTES CAME BACK"
    speeds = [found.num_tokens / seconds for seconds in (between - begin, time.monotonic() - between)]
    return f"{8 * len(found.blob) / len(data):.3f} ({speeds[0]:,.0f} and {speeds[1]:,.0f} tokens/s){verdict}"


def general(name: str, primer: bytes, data: bytes) -> str:
    """Bits per byte of a general compressor that has seen the primer."""
    return f"{compressed_bits(name, data, primer) / len(data):.3f}"


def entropy(folder: Path, threads: int, data: bytes) -> str:
    """Bits per byte of the model's own probabilities."""
    lines = data.decode(errors="replace").removesuffix("\n").split("\n")
    scored = heed.load(folder).scorer().score(lines)
    return f"{-float(scored.log_probs.sum()) / math.log(2) / len(data):.3f}"


TRAIN = (
    "--task=language-model", "--tokenizer.kind=byte", "--model.kind=ngram", "--data.text_as=stream",
    "--data.keep_blank_lines=true",
    "--data.filter.drop_duplicates=false", "--data.normaliser.form=none", "--data.normaliser.strip_control=false",
    "--force", "--quiet",
)  # fmt: skip
"""Keep every line of a book."""


def ngram_of(text: bytes, flags: Sequence[str], folder: Path) -> Path:
    """A run that counted the bytes of a text."""
    source, out = folder / "text", folder / "ngram"
    source.write_bytes(text)
    words = ["train", *TRAIN, f"--text={source}", f"--out={out}", *flags]
    subprocess.run([sys.executable, "-m", "heed", *words], check=True)
    return out


def column(data: bytes, primer: bytes, runs: Mapping[str, Path], given: argparse.Namespace) -> dict[str, str]:
    """Bits per byte of one text for every requested system."""
    found = {}
    for name in COMPRESSORS:
        found[name] = general(name, b"", data)
        if primer:
            found[f"{name}, primed"] = general(name, primer, data)
    for name, run in runs.items():
        found[f"{name}, entropy"] = entropy(run, given.threads, data)
        if given.really:
            found[f"{name}, heed compress"] = really(run, given.rows, given.threads, data)
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", metavar="RUN", help="runs of language models; behind --: flags of --others")
    parser.add_argument("--text", nargs="+", type=Path, required=True, help="texts, plain, .gz, .xz or .zst")
    parser.add_argument("--primer", type=Path, help="a text that the general compressors have seen")
    parser.add_argument("--others", action="store_true", help="each text after all the others")
    parser.add_argument("--really", action="store_true", help="compress and decompress with the models")
    parser.add_argument("--rows", type=int, default=1, help="as in heed compress (default 1)")
    parser.add_argument("--threads", type=int, default=num_cpus(), help="CPU threads (default: all cores)")
    given = parser.parse_args()
    print(peers.machine_line(given.threads, []), flush=True)
    texts = {path.name.removesuffix(".xz"): content_of(path) for path in given.text}
    flags = [word for word in given.runs if word.startswith("--")]
    runs = {Path(word).name: Path(word) for word in given.runs if not word.startswith("--")}
    shared = content_of(given.primer) if given.primer else b""
    columns = {}
    for name, data in texts.items():
        begin = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            others = b"".join(text for other, text in texts.items() if other != name)
            trained = {"n-gram of the others": ngram_of(others, flags, Path(folder))} if given.others else {}
            columns[name] = column(data, others if given.others else shared, {**runs, **trained}, given)
        print(f"{name}: {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
    rows = [[row, *(found[row] for found in columns.values())] for row in next(iter(columns.values()))]
    print(peers.table(["bits per byte", *columns], rows))


if __name__ == "__main__":
    main()
