"""`heed decompress`: the text that `heed compress` took."""

from __future__ import annotations

import sys

from heed.cli.options import Debug, Quiet, RunFolder, use_threads


def decompress(run: RunFolder, quiet: Quiet = False, debug: Debug = False) -> None:
    """Decompress stdin to stdout. What comes out is what went in, or nothing and an error.

    Example:

      heed decompress runs/shakespeare < play.heed > play.txt
    """
    import heed
    from heed.compress import container
    from heed.compress.codec import decompress as decompressed
    from heed.core.progress import Progress

    blob = sys.stdin.buffer.read()
    header, _ = container.read(blob)
    threads, precision = header.arithmetic.get("threads", ""), header.arithmetic.get("precision", "")
    use_threads(int(threads) if threads.isdecimal() and len(threads) < 4 else 1)
    loaded = heed.load(run, precision="bfloat16" if precision == "bfloat16" else "float32")
    with Progress(None, "tokens", "decompressing", quiet) as progress:
        data = decompressed(loaded, blob, lambda num_tokens: progress.update(progress.done + num_tokens))
    sys.stdout.buffer.write(data)
