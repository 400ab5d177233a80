"""`heed import`: make a run from a model of another program."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from heed.cli.options import Quiet


def import_model(
    model: Annotated[
        Path,
        typer.Argument(help="Folder with config.json, model.safetensors and tokenizer.json; or an ARPA file."),
    ],
    out: Annotated[Path, typer.Option(help="The new run folder.")],
    quiet: Quiet = False,
) -> None:
    """Make a run from a GPT-2 or an ARPA file.

    GPT-2 in the format of Hugging Face transformers; n-grams as KenLM and SRILM write them. The run can generate, score
    and compress; a GPT-2 can also be trained further (heed train --init).

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
        message(
            f"{out}: number of n-grams for n = 1, 2, ...: {', '.join(f'{n:,}' for n in import_arpa(model, out))}", quiet
        )
