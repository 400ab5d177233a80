"""`heed decompress`: restore what `heed compress` compressed."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from heed.cli.options import Quiet, RunFolder, use_threads
from heed.core.errors import UsageError


def decompress(
    run: RunFolder,
    threads: Annotated[int, typer.Option(help="CPU threads (0: as many as compressed it).", min=0)] = 0,
    quiet: Quiet = False,
) -> None:
    """Decompress stdin to stdout.

    The output is exactly what was compressed; if that is impossible, there is an error and no output.

    Example:

      heed decompress runs/shakespeare < play.heed > play.txt
    """
    import heed
    from heed.compress import container
    from heed.compress.codec import decompress as decompressed
    from heed.core.progress import Progress

    blob = sys.stdin.buffer.read()
    header, _ = container.read(blob)
    written, precision = header.arithmetic.get("threads", ""), header.arithmetic.get("precision", "")
    needed = int(written) if written.isdecimal() and len(written) < 4 else 1
    if threads not in (0, needed):
        raise UsageError(f"this was compressed with --threads {needed} and needs as many, got {threads}.")
    use_threads(needed)
    loaded = heed.load(run, precision="bfloat16" if precision == "bfloat16" else "float32")
    with Progress(None, "tokens", "decompressing", quiet) as progress:
        data = decompressed(loaded, blob, lambda num_tokens: progress.update(progress.done + num_tokens))
    sys.stdout.buffer.write(data)
