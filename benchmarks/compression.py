"""How many bits per character does a language model need, as a code, beside gzip, bzip2, xz and zstd?

    python benchmarks/compression.py RUN [RUN ...] --text FOLDER/alice29.txt.xz FOLDER/book1.xz [--really]

A model's row is its entropy: what `heed compress` needs but for a header, to 1 % and 64 bits. `--really` compresses and
decompresses each text too, which takes the time of reading it a token at a time twice, and checks that the bytes
come back. `--primer F`: what the general compressors have seen before, as the models have seen their training text.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path

import peers

import heed
from heed.compress.codec import compress, decompress
from heed.core.environment import num_cpus
from heed.statistical.compressors import COMPRESSORS, compressed_bits
from heed.text.archives import open_bytes


def content_of(path: Path) -> bytes:
    """The bytes of a file, unpacked."""
    with open_bytes(path) as file:
        return file.read()


def really(folder: Path, data: bytes, rows: int, threads: int) -> str:
    """Bits per byte of the file that comes of it, and how fast it came and went."""
    loaded = heed.load(folder, threads=threads)
    begin = time.monotonic()
    found = compress(loaded, data, rows)
    between = time.monotonic()
    verdict = "" if decompress(loaded, found.blob) == data else " DIFFERENT BYTES CAME BACK"
    speeds = [found.num_tokens / seconds for seconds in (between - begin, time.monotonic() - between)]
    return f"{8 * len(found.blob) / len(data):.3f} ({speeds[0]:,.0f} and {speeds[1]:,.0f} tokens/s){verdict}"


def entropy(folder: Path, data: bytes, threads: int) -> str:
    """Bits per byte of the model's own probabilities."""
    lines = data.decode(errors="replace").removesuffix("\n").split("\n")
    scored = heed.load(folder, threads=threads).run.scorer().score(lines)
    return f"{-float(scored.log_probs.sum()) / math.log(2) / len(data):.3f}"


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="*", type=Path, help="runs of language models")
    parser.add_argument("--text", nargs="+", type=Path, required=True, help="texts, plain, .gz, .xz or .zst")
    parser.add_argument("--primer", type=Path, help="a text that the general compressors have seen")
    parser.add_argument("--really", action="store_true", help="compress and decompress with the models")
    parser.add_argument("--rows", type=int, default=1, help="as of heed compress (default 1)")
    parser.add_argument("--threads", type=int, default=num_cpus(), help="CPU threads (default: all cores)")
    given = parser.parse_args()
    print(peers.machine_line(given.threads, []), flush=True)
    texts = {path.name.removesuffix(".xz"): content_of(path) for path in given.text}
    primer = content_of(given.primer) if given.primer else b""
    rows = [
        [name, *(f"{compressed_bits(name, data, primer) / len(data):.3f}" for data in texts.values())]
        for name in COMPRESSORS
    ]
    for run in given.runs:
        rows.append([f"{run.name}, entropy", *(entropy(run, data, given.threads) for data in texts.values())])
        if given.really:
            cells = (really(run, data, given.rows, given.threads) for data in texts.values())
            rows.append([f"{run.name}, heed compress", *cells])
    print(peers.table(["bits per byte", *texts], rows))


if __name__ == "__main__":
    main()
