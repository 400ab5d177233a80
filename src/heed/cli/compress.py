"""`heed compress` and `heed decompress`: lossless compression with a language model."""

from __future__ import annotations

import sys
import time
from typing import Annotated

import typer

from heed.cli.options import FloatKind, Quiet, RunFolder, use_threads
from heed.core.errors import UsageError
from heed.core.progress import Progress, message


def compress(
    run: RunFolder,
    rows: Annotated[int, typer.Option(help="Parts coded in parallel: faster, slightly larger.", min=1)] = 1,
    precision: Annotated[FloatKind, typer.Option(help="float32, or bfloat16, which may be faster.")] = "float32",
    threads: Annotated[int, typer.Option(help="CPU threads; decompression uses the same number.", min=1)] = 1,
    quiet: Quiet = False,
) -> None:
    """Compress stdin to stdout with a language model.

    Any bytes can be compressed, without loss. Decompression needs the same run, the same kind of processor and the same
    version of PyTorch; anything else is refused. The model predicts one token at a time, so this is slow.

    Example:

      heed compress runs/shakespeare < play.txt > play.heed
    """
    import heed
    from heed.compress.codec import compress as compressed

    if sys.stdout.isatty():
        raise UsageError(
            "the output is binary and stdout is a terminal. Redirect it: heed compress RUN < FILE > FILE.heed"
        )
    use_threads(threads)
    loaded = heed.load(run, precision=precision)
    data = sys.stdin.buffer.read()
    begin = time.monotonic()
    with Progress(None, "tokens", "compressing", quiet) as progress:
        result = compressed(loaded, data, rows, lambda num_tokens: progress.update(progress.done + num_tokens))
    sys.stdout.buffer.write(result.blob)
    seconds = max(time.monotonic() - begin, 1e-9)
    per_byte = f", {8 * result.num_payload_bytes / len(data):.3f} bits per byte" if data else ""
    message(
        f"{len(data):,} bytes compressed to {len(result.blob):,} (code {result.num_payload_bytes:,}{per_byte}); "
        f"{result.num_tokens / seconds:,.0f} tokens/s",
        quiet,
    )


def decompress(
    run: RunFolder,
    threads: Annotated[int, typer.Option(help="CPU threads (0: as in the compression).", min=0)] = 0,
    quiet: Quiet = False,
) -> None:
    """Decompress stdin to stdout.

    The output is exactly the compressed input; if that is impossible, an error is reported and nothing is written.

    Example:

      heed decompress runs/shakespeare < play.heed > play.txt
    """
    import heed
    from heed.compress import container
    from heed.compress.codec import decompress as decompressed

    blob = sys.stdin.buffer.read()
    header, _ = container.unpack(blob)
    written, precision = header.arithmetic.get("threads", ""), header.arithmetic.get("precision", "")
    needed = int(written) if written.isdecimal() and len(written) < 4 else 1
    if threads not in (0, needed):
        raise UsageError(f"--threads {threads}: the file was compressed with --threads {needed}. Leave out --threads.")
    use_threads(needed)
    loaded = heed.load(run, precision="bfloat16" if precision == "bfloat16" else "float32")
    with Progress(None, "tokens", "decompressing", quiet) as progress:
        data = decompressed(loaded, blob, lambda num_tokens: progress.update(progress.done + num_tokens))
    sys.stdout.buffer.write(data)
