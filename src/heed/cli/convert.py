"""`heed export` and `heed import`: models in the formats of other programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from heed.cli.options import Quiet, RunFolder
from heed.core.progress import message

Target = Literal["gpt2", "bert", "marian", "arpa", "argos", "ctranslate2", "onnx", "word2vec", "moses"]


def export(
    run: RunFolder,
    out: Annotated[Path, typer.Option(help="The new folder or file.")],
    to: Annotated[
        Target,
        typer.Option(
            help="gpt2, bert or marian (Hugging Face transformers), arpa (KenLM), argos, ctranslate2, onnx, word2vec "
            "or moses (phrases)."
        ),
    ] = "gpt2",
    quiet: Quiet = False,
) -> None:
    """Write a model in the format of another program.

    `heed import` reads GPT-2, BERT, Marian, ARPA, word vectors and phrase tables back.

    Examples:

      heed export runs/shakespeare --to gpt2 --out shakespeare-gpt2

      heed export runs/encoder --to bert --out encoder-bert

      heed export runs/en-de --to marian --out en-de-marian

      heed export runs/kn5 --to arpa --out kn5.arpa

      heed export runs/en-de --to ctranslate2 --out en-de-ctranslate2

      heed export runs/vectors --to word2vec --out vectors.txt

      heed export runs/phrases --to moses --out phrase-table
    """
    from heed.run import Run

    opened = Run(run)
    if to == "word2vec":
        from heed.export.word2vec import export_word2vec

        message(f"{out}: {export_word2vec(opened, out):,} word vectors", quiet)
        return
    if to == "moses":
        from heed.export.moses import export_moses

        message(f"{out}: {export_moses(opened, out):,} phrase pairs", quiet)
        return
    from heed.export.formats import FORMATS
    from heed.export.formats import export as export_verified

    written, findings = export_verified(opened, out, to)
    kind = opened.recipe.tokenizer.kind
    left_out = f"; without a tokenizer, as only heed has the kind {kind!r}: use token ids" if written is False else ""
    message(_counts(out, written) if to == "arpa" else f"{out}: {FORMATS[to].title}{left_out}", quiet)
    message(findings.summary(), quiet)


def import_model(
    model: Annotated[
        Path,
        typer.Argument(
            help="Folder with config.json, model.safetensors and a tokenizer; an ARPA file; word vectors; or, with "
            "--into, a phrase table."
        ),
    ],
    out: Annotated[Path, typer.Option(help="The new run folder.")],
    into: Annotated[
        Path | None, typer.Option(metavar="RUN", help="A phrase-based run; its copy in --out gets the Moses table.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Make a run from a GPT-2, BERT or Marian model, an ARPA file, word vectors or a phrase table.

    GPT-2, BERT and Marian (OPUS-MT) in the format of Hugging Face transformers; n-grams as KenLM and SRILM write them;
    word vectors in the text format of word2vec. The run can do whatever other runs of its kind can; models of
    transformers can also be trained further (heed train --init).

    Examples:

      heed import shakespeare-gpt2 --out runs/gpt2

      heed import opus-mt-en-de --out runs/opus-en-de

      heed import kn5.arpa --out runs/kn5

      heed import vectors.txt --out runs/vectors

      heed import phrase-table.gz --into runs/phrases --out runs/phrases-2
    """
    if into is not None:
        from heed.export.moses import import_moses
        from heed.run import Run

        num_pairs, num_unknown = import_moses(model, Run(into), out)
        left_out = f"; left out: {num_unknown:,} with words that {into} does not have" if num_unknown else ""
        message(f"{out}: {num_pairs:,} phrase pairs{left_out}", quiet)
        return
    from heed.export.arpa import import_arpa
    from heed.export.gpt2 import import_gpt2
    from heed.export.hugging_face import CONFIG, read_json, require_supported
    from heed.export.word2vec import import_word2vec, is_word2vec

    if model.is_dir():
        from heed.export.bert import import_bert
        from heed.export.marian import import_marian

        importers: dict[Any, Any] = {"gpt2": import_gpt2, "bert": import_bert, "marian": import_marian}
        document = read_json(model / CONFIG)
        require_supported(document, {"model_type": tuple(importers)}, model / CONFIG)
        message(f"{out}: {importers[document.get('model_type', 'gpt2')](model, out):,} parameters", quiet)
    elif is_word2vec(model):
        message(f"{out}: {import_word2vec(model, out):,} word vectors", quiet)
    else:
        message(_counts(out, import_arpa(model, out)), quiet)


def _counts(out: Path, counts: Sequence[int]) -> str:
    return f"{out}: number of n-grams for n = 1, 2, ...: {', '.join(f'{n:,}' for n in counts)}"
