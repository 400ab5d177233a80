"""A verb's results for a corpus: each part is computed and written once, by whatever workers are alive.

A task reads its part from the file, computes it group by group, and renames the finished file of results to its name.
So the driver and the cluster exchange names and numbers only, a worker holds a group of rows and its model, and as many
tasks run as there are processors. A process keeps the model for its next tasks.

Results that exist are never computed again, and a name always stands for the same rows (`Manifest`). So after any loss,
of workers, nodes or the driver, the same command continues, and no row is lost or doubled.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heed.cluster.parts import InputFile, Part, cut, read_part
from heed.core.errors import DataError, HeedError, UsageError
from heed.core.files import atomic_write, is_debris, remove_debris, sha256_file, sole_writer, storage_errors
from heed.core.json_text import parse_json
from heed.core.progress import Progress, message
from heed.text.readers.lines import Errors
from heed.text.readers.records import count_rows

MANIFEST = "manifest.json"
Compute = Callable[..., Mapping[str, Any]]
"""Gets the texts of each column that is read, and returns the new columns, Arrow arrays of the same length."""


@dataclass(frozen=True)
class Work:
    """What is computed for each row. It is sent to the workers, so it holds settings and no model."""

    verb: str
    open: Callable[[], Compute]
    """Loads the model; a function of a module or a `partial` of one."""
    columns: tuple[str, ...]
    """The columns with the texts that are read."""
    options: Mapping[str, Any]
    """What the results depend on, in JSON, with its names on the command line."""
    files: tuple[Path, ...]
    """Runs and files that the results depend on."""
    errors: Errors = "strict"
    threads: int = 1
    """Processors of a worker."""
    gpus: int = 0


@dataclass(frozen=True)
class Manifest:
    """What the results in a folder belong to: `manifest.json`."""

    entries: Mapping[str, Any]

    @classmethod
    def of(cls, work: Work, files: Sequence[InputFile], num_parts: int) -> Manifest:
        """The manifest of this work on these files."""
        inputs = {str(file.path): [file.size, file.fingerprint] for file in files}
        entries = {
            "command": f"heed {work.verb}", "columns": list(work.columns), "options": dict(work.options),
            "files": {str(path): _digest(path) for path in work.files}, "inputs": inputs, "num_parts": num_parts,
            "num_rows": sum(file.num_rows for file in files),
        }  # fmt: skip
        return cls(parse_json(json.dumps(entries)))

    def claim(self, folder: Path) -> None:
        """Make the folder one of these results. Raises UsageError, with what differs, if it has others."""
        path = folder / MANIFEST
        if not path.exists():
            if others := [each.name for each in folder.iterdir() if not is_debris(each)]:
                raise UsageError(f"{folder} is not empty (it has {min(others)}). Name another --output.")
            with atomic_write(path, "w") as file:
                file.write(json.dumps(self.entries, indent=1))
            return
        try:
            found = parse_json(path.read_bytes())
        except ValueError:
            found = None
        if not isinstance(found, dict) or found.keys() != self.entries.keys():
            raise UsageError(f"{path} is not a manifest of results. Name another --output.")
        if different := [text for key in self.entries for text in _differences(key, found[key], self.entries[key])]:
            more = f", and {len(different) - 5:,} more differences" if len(different) > 5 else ""
            raise UsageError(
                f"{folder} has the results of another call: {'; '.join(different[:5])}{more}. Repeat that call to "
                "continue it, or name another --output."
            )


def _digest(path: Path) -> str:
    """SHA-256 of a file, or of those files of a run that its outputs depend on."""
    if not path.is_dir():
        return sha256_file(path)
    names = sorted({file for kind in ("recipe.toml", "*.safetensors", "tokenizer*.json") for file in path.glob(kind)})
    names += [file for file in (path / "answer.json", path / "labels.json", path / "confidence.json") if file.exists()]
    return hashlib.sha256("".join(f"{file.name} {sha256_file(file)}\n" for file in names).encode()).hexdigest()


def _differences(key: str, old: Any, new: Any) -> list[str]:
    """What differs between an entry of two manifests, the older first."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return [] if old == new else [f"{key.replace('_', ' ')} {_shown(old)}, now {_shown(new)}"]
    names = sorted({name for name in (*old, *new) if old.get(name) != new.get(name)})
    if key == "options":
        return [f"{name} {_shown(old.get(name))}, now {_shown(new.get(name))}" for name in names]
    return [f"{name} {_fate(name, old, new)}" for name in names]


def _fate(name: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    return "has changed" if name in old and name in new else "is new" if name in new else "is missing"


def _shown(value: Any) -> str:
    return "not given" if value is None else str(value)


def compute_corpus(work: Work, files: Sequence[InputFile], folder: Path, cluster: Any, quiet: bool = False) -> None:
    """Compute all parts whose results do not exist yet, on a `Cluster`, and check that every row is there once.

    Raises UsageError for a folder of other results or another process that writes it, and the error of a part that
    cannot be computed, with its row.
    """
    parts = cut(files)
    with storage_errors("write the results", path=folder, otherwise="choose another --output"):
        folder.mkdir(parents=True, exist_ok=True)
        with sole_writer(folder, "writing"):
            Manifest.of(work, files, len(parts)).claim(folder)
            todo = [part for part in parts if not (folder / part.name).exists()]
            done = sum(part.num_rows for part in parts) - sum(part.num_rows for part in todo)
            if todo:
                if done:
                    message(f"{len(parts) - len(todo):,} of {len(parts):,} parts are there already", quiet)
                _distribute(work, todo, folder, cluster, done, quiet)
            remove_debris(folder)  # of workers that were lost
            _require_all(parts, folder)


def _distribute(work: Work, todo: Sequence[Part], folder: Path, cluster: Any, done: int, quiet: bool) -> None:
    total = done + sum(part.num_rows for part in todo)
    tasks = {f"{part.path}, part {part.number:,}": {"part": part} for part in todo}
    shared = {"work": work, "key": secrets.token_hex(8), "folder": folder.absolute()}
    with cluster as connected, Progress(total, "rows", work.verb, quiet, initial=done) as progress:
        for _, result in connected.results(tasks, compute_part, shared, work.threads, work.gpus):
            if isinstance(result, HeedError):
                raise result
            done += result
            rate = (done - progress.initial) / max(progress.elapsed_seconds, 1e-9)
            progress.update(done, {"rows/s": f"{rate:,.1f}", "nodes": str(connected.num_nodes)})


def _require_all(parts: Sequence[Part], folder: Path) -> None:
    """Raise HeedError unless there is one result for every row."""
    for part in parts:
        rows = count_rows(folder / part.name)
        if rows != part.num_rows:
            raise HeedError(f"{folder / part.name} has {rows:,} rows, its part has {part.num_rows:,}. Remove the file.")


def compute_part(part: Part, work: Work, key: str, folder: Path) -> int | HeedError:
    """In a worker: compute a part, and return the number of its rows, or an error that people read.

    `key` identifies the work: the process keeps its model.
    """
    target = folder / part.name
    try:
        with storage_errors("write the results", path=folder, otherwise="choose another --output"):
            if not target.exists():  # another worker may have written it before it was lost
                if key not in _kept:
                    _kept.clear()
                    _kept[key] = work.open()
                write_part(part, work.columns, _kept[key], target, work.errors)
        return part.num_rows
    except HeedError as error:
        return error


_kept: dict[str, Compute] = {}
"""In a worker: the function that computes, with its model, of the work that it has last done."""


def write_part(part: Part, columns: Sequence[str], compute: Compute, target: Path, errors: Errors = "strict") -> None:
    """Compute a part and write its rows, with the new columns after their own."""
    import pyarrow.parquet

    row = part.first_row
    with atomic_write(target) as file, ExitStack() as opened:
        writer = None
        for table in read_part(part, errors):
            result = _with_results(table, columns, compute, part, row)
            if writer is None:
                writer = opened.enter_context(pyarrow.parquet.ParquetWriter(file, result.schema))
            writer.write_table(result, row_group_size=result.num_rows)
            row += table.num_rows
        if row != part.first_row + part.num_rows:
            raise DataError(f"{part.path} has changed while it was read. Name another --output and begin again.")


def _with_results(table: Any, columns: Sequence[str], compute: Compute, part: Part, first_row: int) -> Any:
    """The rows of a group with the new columns; those without a text have none either."""
    import pyarrow

    texts = [table.column(name).to_pylist() for name in columns]
    whole = [at for at, row in enumerate(zip(*texts, strict=True)) if None not in row]
    results = _computed([[column[at] for at in whole] for column in texts], whole, compute, part, first_row)
    places = {at: place for place, at in enumerate(whole)}
    order = pyarrow.array([places.get(at) for at in range(table.num_rows)], pyarrow.int64())
    for name, values in results.items():
        if name in table.column_names:
            raise UsageError(f"{part.path} has a column {name!r} already, which the results are called. Rename it.")
        table = table.append_column(name, values.take(order))
    return table


def _computed(
    texts: Sequence[list[str]], rows: Sequence[int], compute: Compute, part: Part, first_row: int
) -> Mapping[str, Any]:
    """The results of a group. An error of a single row is raised with its place."""
    try:
        return compute(*texts)
    except HeedError as error:
        for at, row in enumerate(rows):
            try:
                compute(*([column[at]] for column in texts))
            except HeedError as of_row:
                place = f"{part.path}, row {first_row + row + 1:,} (part {part.number:,})"
                raise type(of_row)(f"{place}: {of_row}") from of_row
        raise error
