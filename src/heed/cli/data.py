"""`heed data check`: is this data fit to train on?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from heed.cli.options import BadBytes, Debug, Json
from heed.core.errors import UsageError

if TYPE_CHECKING:
    from heed.text.readers import CorpusFiles

app = typer.Typer(help="Look at data before training.", no_args_is_help=True, rich_markup_mode=None)


@app.callback()
def data() -> None:
    """Look at data before training."""


@app.command()
def check(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILES...", help="Two parallel files, one file of pairs, or with --text one text."),
    ],
    valid: Annotated[list[str] | None, typer.Option(help="Validation files, given as the training files are.")] = None,
    test: Annotated[
        list[str] | None, typer.Option(help="Test files: are their sentences in the training data?")
    ] = None,
    text: Annotated[bool, typer.Option("--text", help="The files are text of a language model.")] = False,
    errors: BadBytes = "strict",
    json_output: Json = False,
    debug: Debug = False,
) -> None:
    """Examine training data: line counts, empty sides, duplicates, copies, leaks, damage, scripts, lengths.

    Ends with exit code 65 when something would ruin a training.

    Examples:

      heed data check train.en train.de --valid val.en --valid val.de

      heed data check corpus.tsv.gz
    """
    from heed.text.doctor import diagnose_files, diagnose_text_files

    if text:
        held_out_texts = [_single(group) if group else None for group in (valid, test)]
        diagnosis = diagnose_text_files(_single(files), *held_out_texts, errors=errors)
    else:
        held_out = [_corpus(group) if group else None for group in (valid, test)]
        diagnosis = diagnose_files(_corpus(files), *held_out, errors=errors)
    print(json.dumps(diagnosis.to_json(), ensure_ascii=False) if json_output else diagnosis.render())
    if diagnosis.stops:
        raise typer.Exit(65)


def _single(files: list[str]) -> str:
    if len(files) > 1:
        raise UsageError(f"--text takes one file, got {len(files)}.")
    return files[0]


def _corpus(files: list[str]) -> CorpusFiles:
    from heed.text.readers import CorpusFiles

    if len(files) > 2:
        raise UsageError(f"give two parallel files or one file of pairs, got {len(files)} files.")
    return CorpusFiles(src=files[0], tgt=files[1]) if len(files) == 2 else CorpusFiles(pairs=files[0])
