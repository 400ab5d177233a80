"""`heed inspect`: write a page with the attention, the probabilities and the beam of a model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heed.cli.options import Compute, Json, Quiet, RunFolder, Tag, require_writable, search_options
from heed.core.errors import UsageError
from heed.core.files import atomic_write, storage_errors
from heed.core.progress import message

if TYPE_CHECKING:
    from heed.inspect import DerivationInspection, ImageInspection, Inspection, ReaderInspection
    from heed.tasks.predictor import Predictor

NBEST = 5
"""Number of alternatives shown, if the beam has as many."""


def inspect(
    *,
    run: RunFolder,
    src: Annotated[str | None, typer.Option(help="Sentence to translate, for a translation run.")] = None,
    tgt: Annotated[str | None, typer.Option(help="Inspect this translation instead of searching for one.")] = None,
    text: Annotated[
        str | None, typer.Option(help="Text, for a language model, classifier, tagger or masked language model.")
    ] = None,
    image: Annotated[Path | None, typer.Option(help="Image to caption, for a captioning run.")] = None,
    out: Annotated[Path, typer.Option(help="The page to write (replaced if it exists).")] = Path("inspect.html"),
    beam: Annotated[int | None, typer.Option(help="Beam size (default: the recipe's).", min=1, max=64)] = None,
    nbest: Annotated[
        int | None,
        typer.Option(help="Number of alternatives to show (default: 5; of captions, the beam size).", min=1, max=64),
    ] = None,
    tag: Tag = None,
    json_output: Json = False,
    compute: Compute,
    quiet: Quiet = False,
) -> None:
    """Show the attention, probabilities and beam of a model.

    Writes a page with the attention between words, the probability of each token, its alternatives and the beam. For a
    classifier, it shows what the answer rests on; for a tagger, the tags considered; for a masked language model, the
    words expected; for a phrase-based translation, which phrase became which, with each feature's value; for a caption,
    the image and the attention over it for each word. The page is one HTML file that loads nothing from the network;
    --json prints the numbers instead.

    Examples:

      heed inspect runs/en-de --src "Two dogs are playing in the snow." --out dogs.html

      heed inspect runs/lm --text "The cat sat on the mat."

      heed inspect runs/names --text "Ann visited New York."

      heed inspect runs/captions --image dog.jpg
    """
    from heed.cli.stdio import write_line
    from heed.inspect import ModelCard, render

    if text is not None and (src is not None or tgt is not None):
        raise UsageError(
            "--text is for language models, classifiers and taggers, --src and --tgt for translators: they cannot be "
            "combined."
        )
    if image is not None and (text is not None or src is not None or tgt is not None):
        raise UsageError("--image is for captioning runs: leave out --text, --src and --tgt.")
    if image is None and text is None and src is None:
        raise UsageError(
            'give --src "a sentence" for a translator, --text "a text" for a language model, classifier or tagger, or '
            "--image F."
        )
    if beam is not None and src is None:
        raise UsageError("--beam is for translators: leave it out.")
    if nbest is not None and text is not None:
        raise UsageError("--nbest is for translations and captions: leave it out.")
    if not json_output:
        require_writable(out)
    inspected = compute.load(run, tag=tag, engine="torch")
    inspection = _inspected(inspected, src, tgt, text, image, beam, nbest)
    if json_output:
        write_line(json.dumps(inspection.to_json(), ensure_ascii=False))
        return
    with storage_errors("write the page", path=out), atomic_write(out, "w") as file:
        file.write(render(inspection, ModelCard.of(inspected.run)))
    message(f"{out}: open it in a browser.", quiet)


def _inspected(
    loaded: Predictor, src: str | None, tgt: str | None, text: str | None, image: Path | None, beam: int | None,
    nbest: int | None,
) -> Inspection | ReaderInspection | ImageInspection | DerivationInspection:  # fmt: skip
    from heed.inspect import inspect_derivation, inspect_image, inspect_reader, inspect_text, inspect_translation

    if image is not None:
        loaded.require("caption", "--image")
        return inspect_image(loaded, image, nbest or loaded.run.recipe.decoding.beam_size)
    if src is None:
        assert text is not None
        if loaded.can("read"):
            return inspect_reader(loaded, text)
        loaded.require("generate", "--text")
        loaded.run.recipe.data.require_forward()
        return inspect_text(loaded.translator, text)
    loaded.require("translate", "--src")
    recipe = loaded.run.recipe.decoding
    if loaded.can("derive"):
        return inspect_derivation(loaded, src, tgt, beam or recipe.beam_size, nbest or NBEST)
    changes = {"beam_size": beam, "nbest": min(nbest or NBEST, beam or max(recipe.beam_size, nbest or 0))}
    return inspect_translation(loaded.translator, src, tgt, search_options(recipe, changes))
