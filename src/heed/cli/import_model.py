"""`heed import`: a run from another program's model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from heed.cli.options import Debug, Quiet


def import_model(
    model: Annotated[
        Path,
        typer.Argument(help="Folder of a GPT-2 (config.json, model.safetensors, tokenizer.json), or an ARPA file."),
    ],
    out: Annotated[Path, typer.Option(help="The new run folder.")],
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Make a run of a GPT-2 of Hugging Face transformers: to generate, score, compress, or train further (--init).

    Or of an ARPA file of n-grams, as KenLM and SRILM write it.

    Examples:

      heed import shakespeare-gpt2 --out runs/gpt2

      heed import kn5.arpa --out runs/kn5
    """
    from heed.core.progress import message
    from heed.export.arpa import import_arpa
    from heed.export.gpt2 import import_gpt2

    if model.is_dir():
        message(f"{out}: {import_gpt2(model, out):,} parameters", quiet)
    else:
        message(f"{out}: n-grams of 1, 2, ... words: {', '.join(f'{n:,}' for n in import_arpa(model, out))}", quiet)
