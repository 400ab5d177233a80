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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from heed.cluster.parts import InputFile, Part, cut, read_part
from heed.core.errors import HeedError, UsageError
from heed.core.files import atomic_write, is_debris, remove_debris, sha256_file, sole_writer, storage_errors
from heed.core.json_text import parse_json
from heed.core.own_scorer import SCORER, VERDICT
from heed.core.progress import Progress, message
from heed.core.run_files import RECIPE
from heed.text.readers.lines import Errors
from heed.text.readers.records import count_rows

MANIFEST = "manifest.json"
Compute = Callable[..., Mapping[str, Any]]
"""Gets the texts of each column that is read, and returns the new columns, Arrow arrays of the same length."""


@dataclass(frozen=True)
class Work:
    """What is computed for each row. It is sent to the workers, so it holds settings and no model."""

    verb: str
    open: Callable[[], Any]
    """Loads what computes: a `Compute` with its model. A function of a module or a `partial` of one."""
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
    """SHA-256 of a file, or of those files of a run, and of its scorer, that its outputs depend on."""
    if not path.is_dir():
        return sha256_file(path)
    names = sorted({file for kind in (RECIPE, "*.safetensors", "tokenizer*.json") for file in path.glob(kind)})
    further = ("answer.json", "labels.json", "confidence.json", VERDICT)
    names += [file for file in map(path.joinpath, further) if file.exists()]
    lines = [f"{file.name} {sha256_file(file)}\n" for file in names]
    if (path / SCORER).is_dir():
        lines.append(f"{SCORER} {_digest(path / SCORER)}\n")
    return hashlib.sha256("".join(lines).encode()).hexdigest()


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


@dataclass(frozen=True)
class Task:
    """A result that a worker makes."""

    name: str
    """What is computed, in messages."""
    result: Path
    size: int
    """Of how many rows."""
    arguments: Mapping[str, Any]


def compute_corpus(work: Work, files: Sequence[InputFile], folder: Path, cluster: Any, quiet: bool = False) -> None:
    """Compute all parts whose results do not exist yet, on a `Cluster`, and check that every row is there once.

    Raises UsageError for a folder of other results or another process that writes it, and the error of a part that
    cannot be computed, with its row.
    """
    parts = cut(files)
    with claimed(work, files, parts, folder):
        tasks = [Task(part.title, folder / part.name, part.num_rows, {"part": part}) for part in parts]
        if are_missing(tasks):
            with cluster as connected:
                shared = {"work": work, "key": secrets.token_hex(8), "folder": folder.absolute()}
                distribute(work, work.verb, tasks, compute_part, shared, connected, quiet)
        _require_all(parts, folder)


@contextmanager
def claimed(work: Work, files: Sequence[InputFile], parts: Sequence[Part], folder: Path) -> Iterator[None]:
    """Make a folder that of the results of this work, and write it alone. Raises UsageError as `compute_corpus`."""
    with storage_errors("write the results", path=folder, otherwise="choose another --output"):
        folder.mkdir(parents=True, exist_ok=True)
        with sole_writer(folder, "writing"):
            Manifest.of(work, files, len(parts)).claim(folder)
            yield
            remove_debris(folder)  # of workers that were lost


def are_missing(tasks: Sequence[Task]) -> bool:
    """Whether a result does not exist yet."""
    return not all(task.result.exists() for task in tasks)


def distribute(
    work: Work, title: str, tasks: Sequence[Task], function: Callable[..., int | HeedError],
    shared: Mapping[str, Any], connected: Any, quiet: bool,
) -> None:  # fmt: skip
    """Let the workers of a cluster make the results that do not exist. Raises the error of a task."""
    todo = [task for task in tasks if not task.result.exists()]
    total = sum(task.size for task in tasks)
    done = total - sum(task.size for task in todo)
    if done:
        message(f"{title}: {len(tasks) - len(todo):,} of {len(tasks):,} parts are there already", quiet)
    named = {task.name: task.arguments for task in todo}
    with Progress(total, "rows", title, quiet, initial=done) as progress:
        for _, result in connected.results(named, function, shared, work.threads, work.gpus):
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
    """In a worker: compute a part, and return the number of its rows, or an error that people read."""
    target = folder / part.name
    return attempted(
        target, lambda: write_part(part, work.columns, opened(work, key), target, work.errors), part.num_rows
    )


def attempted(target: Path, make: Callable[[], object], size: int) -> int | HeedError:
    """In a worker: make a result, unless another one did before it was lost. Returns `size`, or an error."""
    try:
        with storage_errors("write the results", path=target.parent, otherwise="choose another --output"):
            if not target.exists():
                make()
        return size
    except HeedError as error:
        return error


def opened(work: Work, key: str) -> Any:
    """In a worker: what computes, with its model. The process keeps it for the next tasks of the same `key`."""
    if key not in _kept:
        _kept.clear()
        _kept[key] = work.open()
    return _kept[key]


_kept: dict[str, Any] = {}
"""In a worker: what computes, of the work that it has last done."""


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
        part.require_rows(row - part.first_row)


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
            raise UsageError(f"{part.path} already has a column {name!r}, which is the name of the results. Rename it.")
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
