"""`heed data check` and `heed data deduplicate`: examine data before training, and remove repetitions."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heed.cli.cluster import ClusterFlags, refuse_with_ray
from heed.cli.data_curve import curve
from heed.cli.flags import add_verb, flags_given
from heed.cli.options import (
    BadBytes,
    Json,
    MarkColumn,
    Quiet,
    SrcColumn,
    TagColumn,
    TgtColumn,
    TokenColumn,
    language_of,
)  # fmt: skip
from heed.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from heed.text.doctor.findings import Diagnosis
    from heed.text.readers import CorpusFiles
    from heed.text.readers.labelled import LabelledTable
    from heed.text.readers.lines import Errors

app = typer.Typer(
    help="Check data, remove duplicates, and find out whether more data would help.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


_TABLE, _TAGS, _TEXT, _PAIRS = "a table (--table F)", "tagged tokens (--conll)", "text (--text)", "pairs"
"""Kinds of data."""


@app.callback()
def data() -> None:
    """Check data, remove duplicates, and find out whether more data would help."""


@dataclass(frozen=True)
class TableFlags:
    """A table of texts with labels, and its columns."""

    table: Annotated[str | None, typer.Option(metavar="F", help="A table of texts with labels, instead.")] = None
    text_column: Annotated[list[str] | None, typer.Option(metavar="C", help="Column of the texts of a table.")] = None
    label_column: Annotated[str | None, typer.Option(metavar="C", help="Column of the labels of a table.")] = None
    label_separator: Annotated[str, typer.Option(help="Separator of several labels in a cell of a table.")] = ""
    questions: Annotated[bool, typer.Option("--questions", help="The table has questions and answers.")] = False

    def read(self, path: str) -> LabelledTable:
        """A table with these columns."""
        from heed.text.readers import parse_column
        from heed.text.readers.labelled import LabelledTable

        columns = [column for column in map(parse_column, self.text_column or ()) if column is not None]
        return LabelledTable(path, tuple(columns), parse_column(self.label_column), self.label_separator)

    def diagnose(self, table: str, others: Sequence[str | None], errors: Errors, quiet: bool) -> Diagnosis:
        """Examine a table, and look for the rows of a validation and a test table in it.

        Raises UsageError for columns of labels in a table of questions.
        """
        from heed.text.doctor.questions import diagnose_questions
        from heed.text.doctor.tables import diagnose_table
        from heed.text.readers.questions import QuestionTable

        if self.questions:
            if unused := [flag for flag in flags_given(self) if flag not in ("--table", "--questions")]:
                raise UsageError(f"{unused[0]} is for a table of labels, and not for one of questions: leave it out.")
            tables = [QuestionTable(path, errors) if path else None for path in others]
            return diagnose_questions(QuestionTable(table, errors), *tables, quiet=quiet)
        labelled = [self.read(path) if path else None for path in others]
        return diagnose_table(self.read(table), *labelled, errors=errors, quiet=quiet)


def check(
    *,
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="FILES...", help="Two parallel files, a file of pairs, or (--text, --conll) one file."),
    ] = None,
    valid: Annotated[list[str] | None, typer.Option(help="Validation files, in the same form.")] = None,
    test: Annotated[list[str] | None, typer.Option(help="Test files, to look for them in the training data.")] = None,
    text: Annotated[bool, typer.Option("--text", help="The files are text for a language model.")] = False,
    conll: Annotated[bool, typer.Option("--conll", help="The files are tagged tokens in columns.")] = False,
    token_column: TokenColumn = None,
    tag_column: TagColumn = None,
    mark_column: MarkColumn = None,
    labelled: TableFlags,
    cluster: ClusterFlags,
    src_column: SrcColumn = None,
    tgt_column: TgtColumn = None,
    src_lang: Annotated[str, typer.Option(help="Language of the source, such as en; required for TMX.")] = "",
    tgt_lang: Annotated[str, typer.Option(help="Language of the target.")] = "",
    errors: BadBytes = "strict",
    json_output: Json = False,
    quiet: Quiet = False,
) -> None:
    """Examine training data.

    Reports line counts, empty sides, duplicates, copies, leaks, damage, scripts and lengths; for tags, their scheme,
    broken spans and likely typos; for questions, answers that are not in their text. Ends with exit code 65 if
    something would ruin training. With --ray, reads a corpus of pairs, or of texts with --text. The report is that of
    one file with all rows, but a row that cannot be read ends the command.

    Examples:

      heed data check train.en train.de --valid val.en --valid val.de

      heed data check memory.tmx --src-lang en --tgt-lang de

      heed data check --conll train.conll --valid dev.conll --test test.conll

      heed data check --table reviews.csv --test test.csv

      heed data check --table questions.jsonl --questions

      heed data check --ray --input 'corpus/*.parquet' --output checked --src-column en --tgt-column de
    """
    from heed.text.doctor.files import diagnose_text_files
    from heed.text.readers import CorpusFiles, parse_column

    if conll and text:
        raise UsageError("--conll and --text are different kinds of files: leave one out.")
    given = partial(CorpusFiles, src_column=parse_column(src_column), tgt_column=parse_column(tgt_column))
    columns = {"--token-column": token_column, "--tag-column": tag_column, "--mark-column": mark_column}
    files, held_out = files or [], (valid or [], test or [])
    if cluster.is_used:
        refuse_with_ray({
            "FILES": files, "--table": labelled.table, "--questions": labelled.questions,
            "--text-column": labelled.text_column, "--label-column": labelled.label_column, "--conll": conll, **columns,
        })  # fmt: skip
        given = partial(given, src_lang=src_lang, tgt_lang=tgt_lang)
        _show(_of_corpus(cluster, given, text, *held_out, errors, quiet), json_output)
        return
    if (labelled.table is None) == (not files):
        raise UsageError("give two parallel files, a file of pairs, --text or --conll and a file, or --table F.")
    sides = {"--src-column": src_column, "--tgt-column": tgt_column, "--src-lang": src_lang, "--tgt-lang": tgt_lang}
    kinds = {_TABLE: labelled.table is not None, _TAGS: conll, _TEXT: text, _PAIRS: True}
    _refuse_others(
        next(kind for kind, is_given in kinds.items() if is_given),
        {_TABLE: flags_given(labelled), _TAGS: [*["--conll"] * conll, *_given(columns)], _TEXT: ["--text"] * text,
         _PAIRS: _given(sides)},
    )  # fmt: skip
    if labelled.table is not None:
        diagnosis = labelled.diagnose(labelled.table, _each(held_out, "--table"), errors, quiet)
    elif conll:
        diagnosis = _of_tagged(files, held_out, tuple(columns.values()), errors, quiet)
    elif text:
        texts = _single(files, "--text"), *_each(held_out, "--text")
        diagnosis = diagnose_text_files(*texts, errors=errors, quiet=quiet)
    else:
        _check_numbers(files, dict(zip(("--valid", "--test"), held_out, strict=True)))
        diagnosis = _of_pairs(given, files, held_out, (src_lang, tgt_lang), errors, quiet)
    _show(diagnosis, json_output)


def _of_pairs(
    given: Callable[..., CorpusFiles], files: list[str], held_out: Sequence[list[str]], languages: tuple[str, str],
    errors: Errors, quiet: bool,
) -> Diagnosis:  # fmt: skip
    """Examine files of pairs; a language that is not given is that of the name of its file."""
    from heed.text.doctor.files import diagnose_files

    names = files if len(files) == 2 else ["", ""]
    src_lang, tgt_lang = (each or language_of(name) for each, name in zip(languages, names, strict=True))
    corpus = partial(given, src_lang=src_lang, tgt_lang=tgt_lang)
    pairs = [corpus(*_paths(group)) if group else None for group in held_out]
    return diagnose_files(corpus(*_paths(files)), *pairs, errors=errors, quiet=quiet)


def _given(flags: Mapping[str, str | None]) -> list[str]:
    """The flags that have a value."""
    return [flag for flag, value in flags.items() if value]


def _refuse_others(kind: str, flags: Mapping[str, Sequence[str]]) -> None:
    """Raise UsageError for flags that are for data of another kind. `flags`: those that were given, by kind."""
    for other, given in flags.items():
        if other != kind and given:
            raise UsageError(f"{given[0]} is for {other}, and not for {kind}: leave it out.")


def _of_tagged(
    files: list[str], held_out: tuple[list[str], list[str]], columns: Sequence[str | None], errors: Errors, quiet: bool
) -> Diagnosis:
    """The diagnosis of a CoNLL file. `columns`: those of tokens, tags and marks."""
    from heed.text.doctor.tags import diagnose_conll_files
    from heed.text.readers import parse_column
    from heed.text.readers.conll import Columns

    tagged = _single(files, "--conll"), *_each(held_out, "--conll")
    return diagnose_conll_files(*tagged, columns=Columns(*map(parse_column, columns)), errors=errors, quiet=quiet)


def _each(groups: tuple[list[str], list[str]], flag: str) -> tuple[str | None, str | None]:
    """The file of each held-out set, if it is given."""
    valid, test = (_single(group, flag) if group else None for group in groups)
    return valid, test


def _show(diagnosis: Diagnosis, as_json: bool) -> None:
    print(json.dumps(diagnosis.to_json(), ensure_ascii=False) if as_json else diagnosis.render())
    if diagnosis.stops:
        raise typer.Exit(65)


def _of_corpus(
    cluster: ClusterFlags, given: Callable[..., CorpusFiles], text: bool, valid: list[str], test: list[str],
    errors: Errors, quiet: bool,
) -> Diagnosis:  # fmt: skip
    """The diagnosis of a corpus."""
    from heed.cli.data_corpus import check_pair_corpus, check_text_corpus

    if text:
        return check_text_corpus(cluster, *_each((valid, test), "--text"), errors, quiet)
    if cluster.column:
        raise UsageError("--column selects a text: give --text, or --src-column and --tgt-column for pairs.")
    _check_numbers([], {"--valid": valid, "--test": test})
    groups = {name: given(*_paths(group)) for name, group in (("validation", valid), ("test", test)) if group}
    return check_pair_corpus(cluster, given, groups, errors, quiet)


def deduplicate(
    *,
    cluster: ClusterFlags,
    src_column: SrcColumn = None,
    tgt_column: TgtColumn = None,
    errors: BadBytes = "strict",
    quiet: Quiet = False,
) -> None:
    """Print the lines of stdin that do not repeat an earlier one.

    White space at the ends of a line does not count. Lines are compared by 64-bit hashes, which take 15 bytes of memory
    per line. With --ray, the rows of a corpus are compared by the text in --column, or by the pair in --src-column and
    --tgt-column. The results are Parquet files with the rows that are kept.

    Examples:

      heed data deduplicate < lines.txt > distinct.txt

      heed data deduplicate --ray --input 'corpus/*.parquet' --output distinct --src-column en --tgt-column de
    """
    from heed.cli.stdio import flush, groups_as_they_come, write_line
    from heed.text.hashing import HashSet, hash_text
    from heed.text.readers import CorpusFiles, parse_column

    columns = parse_column(src_column), parse_column(tgt_column)
    if (columns[0] is None) != (columns[1] is None):
        raise UsageError("give both --src-column and --tgt-column, or neither.")
    if cluster.is_used:
        from heed.cli.data_corpus import deduplicate_corpus

        given = partial(CorpusFiles, src_column=columns[0], tgt_column=columns[1]) if columns[0] is not None else None
        if given and cluster.column:
            raise UsageError("give --column for texts, or --src-column and --tgt-column for pairs.")
        deduplicate_corpus(cluster, given, errors, quiet)
        return
    if columns[0] is not None:
        raise UsageError("--src-column needs --ray.")
    seen = HashSet()
    for lines in groups_as_they_come(errors):
        for line in lines:
            if seen.add(hash_text(line)):
                write_line(line)
        flush()


def _single(files: list[str], flag: str) -> str:
    if len(files) > 1:
        raise UsageError(f"{flag} takes one file, got {len(files)}: {', '.join(files)}.")
    return files[0]


def _check_numbers(files: list[str], held_out: dict[str, list[str]]) -> None:
    """Raise UsageError for more than two files, and for one side of a validation or test set without the other."""
    from heed.text.readers.corpus import SPREADSHEETS, format_of

    sides = {
        flag: group[0] for flag, group in held_out.items()
        if len(group) == 1 and not format_of(Path(group[0])) and not group[0].lower().endswith(SPREADSHEETS)
    }  # fmt: skip
    if len(files) > 2 and len(sides) == len(files) - 2:
        # The order of the files does not tell which is which.
        flags = " ".join(f"{flag} SRC {flag} TGT" for flag in sides)
        raise UsageError(f"repeat the flag before each file of a validation or test set: {flags}.")
    for flag, src in sides.items():
        raise UsageError(
            f"{flag} was given once, with {src}. Give two parallel files as {flag} SRC {flag} TGT, or one file of "
            "pairs (.tsv, .csv, .jsonl, .parquet, .tmx)."
        )
    for before, group in (("", files), *((f"{flag}: ", group) for flag, group in held_out.items())):
        if len(group) > 2:
            raise UsageError(f"{before}expected two parallel files or one file of pairs, got {len(group)} files.")


def _paths(files: list[str]) -> tuple[str | None, str | None, str | None]:
    """Source, target and pairs: two files are the first two, one file is the last."""
    return (files[0], files[1], None) if len(files) == 2 else (None, None, files[0])


add_verb(app, "check", check)
add_verb(app, "deduplicate", deduplicate)
add_verb(app, "curve", curve)
