"""`heed translate-file`: a document, a table or a translation memory, its form kept."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from heed.cli.options import (
    BadBytes,
    Debug,
    Device,
    Precision,
    Quiet,
    Tag,
    Threads,
    require_writable,
    search_options,
    use_threads,
)  # fmt: skip
from heed.cli.translate import once, split_words
from heed.core.errors import UsageError

if TYPE_CHECKING:
    from heed.decoding.hypothesis import Hypothesis
    from heed.decoding.options import Constraints, SearchOptions
    from heed.documents.translation import Step, Watch
    from heed.run import Run

T = TypeVar("T")

Words = Annotated[list[str], typer.Argument(metavar="RUN FILE", help="A run folder, and the file.")]

AT_ONCE = 256
"""Sentences between two looks at the progress."""


def translate_file(
    words: Words,
    out: Annotated[Path | None, typer.Option(help="The translated file (default: stdout).")] = None,
    src_column: Annotated[str | None, typer.Option(help="Of a table: what is translated, number or name.")] = None,
    tgt_column: Annotated[str | None, typer.Option(help="Of a table: where that goes (new at the end).")] = None,
    beam: Annotated[int | None, typer.Option(help="Beam size; 1 is greedy (default: the recipe's).", min=1)] = None,
    glossary: Annotated[Path | None, typer.Option(help="TSV of source terms and the terms they demand.")] = None,
    keep: Annotated[list[str] | None, typer.Option(help="A term that stays as it is.")] = None,
    tag: Tag = None,
    ensemble: Annotated[list[Path] | None, typer.Option(metavar="RUN", help="Another run to decide with.")] = None,
    errors: BadBytes = "strict",
    precision: Precision = "float32",
    threads: Threads = 0,
    device: Device = "cpu",
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Translate a whole file, its form kept: .txt, .csv, .tsv, .tmx, .srt, .html.

    Of a table the rows that have no translation yet get one, in the column of the target language, or in a new one; of
    a translation memory the units without one, marked with creationid="heed". Any key that [decoding] has in the run's
    recipe.toml is a flag too: --decoding.max_ratio=1.5.

    Examples:

      heed translate-file runs/en-de words.csv --src-column English --out words.de.csv

      heed translate-file runs/en-de memory.tmx --glossary terms.tsv --out memory.de.tmx
    """
    import heed
    from heed.core.files import atomic_write, storage_errors
    from heed.core.progress import message
    from heed.decoding.factory import require_plain_beam
    from heed.decoding.terms import read_terms
    from heed.documents.formats import FORMATS, suffix_of, translate_file
    from heed.documents.text_translator import TextTranslator
    from heed.documents.translation import Step, TranslateOptions
    from heed.text.archives import COMPRESSIONS, open_bytes, plain_name
    from heed.text.readers import parse_column
    from heed.text.readers.columns import Sides
    from heed.text.readers.corpus import SPREADSHEETS

    run, file, keys = _split(words)
    require_writable(out)
    if out is not None and out.suffix.lower() in COMPRESSIONS:
        raise UsageError(f"--out {out}: what is written is not compressed; leave out {out.suffix}.")
    name = plain_name(file)
    if suffix_of(name) not in (*FORMATS, *SPREADSHEETS):
        raise UsageError(f"{file}: no format is known by this name; known are {', '.join(FORMATS)}.")
    use_threads(threads)
    loaded = heed.load(run, device, precision, ensemble=ensemble or (), tag=tag)
    loaded.require("translate", "translate-file")
    options = search_options(loaded.run.recipe.decoding, once(keys, {"beam_size": beam}))
    normalise = loaded.run.recipe.data.normaliser.apply
    wanted = TranslateOptions(glossary=read_terms(glossary, normalise, errors) if glossary else {}, keep=keep or ())
    if wanted.glossary or wanted.keep:
        require_plain_beam(options)
    src_lang, tgt_lang = loaded.languages
    sides = Sides(src_lang, tgt_lang, parse_column(src_column), parse_column(tgt_column))
    with open_bytes(file) as opened:
        data = opened.read()
    step = Step(run.name, loaded.translator, options, src_lang)
    translator = TextTranslator(_Shown(loaded.run, quiet), [step], wanted)
    translated = translate_file(name, data, translator, sides, errors, lambda found: message(f"{file}: {found}", quiet))
    if out is None:
        sys.stdout.buffer.write(translated)
        return
    with storage_errors("write the translation", path=out), atomic_write(out) as written:
        written.write(translated)


def _split(words: Sequence[str]) -> tuple[Path, Path, dict[str, object]]:
    """The run, the file, and the keys of [decoding]."""
    names = [word for word in words if not word.startswith("-")]
    if len(names) != 2:
        raise typer.BadParameter(f"a run and a file are needed, got {', '.join(names) or 'none'}")
    run, keys = split_words([names[0], *(word for word in words if word.startswith("-"))])
    return run, Path(names[1]), keys


class _Shown:
    """Searches here, with the progress on stderr, and a word where the text is none for this run."""

    def __init__(self, run: Run, quiet: bool) -> None:
        self._run = run
        self._quiet = quiet

    def translate(
        self, step: Step, texts: Sequence[str], options: SearchOptions, constraints: Sequence[Constraints] | None,
        watch: Watch | None = None,
    ) -> list[Hypothesis]:  # fmt: skip
        """What the run makes of each text."""
        from heed.core.progress import Progress
        from heed.evaluation.compatibility import warn_about_input

        warn_about_input(self._run, texts, self._quiet)
        found: list[Hypothesis] = []
        with Progress(len(texts), "sentences", "translating", self._quiet) as progress:
            for first in range(0, len(texts), AT_ONCE):
                some = slice(first, first + AT_ONCE)
                found += step.translator.translate(texts[some], options, constraints and constraints[some])
                progress.update(len(found))
        return found

    def call(self, work: Callable[[], T]) -> T:
        """At once."""
        return work()
