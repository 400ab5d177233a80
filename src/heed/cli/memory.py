"""`heed memory import|export|review|find`: a translation memory of corrections and other translations by people."""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heed.cli.flags import add_verb
from heed.cli.options import BadBytes, Quiet, SrcColumn, TgtColumn, require_writable
from heed.core.errors import UsageError
from heed.core.progress import message

if TYPE_CHECKING:
    from heed.memory.store import TranslationMemory

app = typer.Typer(
    help="Keep human translations in a memory, to reuse them and to learn from them.", no_args_is_help=True,
    rich_markup_mode=None,
)  # fmt: skip
Memory = Annotated[Path, typer.Argument(metavar="MEMORY", help="A translation memory (SQLite), such as team.memory.")]
SrcLang = Annotated[str, typer.Option("--src-lang", help="Language of the sources.")]
TgtLang = Annotated[str, typer.Option("--tgt-lang", help="Language of the translations.")]
Languages = "for a memory of several pairs of languages"
OtherSrcLang = Annotated[str, typer.Option("--src-lang", help=f"Language of the sources, {Languages}.")]
OtherTgtLang = Annotated[str, typer.Option("--tgt-lang", help=f"Language of the translations, {Languages}.")]


@app.callback()
def memory() -> None:
    """Keep human translations in a memory, to reuse them and to learn from them."""


def import_(
    memory: Memory,
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="TMX, TSV, CSV, JSONL or Parquet.")],
    src_lang: SrcLang,
    tgt_lang: TgtLang,
    approved: Annotated[
        bool, typer.Option("--approved", help="Mark the translations as approved: they need no review.")
    ] = False,
    src_column: SrcColumn = None,
    tgt_column: TgtColumn = None,
    errors: BadBytes = "strict",
    quiet: Quiet = False,
) -> None:
    """Add translations to a memory, which is created if it does not exist.

    Example:

      heed memory import team.memory old.tmx --src-lang en --tgt-lang de --approved
    """
    from heed.text.readers import CorpusFiles, parse_column, read_pairs
    from heed.text.readers.corpus import counted

    corpora = [
        CorpusFiles(
            pairs=path, src_column=parse_column(src_column), tgt_column=parse_column(tgt_column),
            src_lang=src_lang, tgt_lang=tgt_lang,
        )
        for path in files
    ]  # fmt: skip
    left_out = Counter[str]()
    units = []
    for src, tgt in chain.from_iterable(read_pairs(corpus, errors, left_out) for corpus in corpora):
        if src.strip() and tgt.strip():
            units.append((src, tgt, ""))
        else:
            left_out["unit with an empty side"] += 1
    with closing(_open(memory, src_lang, tgt_lang, create=True)) as opened:
        added = opened.add(units, "approved" if approved else "new")
        for what, count in left_out.items():
            message(f"left out: {counted(count, what)}", quiet)
        message(f"{memory}: {added:,} of {len(units):,} translations are new; it has {len(opened):,}", quiet)


def export(
    memory: Memory,
    out: Annotated[Path, typer.Option(help="The file to write: .tmx or .tsv (also .gz, .xz, .zst).")],
    src_lang: OtherSrcLang = "",
    tgt_lang: OtherTgtLang = "",
    quiet: Quiet = False,
) -> None:
    """Write all translations except rejected ones to a file: TMX, for other programs, or TSV.

    Example:

      heed memory export team.memory --out team.tmx
    """
    from heed.core.environment import library_versions
    from heed.core.files import storage_errors
    from heed.memory.tmx import tmx_lines
    from heed.text.archives import open_text_output, plain_name
    from heed.text.readers.tables import tsv_field

    kind = Path(plain_name(out)).suffix
    if kind not in (".tmx", ".tsv"):
        raise UsageError(f"--out {out}: name a .tmx or a .tsv file.")
    require_writable(out)
    with closing(_open(memory, src_lang, tgt_lang)) as opened:
        units, languages = list(opened.units("new", "approved")), opened.languages
    if kind == ".tmx" and not all(languages):
        raise UsageError(f"--out {out}: a TMX names its languages, and {memory} has none: write a .tsv file.")
    lines = (
        tmx_lines(units, languages, library_versions()["heed"])
        if kind == ".tmx"
        else (f"{tsv_field(unit.source)}\t{tsv_field(unit.target)}" for unit in units)
    )
    with storage_errors("write the translations", path=out), open_text_output(out) as file:
        file.writelines(f"{line}\n" for line in lines)
    message(f"{out}: {len(units):,} translations", quiet)


def review(
    memory: Memory,
    src_lang: OtherSrcLang = "",
    tgt_lang: OtherTgtLang = "",
    approve: Annotated[list[int] | None, typer.Option(metavar="ID", help="Approve a unit (repeatable).")] = None,
    reject: Annotated[list[int] | None, typer.Option(metavar="ID", help="Reject a unit (repeatable).")] = None,
    approve_rest: Annotated[
        bool, typer.Option("--approve-rest", help="Approve all new units that do not look wrong.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Show the translations that look wrong, and approve or reject them.

    Prints one line for each: its id, the reasons, the source and the translation, separated by tabs. Rejected ones are
    neither used nor learned from.

    Examples:

      heed memory review team.memory

      heed memory review team.memory --reject 17 --reject 40 --approve-rest
    """
    from heed.inference.output_checks import Guard
    from heed.memory.review import suspicious
    from heed.text.language.codes import same_language
    from heed.text.readers.tables import tsv_field

    with closing(_open(memory, src_lang, tgt_lang)) as opened:
        _require_decisions(opened, approve or [], reject or [])
        opened.set_state(approve or [], "approved")
        opened.set_state(reject or [], "rejected")
        units = list(opened.units("new", "approved"))
        is_one_language = same_language(*opened.languages)
        guard = Guard.of_pairs([(unit.source, unit.target) for unit in units][:1000], is_one_language)
        looks_wrong = {each.unit.id: each for each in suspicious(units, guard)}
        if approve_rest:
            rest = [unit.id for unit in units if unit.state == "new" and unit.id not in looks_wrong]
            opened.set_state(rest, "approved")
        num_new = sum(1 for _ in opened.units("new"))
    for each in looks_wrong.values():
        if each.unit.state == "new":
            texts = map(tsv_field, (each.unit.source, each.unit.target))
            sys.stdout.write("\t".join((str(each.unit.id), "; ".join(each.reasons), *texts)) + "\n")
    message(f"{memory}: {len(units):,} translations, {num_new:,} of them not reviewed", quiet)


def find(
    memory: Memory,
    text: Annotated[str, typer.Argument(help="A source.")],
    src_lang: OtherSrcLang = "",
    tgt_lang: OtherTgtLang = "",
) -> None:
    """Print the exact and fuzzy matches of a source: similarity, source and translation.

    Example:

      heed memory find team.memory "Press the green button."
    """
    from heed.text.readers.tables import tsv_field

    with closing(_open(memory, src_lang, tgt_lang)) as opened:
        exact = opened.exact(text)
        matches = [(1.0, exact)] if exact else []
        matches += [(match.similarity, match.unit) for match in opened.near(text)]
    for similarity, unit in matches:
        sys.stdout.write(f"{similarity:.2f}\t{tsv_field(unit.source)}\t{tsv_field(unit.target)}\n")


def _open(path: Path, src_lang: str, tgt_lang: str, create: bool = False) -> TranslationMemory:
    from heed.memory.store import TranslationMemory

    if bool(src_lang) != bool(tgt_lang):
        raise UsageError("give both --src-lang and --tgt-lang, or neither.")
    return TranslationMemory(path, (src_lang, tgt_lang) if src_lang else None, create)


def _require_decisions(memory: TranslationMemory, approve: list[int], reject: list[int]) -> None:
    """Raise UsageError, before anything is changed, for an id that no unit has, or that is in both lists."""
    known = {unit.id for unit in memory.units("new", "approved", "rejected")} if approve or reject else set()
    if unknown := sorted({*approve, *reject} - known):
        raise UsageError(
            f"{memory.path} has no unit with the id {' or '.join(map(str, unknown))}: nothing was changed."
        )
    if both := sorted({*approve} & {*reject}):
        raise UsageError(f"--approve {both[0]} and --reject {both[0]} contradict each other: leave one of them out.")


add_verb(app, "import", import_)
add_verb(app, "export", export)
add_verb(app, "review", review)
add_verb(app, "find", find)
