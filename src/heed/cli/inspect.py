"""`heed inspect`: what a model attends to, what else it considered, and how sure it is, as one page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heed.cli.options import Debug, Device, Json, Precision, Quiet, RunFolder, Tag, Threads, search_options, use_threads
from heed.core.errors import UsageError

if TYPE_CHECKING:
    from heed.inspect import Inspection
    from heed.tasks.predictor import Predictor

NBEST = 5
"""Alternatives that are shown, where the beam has as many."""


def inspect(
    run: RunFolder,
    src: Annotated[str | None, typer.Option(help="The sentence to translate, for a translation run.")] = None,
    tgt: Annotated[str | None, typer.Option(help="Look into this translation instead of searching for one.")] = None,
    text: Annotated[str | None, typer.Option(help="The text to read, for a language model.")] = None,
    out: Annotated[Path, typer.Option(help="The page to write; one that is there is replaced.")] = Path("inspect.html"),
    beam: Annotated[int | None, typer.Option(help="Beam size (default: the recipe's).", min=1, max=64)] = None,
    nbest: Annotated[int | None, typer.Option(help="How many alternatives to show (5).", min=1, max=64)] = None,
    tag: Tag = None,
    json_output: Json = False,
    precision: Precision = "float32",
    threads: Threads = 0,
    device: Device = "cpu",
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Show the attention between words, how sure the model was of each, what else it considered, and its beam.

    Writes one HTML file that needs nothing else and asks no host; --json prints the numbers instead.

    Examples:

      heed inspect runs/en-de --src "Two dogs are playing in the snow." --out dogs.html

      heed inspect runs/lm --text "The cat sat on the mat."
    """
    import heed
    from heed.cli.stdio import write_line
    from heed.core.files import atomic_write, storage_errors
    from heed.core.progress import message
    from heed.inspect import ModelCard, render

    if text is not None and (src is not None or tgt is not None):
        raise UsageError("--text is for language models, --src and --tgt are for translation: give one kind.")
    if text is None and src is None:
        raise UsageError('nothing to inspect: give --src "a sentence", or --text "a text" for a language model.')
    use_threads(threads)
    loaded = heed.load(run, device, precision, tag=tag)
    found = _inspected(loaded, src, tgt, text, beam, nbest)
    if json_output:
        write_line(json.dumps(found.to_json(), ensure_ascii=False))
        return
    with storage_errors("write the page", path=out), atomic_write(out, "w") as file:
        file.write(render(found, ModelCard.of(loaded.run)))
    message(f"{out}: open it in a browser.", quiet)


def _inspected(
    loaded: Predictor, src: str | None, tgt: str | None, text: str | None, beam: int | None, nbest: int | None
) -> Inspection:
    from heed.inspect import inspect_text, inspect_translation

    if src is None:
        assert text is not None
        loaded.require("generate", "inspect --text")
        return inspect_text(loaded.translator, text)
    loaded.require("translate", "inspect --src")
    recipe = loaded.run.recipe.decoding
    said = {"beam_size": beam, "nbest": min(nbest or NBEST, beam or max(recipe.beam_size, nbest or 0))}
    return inspect_translation(loaded.translator, src, tgt, search_options(recipe, said))
