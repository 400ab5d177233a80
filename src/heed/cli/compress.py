"""`heed compress`: a text in as few bits as a language model can tell it."""

from __future__ import annotations

import sys
import time
from typing import Annotated

import typer

from heed.cli.options import Debug, FloatKind, Quiet, RunFolder, use_threads
from heed.core.errors import UsageError


def compress(
    run: RunFolder,
    rows: Annotated[int, typer.Option(help="Parts coded side by side: faster, and somewhat larger.", min=1)] = 1,
    precision: Annotated[FloatKind, typer.Option(help="float32 is exact, bfloat16 may be faster.")] = "float32",
    threads: Annotated[int, typer.Option(help="CPU threads; decompressing takes as many.", min=1)] = 1,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Compress stdin to stdout with a language model as the predictor. Any bytes go in, the same bytes come out.

    Only the same run decompresses it, on a processor of the same kind with the same PyTorch: others are refused. The
    text is read a token at a time, so it takes its time.

    Example:

      heed compress runs/shakespeare < play.txt > play.heed
    """
    import heed
    from heed.compress.codec import compress as compressed
    from heed.core.progress import Progress, message

    if sys.stdout.isatty():
        raise UsageError("stdout is a terminal, and what comes is no text: heed compress RUN < FILE > FILE.heed")
    use_threads(threads)
    loaded = heed.load(run, precision=precision)
    data = sys.stdin.buffer.read()
    begin = time.monotonic()
    with Progress(None, "tokens", "compressing", quiet) as progress:
        found = compressed(loaded, data, rows, lambda num_tokens: progress.update(progress.done + num_tokens))
    sys.stdout.buffer.write(found.blob)
    seconds = max(time.monotonic() - begin, 1e-9)
    per_byte = f", {8 * found.num_payload_bytes / len(data):.3f} bits per byte" if data else ""
    message(
        f"{len(data):,} bytes in {len(found.blob):,}, of which the code takes {found.num_payload_bytes:,}{per_byte}; "
        f"{found.num_tokens / seconds:,.0f} tokens/s",
        quiet,
    )
