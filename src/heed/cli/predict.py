"""`heed predict`: an answer for each line of stdin, such as a label, or a caption for each image."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from heed.cli.cluster import ClusterFlags, refuse_with_ray
from heed.cli.options import BadBytes, Compute, Json, OnBadBytes, Quiet, RunFolder, warn_if_not_usable
from heed.core.errors import DataError, UsageError

if TYPE_CHECKING:
    from heed.tasks.predictor import AttendedSentence, Prediction, Predictor


def predict(
    *,
    run: RunFolder,
    probabilities: Annotated[
        bool, typer.Option("--probabilities", help="Print a tab and the probability after each answer.")
    ] = False,
    top: Annotated[int, typer.Option(help="Number of answers for each line, the likeliest first.", min=1)] = 1,
    images: Annotated[Path | None, typer.Option(help="Caption these images: a file, a folder or a .tar.")] = None,
    json_lines: Json = False,
    input_as: Annotated[
        Literal["auto", "conll", "text"],
        typer.Option(
            "--input-as", help="For taggers: one token per line (conll), or sentences (text).", metavar="KIND"
        ),
    ] = "auto",
    table: Annotated[
        Path | None, typer.Option(metavar="F", help="Answer the rows of a table instead, and print it with them.")
    ] = None,
    cluster: ClusterFlags,
    errors: BadBytes = "strict",
    compute: Compute,
    quiet: Quiet = False,
) -> None:
    """Predict an answer for each line of stdin, or for each image.

    An answer is what the run was trained for, such as a label. Several answers for a line (--top) are separated by
    tabs. Taggers read plain sentences, or CoNLL files, to which they add a column of tags. Both texts of a pair are on
    one line, separated by a tab; so are a question and its text. With --table, the rows of a table are printed with
    columns for the answers and their probabilities. Captions are printed after the image's name and a tab. With --ray,
    the answers for a corpus are written to Parquet files, in the column `prediction`.

    Examples:

      heed predict runs/topics < in.txt > labels.txt

      heed predict runs/topics --top 3 --probabilities < in.txt

      heed predict runs/names < in.conll > out.conll

      heed predict runs/topics --table new.csv > predicted.csv

      heed predict runs/answers --json < questions.tsv

      heed predict runs/captions --images photos.tar

      heed predict runs/topics --ray --input 'corpus/*.parquet' --output predicted
    """
    if cluster.is_used:
        refuse_with_ray({
            "--images": images, "--table": table, "--json": json_lines, "--input-as": input_as != "auto",
        })  # fmt: skip
        folder = run.absolute()
        opening = partial(_open_corpus, folder, top, probabilities)
        settings = {"--top": top, "--probabilities": probabilities}
        cluster.run("predict", opening, settings, compute, [folder], errors, quiet)
        return
    _check(images, table, json_lines, input_as)
    loaded = _loaded(run, probabilities, compute)
    if input_as != "auto":
        loaded.require("annotate", "--input-as")
    warn_if_not_usable(loaded, quiet)
    found: Iterator[Iterable[str]]
    if images is not None:
        loaded.require("caption", "--images")
        found = _captions(loaded, images, top, probabilities, json_lines)
    elif loaded.can("caption"):
        raise UsageError(f"{run} captions images: give --images F, a file, a folder or a .tar.")
    else:
        loaded.require("predict")
        if table is not None:
            found = iter([loaded.predict_table(table, top, probabilities, errors)])
        elif loaded.can("annotate"):
            from heed.cli.stdio import groups_as_they_come
            from heed.tasks.predictor import AnswerOptions

            options = AnswerOptions(input_as, json_lines, probabilities, top, quiet)
            found = loaded.annotate(groups_as_they_come(errors), options)
        else:
            found = _answers(loaded, top, probabilities, json_lines, errors)
    _write(found)


def _loaded(run: Path, probabilities: bool, compute: Compute) -> Any:
    """The opened run. Raises UsageError where its answers have no probabilities and these are wanted."""
    loaded = compute.load(run)
    if probabilities:
        loaded.require_probabilities()
    return loaded


def _check(images: Path | None, table: Path | None, json_lines: bool, input_as: str) -> None:
    """Raise UsageError for options that have no effect together."""
    if images is not None and table is not None:
        raise UsageError("--images and --table are different inputs: leave one out.")
    if table is not None and json_lines:
        raise UsageError("--table prints a table: leave out --json.")
    if input_as != "auto" and (images is not None or table is not None):
        raise UsageError("--input-as says what stdin has: leave it out with --images and --table.")


def _write(found: Iterable[Iterable[str]]) -> None:
    """Print rows as they come."""
    from heed.cli.stdio import flush, write_line

    for rows in found:
        for row in rows:
            write_line(row)
        flush()


def _captions(
    loaded: Predictor, images: Path, top: int, probabilities: bool, json_lines: bool
) -> Iterator[Sequence[str]]:
    """The row of each image."""
    from heed.decoding.hypothesis import single_spaced

    for name, answers in loaded.caption_files(images, top):
        plain = f"{single_spaced(name)}\t{_plain(answers, probabilities)}"
        yield [_record(name, answers) if json_lines else plain]


def _answers(
    loaded: Predictor, top: int, probabilities: bool, json_lines: bool, errors: OnBadBytes
) -> Iterator[Sequence[str]]:
    """The rows of each group of lines."""
    from heed.cli.stdio import groups_as_they_come

    def row(line: str, answers: Sequence[Prediction]) -> str:
        return _record(line, answers, loaded.attend(line)) if json_lines else _plain(answers, probabilities)

    done = 0
    for lines in groups_as_they_come(errors):
        try:
            found = loaded.predict(lines, top)
        except (DataError, UsageError):  # of one of the lines: those before it are answered first
            yield from ([row(*each)] for each in _one_by_one(loaded, lines, top, done))
            raise
        yield [row(*each) for each in zip(lines, found, strict=True)]
        done += len(lines)


def _one_by_one(
    loaded: Predictor, lines: Sequence[str], top: int, done: int
) -> Iterator[tuple[str, Sequence[Prediction]]]:
    """Each line with its answers. Raises the error of the first line that has none, with its number."""
    for number, line in enumerate(lines, start=done + 1):
        try:
            yield line, loaded.predict([line], top)[0]
        except (DataError, UsageError) as error:
            what = str(error).removeprefix("line 1: ").removeprefix("line 1 ")
            raise type(error)(f"standard input, line {number:,}: {what}") from error


def _open_corpus(run: Path, top: int, probabilities: bool, compute: Compute) -> Callable[..., Mapping[str, Any]]:
    """What answers the texts of a corpus in a worker."""
    import pyarrow

    loaded = _loaded(run, probabilities, compute)
    loaded.require("predict")

    def predicted(texts: Sequence[str]) -> Mapping[str, Any]:
        answers = loaded.predict(texts, top)
        columns = {}
        for place in range(top):
            found = [each[place] if place < len(each) else None for each in answers]
            suffix = str(place + 1) if place else ""
            columns[f"prediction{suffix}"] = pyarrow.array([a and a.text for a in found], pyarrow.string())
            if probabilities:
                columns[f"probability{suffix}"] = pyarrow.array([a and a.probability for a in found], pyarrow.float64())
        return columns

    return predicted


def _plain(answers: Sequence[Prediction], with_probabilities: bool) -> str:
    from heed.text.readers.tables import one_line

    cells = []
    for answer in answers:
        cells.append(one_line(answer.text))
        if with_probabilities and answer.probability is not None:
            cells.append(f"{answer.probability:.4f}")
    return "\t".join(cells)


def _record(line: str, answers: Sequence[Prediction], attended: Sequence[AttendedSentence] = ()) -> str:
    sentences = {"sentences": [asdict(sentence) for sentence in attended]} if attended else {}
    predictions = [asdict(answer) for answer in answers]
    return json.dumps({"input": line, "predictions": predictions, **sentences}, ensure_ascii=False)
