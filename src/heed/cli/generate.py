"""`heed generate`: continuations of a prompt."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from heed.cli.options import Debug, Device, Json, Precision, Quiet, RunFolder, Threads


def generate(
    run: RunFolder,
    prompt: Annotated[str, typer.Option(help="Text to go on from.")] = "",
    samples: Annotated[int, typer.Option(help="How many continuations.", min=1)] = 1,
    temperature: Annotated[float, typer.Option(help="Sharper below 1.")] = 1.0,
    top_k: Annotated[int, typer.Option(help="Only the k likeliest tokens (0: all).", min=0)] = 0,
    top_p: Annotated[float, typer.Option(help="Only the likeliest tokens of this probability together.")] = 1.0,
    max_tokens: Annotated[int, typer.Option(help="At most so many tokens.", min=1)] = 200,
    stop: Annotated[str | None, typer.Option(help="End before this text.")] = None,
    beam: Annotated[int, typer.Option(help="Search with this beam instead of drawing.", min=0)] = 0,
    seed: Annotated[int, typer.Option(help="The same seed draws the same text.", min=0)] = 1,
    json_lines: Json = False,
    precision: Precision = "float32",
    threads: Threads = 0,
    device: Device = "cpu",
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Continue a prompt with a language model.

    Example:

      heed generate runs/bigram --prompt "the " --samples 3 --temperature 0.8
    """
    import heed
    from heed.cli.stdio import write_line
    from heed.core.config import Document, build
    from heed.decoding.options import SearchOptions

    wanted = {
        "sample": beam == 0, "beam_size": beam or 1, "nbest": samples, "temperature": temperature,
        "top_k": top_k, "top_p": top_p, "max_tokens": max_tokens, "seed": seed,
    }  # fmt: skip
    options = build(SearchOptions, Document(wanted))
    loaded = heed.load(run, device, threads, precision)
    found = loaded.continuations(prompt, options)
    space = "" if not prompt or prompt.endswith(" ") or loaded.run.tokenizers["tgt"].lossless else " "
    for hypothesis in found:
        text = hypothesis.text.split(stop)[0] if stop else hypothesis.text
        if json_lines:
            record = {"prompt": prompt, "text": text, "log_prob": hypothesis.log_prob, "finished": hypothesis.finished}
            write_line(json.dumps(record, ensure_ascii=False))
        else:
            write_line(prompt + space + text)
