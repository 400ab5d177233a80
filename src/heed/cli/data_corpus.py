"""`heed data check` and `heed data deduplicate` on a corpus, with Ray."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from heed.cli.cluster import ClusterFlags
from heed.cluster.corpus import Work
from heed.cluster.parts import Part, read_part
from heed.cluster.ray_cluster import Cluster
from heed.cluster.repeats import Bools, compute_distinct
from heed.cluster.rows import Corpus, Rows, TextRow, open_pairs, open_texts
from heed.core.errors import DataError, UsageError
from heed.core.files import atomic_write
from heed.core.progress import message
from heed.text.archives import is_stream
from heed.text.doctor.direction import how_to_exchange
from heed.text.doctor.examination import Examination, PairExamination, TextExamination
from heed.text.doctor.files import crlf, fingerprints_of_pairs, of_files
from heed.text.doctor.findings import Diagnosis, sorted_findings
from heed.text.hashing import hash_pair, hash_text
from heed.text.readers import (
    CorpusFiles,
    Errors,
    FileFingerprint,
    column_languages,
    read_pairs,
    read_text,
    with_languages_of,
)
from heed.text.readers.corpus import counted
from heed.text.readers.records import count_rows

HeldOut = Mapping[str, CorpusFiles]
"""Validation and test files."""


def check_text_corpus(
    flags: ClusterFlags, valid: str | None, test: str | None, errors: Errors, quiet: bool
) -> Diagnosis:
    """Examine the texts of a corpus, as `diagnose_text_files`."""
    corpus = open_texts(flags.input or (), flags.column, errors, quiet)
    held_out = {flag: [path] for flag, path in (("--valid", valid), ("--test", test)) if path}
    _require_files(held_out)
    given = {flag: [str(Path(path).absolute())] for flag, [path] in held_out.items()}
    opening = partial(_open_text, corpus.rows, *(given.get(flag, [None])[0] for flag in ("--valid", "--test")))
    counts = _counts(flags, opening, corpus, given, {"--text": True}, quiet)
    diagnosis = opening().examination.diagnosis(counts)
    return replace(diagnosis, findings=sorted_findings([*diagnosis.findings, *crlf(_line_ends(corpus))]))


def check_pair_corpus(
    flags: ClusterFlags, given: Callable[..., CorpusFiles], held_out: HeldOut, errors: Errors, quiet: bool
) -> Diagnosis:
    """Examine the pairs of a corpus, as `diagnose_files`. `given`: files with the columns and languages given."""
    corpus = open_pairs(flags.input or (), given, errors, quiet)
    train = corpus.pairs
    assert train is not None
    _require_files({f"--{name}": [*map(str, files.paths.values())] for name, files in held_out.items()})
    named = column_languages(train, errors)
    others = {name: _whole(with_languages_of(train, files, errors)) for name, files in held_out.items()}
    opening = partial(_open_pairs, corpus.rows, others)
    paths = {name: [*map(str, files.paths.values())] for name, files in others.items()}
    options = {
        "--src-column": train.src_column, "--tgt-column": train.tgt_column, "--src-lang": train.src_lang,
        "--tgt-lang": train.tgt_lang,
    }  # fmt: skip
    counts = _counts(flags, opening, corpus, paths, options, quiet)
    languages = train.src_lang or named["src"], train.tgt_lang or named["tgt"]
    left_out = {"train": corpus.left_out, **{name: Counter[str]() for name in others}}
    examination = _open_pairs(corpus.rows, others, left_out).examination
    diagnosis = examination.diagnosis(counts, (), languages, how_to_exchange(train, languages, errors))
    fingerprints = {name: fingerprints_of_pairs(files) for name, files in others.items()}
    return of_files(diagnosis, train, named, left_out, {**_line_ends(corpus), **fingerprints})


def deduplicate_corpus(
    flags: ClusterFlags, given: Callable[..., CorpusFiles] | None, errors: Errors, quiet: bool
) -> None:
    """Write the rows of a corpus whose text, or whose pair of texts, no earlier row has."""
    if given is None:
        corpus = open_texts(flags.input or (), flags.column, errors, quiet)
    else:
        corpus = open_pairs(flags.input or (), given, errors, quiet)
    assert flags.output is not None
    work = _work("deduplicate", partial(Deduplication, corpus.rows), corpus.rows, {})
    results = compute_distinct(work, 1, corpus, flags.output, ".parquet", Cluster(flags.ray or "", quiet), quiet)
    for reason, count in corpus.left_out.items():
        message(f"left out: {counted(count, reason)}", quiet)
    message(f"kept {sum(map(count_rows, results)):,} of {corpus.num_rows:,} rows: {flags.output}", quiet)


def _require_files(held_out: Mapping[str, Sequence[str]]) -> None:
    """Raise UsageError for pipes, which a worker cannot read."""
    for flag, paths in held_out.items():
        for path in filter(is_stream, paths):
            raise UsageError(f"{flag} {path} can be read only once: with --ray, write it to a file first.")


def _whole(files: CorpusFiles) -> CorpusFiles:
    """The same files with absolute paths, as a worker may run in another folder."""
    paths: dict[str, Any] = {part: Path(path).absolute() for part, path in files.paths.items()}
    return replace(files, **paths)


def _line_ends(corpus: Corpus) -> dict[str, dict[str, FileFingerprint]]:
    """The training files with Windows line ends."""
    return {
        "train": {
            str(file.path): FileFingerprint(
                name=file.path.name, bytes=file.size, sha256=file.fingerprint, lines=file.num_rows,
                crlf_lines=file.crlf_lines,
            )
            for file in corpus.files
            if file.crlf_lines
        }
    }  # fmt: skip


def _work(
    verb: str, opening: Callable[[], Any], rows: Rows, options: Mapping[str, Any], files: Sequence[str] = ()
) -> Work:
    every = {"--errors": rows.errors, "fields": list(rows.fields), **options}
    return Work(f"data {verb}", opening, rows.columns, every, tuple(map(Path, files)), rows.errors)


def _counts(
    flags: ClusterFlags, opening: Callable[[], Checking], corpus: Corpus, held_out: Mapping[str, Sequence[str]],
    options: Mapping[str, Any], quiet: bool,
) -> Any:  # fmt: skip
    """The counts over all parts. `held_out`: the files of each held-out set."""
    assert flags.output is not None
    examination = opening().examination  # what is wrong with the held-out files is found here
    files = [path for paths in held_out.values() for path in paths]
    work = _work("check", opening, corpus.rows, {**options, **held_out}, files)
    cluster = Cluster(flags.ray or "", quiet)
    results = compute_distinct(work, examination.num_keys, corpus, flags.output, ".json", cluster, quiet)
    counts = examination.begin(0, corpus.num_rows)
    adapter = TypeAdapter[Any](type(counts))
    for path in results:
        try:
            counts.merge(adapter.validate_json(path.read_bytes()))
        except ValidationError as error:
            raise DataError(f"{path} is damaged, or of another version of heed. Name another --output.") from error
    return counts


class Checking:
    """Examines the rows of parts: a `RowWork`."""

    def __init__(self, examination: Examination[Any, Any], rows: Rows) -> None:
        self.examination = examination
        self.num_keys = examination.num_keys
        self._rows = rows

    def keys(self, part: Part) -> Iterator[Sequence[int]]:
        """See `RowWork`."""
        return map(self.examination.keys, self._read(part))

    def write(self, part: Part, begin: int, total: int, are_repeated: Sequence[Bools], target: Path) -> None:
        """See `RowWork`."""
        counts = self.examination.begin(begin, total)
        flags = zip(*((~its).tolist() for its in are_repeated), strict=True)
        for number, (row, are_new) in enumerate(zip(self._read(part), flags, strict=True), start=begin + 1):
            self.examination.add(counts, number, row, self.examination.keys(row), are_new)
        with atomic_write(target) as file:
            file.write(TypeAdapter(type(counts)).dump_json(counts))

    def _read(self, part: Part) -> Iterator[Any]:
        """The texts, or the pairs, of a part. Raises DataError for a row without a text."""
        for number, row in enumerate(self._rows.read(part), start=part.first_row + 1):
            if None in row:
                column = self._rows.columns[row.index(None)]
                raise DataError(f"{part.path}, row {number:,}: field {column!r} is null; it must be a string.")
            yield row[0] if len(row) == 1 else row


class Deduplication:
    """Leaves out the rows of parts that repeat earlier ones: a `RowWork`. Rows without a text are kept."""

    num_keys = 1

    def __init__(self, rows: Rows) -> None:
        self._rows = rows

    def keys(self, part: Part) -> Iterator[Sequence[int]]:
        """See `RowWork`."""
        return ((_key(row),) for row in self._rows.read(part))

    def write(self, part: Part, begin: int, total: int, are_repeated: Sequence[Bools], target: Path) -> None:
        """See `RowWork`."""
        import pyarrow.parquet

        row = 0
        with atomic_write(target) as file, ExitStack() as opened:
            writer = None
            for table in read_part(part, self._rows.errors):
                kept = table.filter(pyarrow.array(~are_repeated[0][row : row + table.num_rows]))
                if writer is None:
                    writer = opened.enter_context(pyarrow.parquet.ParquetWriter(file, kept.schema))
                if kept.num_rows:
                    writer.write_table(kept, row_group_size=kept.num_rows)
                row += table.num_rows
            part.require_rows(row)


def _key(row: TextRow) -> int:
    texts = [text for text in row if text is not None]
    if len(texts) < len(row):
        return 0
    return hash_text(*texts) if len(texts) == 1 else hash_pair(*texts)


def _open_text(rows: Rows, valid: str | None, test: str | None) -> Checking:
    lines = [read_text(path, rows.errors) if path else None for path in (valid, test)]
    return Checking(TextExamination(*lines), rows)


def _open_pairs(rows: Rows, held_out: HeldOut, left_out: Mapping[str, Counter[str]] | None = None) -> Checking:
    pairs = {name: read_pairs(files, rows.errors, (left_out or {}).get(name)) for name, files in held_out.items()}
    return Checking(PairExamination(pairs.get("validation"), pairs.get("test"), in_one_file=True), rows)
