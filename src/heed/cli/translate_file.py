"""`heed translate-file`: translate a whole file, and keep its format."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heed.cli.options import (
    BadBytes,
    Beam,
    CombinationFlags,
    Compute,
    Glossary,
    Quiet,
    SrcColumn,
    merge_keys,
    require_writable,
    search_options,
    warn_if_not_usable,
)  # fmt: skip
from heed.cli.translate import load_translator, names_and_keys
from heed.core.errors import UsageError
from heed.core.files import storage_errors
from heed.core.progress import Progress, message

if TYPE_CHECKING:
    from heed.decoding.hypothesis import Hypothesis
    from heed.decoding.options import Constraints, SearchOptions
    from heed.documents.inline_tags import Links
    from heed.documents.translation import Step, Watch

Words = Annotated[list[str], typer.Argument(metavar="RUN FILE", help="A run folder, and the file.")]

BATCH = 256
"""Sentences between two updates of the progress."""


@dataclass(frozen=True)
class FileFlags:
    """The output, the columns of a table, and terms with a required translation."""

    out: Annotated[Path | None, typer.Option(help="The translated file (default: stdout).")] = None
    src_column: SrcColumn = None
    tgt_column: Annotated[str | None, typer.Option(help="Target column of a table (new if it does not exist).")] = None
    glossary: Glossary = None
    keep: Annotated[list[str] | None, typer.Option(help="A term that is left untranslated (repeatable).")] = None


def translate_file(
    *,
    words: Words,
    files: FileFlags,
    combination: CombinationFlags,
    beam: Beam = None,
    errors: BadBytes = "strict",
    compute: Compute,
    quiet: Quiet = False,
) -> None:
    """Translate a whole file, and keep its format.

    Formats: .txt, .md, .html, .docx, .odt, .pptx, .xlsx, .csv, .tsv, .tmx, .po, .xliff, .json, .yaml, .srt, .vtt. In a
    table, the rows without a translation get one, in the column of the target language or in a new one; in a
    translation memory (marked with creationid="heed"), a PO or an XLIFF file, the entries without one. Any key of
    [decoding] in the run's recipe.toml is an option too: --decoding.max_ratio=1.5.

    Examples:

      heed translate-file runs/en-de letter.docx --out letter.de.docx

      heed translate-file runs/en-de words.csv --src-column English --out words.de.csv

      heed translate-file runs/en-de memory.tmx --glossary terms.tsv --out memory.de.tmx
    """
    from heed.decoding.options import require_plain_beam
    from heed.decoding.phrases import read_terms
    from heed.documents.file_format import FileContext
    from heed.documents.formats import format_of, translate_file
    from heed.documents.text_translator import TextTranslator
    from heed.documents.translation import Step, TranslateOptions
    from heed.text.archives import open_bytes, open_output, plain_name
    from heed.text.readers import parse_column
    from heed.text.readers.columns import Sides

    names, keys = names_and_keys(words)
    if len(names) != 2:
        raise UsageError(f"expected a run and a file, got {', '.join(names) or 'none'}.")
    run, file = map(Path, names)
    out = files.out
    require_writable(out)
    if out is not None and out.resolve() == file.resolve():
        raise UsageError(f"--out {out} is the file to translate: name another one.")
    name = plain_name(file)
    if format_of(name).is_packed and out is None and sys.stdout.isatty():
        raise UsageError(f"{file} is not text: name the translated file with --out.")
    if not format_of(name).has_columns and (files.src_column or files.tgt_column):
        raise UsageError(f"--src-column and --tgt-column are for .csv and .tsv: leave them out for {file}.")
    loaded = load_translator(run, combination, compute, needs_pytorch=False)
    warn_if_not_usable(loaded, quiet)
    given = merge_keys(keys, {"beam_size": beam} if beam else {}, "decoding.")
    if given.get("nbest", 1) != 1:
        raise UsageError("a file is written with one translation of each sentence: leave out --decoding.nbest.")
    options = search_options(loaded.decoding, {**given, "nbest": 1})
    normalise = loaded.data.normaliser.apply
    glossary = read_terms(files.glossary, normalise, errors) if files.glossary else {}
    translate_options = TranslateOptions(glossary=glossary, keep=files.keep or ())
    if translate_options.glossary or translate_options.keep:
        require_plain_beam(options)
    src_lang, tgt_lang = loaded.languages
    sides = Sides(src_lang, tgt_lang, parse_column(files.src_column), parse_column(files.tgt_column))
    with open_bytes(file) as opened:
        data = opened.read()
    step = Step(run.name, loaded.line_translator(with_tokens=False), options, src_lang)
    translator = TextTranslator(_WithProgress(loaded, quiet), [step], translate_options)
    context = FileContext(name, sides, errors, lambda note: message(f"{file}: {note}", quiet))
    translated = translate_file(data, translator, context)
    if out is None:
        sys.stdout.buffer.write(translated)
        return
    with storage_errors("write the translation", path=out), open_output(out) as written:
        written.write(translated)


class _WithProgress:
    """Translates with progress and warnings on stderr."""

    def __init__(self, loaded: Any, quiet: bool) -> None:
        self._loaded = loaded
        self._quiet = quiet

    def translate(
        self, step: Step, texts: Sequence[str], options: SearchOptions, constraints: Sequence[Constraints] | None,
        watch: Watch | None = None,
    ) -> list[Hypothesis]:  # fmt: skip
        """Translate texts."""
        self._loaded.check_input(texts, self._quiet)
        hypotheses: list[Hypothesis] = []
        with Progress(len(texts), "sentences", "translating", self._quiet) as progress:
            for first in range(0, len(texts), BATCH):
                some = slice(first, first + BATCH)
                hypotheses += step.translator.translate(texts[some], options, constraints and constraints[some])
                progress.update(len(hypotheses))
        return hypotheses

    def links(self, step: Step, pairs: Sequence[tuple[str, str]]) -> Sequence[Links]:
        """Word links between texts and their translations."""
        links: list[Links] = self._loaded.word_links(pairs)
        return links

    def check(self) -> None:
        """Nothing: an interruption ends the process."""
