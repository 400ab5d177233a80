"""Work on a corpus of words, for tests of clusters: workers and drivers import this module, and no PyTorch with it."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self

import pyarrow
import pyarrow.parquet

from heed.cluster.corpus import Work, compute_corpus, write_part
from heed.cluster.parts import cut, input_files
from heed.cluster.ray_cluster import Cluster


class Here:
    """A cluster that is this process. It can lose a worker before a task, and then the driver."""

    num_nodes = 1

    def __init__(self, address: str = "", quiet: bool = False, lost_after: int = -1) -> None:
        self.done: list[str] = []
        self.lost_after = lost_after

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def results(
        self, tasks: Mapping[str, Any], function: Callable[..., Any], shared: Mapping[str, Any], *resources: int
    ) -> Iterator[tuple[str, Any]]:
        """Do the tasks, the last first."""
        for key, arguments in reversed(tasks.items()):
            if len(self.done) == self.lost_after:
                raise ConnectionError("lost")
            self.done.append(key)
            yield key, function(**arguments, **shared)


def write_table(path: Path, row_group_size: int = 7, **columns: Any) -> Path:
    """A Parquet file."""
    path.parent.mkdir(exist_ok=True)
    pyarrow.parquet.write_table(pyarrow.table(columns), path, row_group_size=row_group_size)
    return path


def results(folder: Path) -> dict[str, list[Any]]:
    """The columns of all results, in the order of the parts."""
    rows: dict[str, list[Any]] = pyarrow.concat_tables(
        [pyarrow.parquet.read_table(path) for path in sorted(folder.glob("part-*.parquet"))]
    ).to_pydict()
    return rows


def write_corpus(folder: Path, words: Sequence[str], num_files: int = 12, num_rows: int = 25) -> Path:
    """A folder of Parquet files, each with rows of a number and a text."""
    dice = random.Random(5)
    folder.mkdir()
    for number in range(num_files):
        ids = range(number * num_rows, (number + 1) * num_rows)
        texts = [" ".join(dice.choices(list(words), k=dice.randint(2, 5))) for _ in ids]
        pyarrow.parquet.write_table(pyarrow.table({"id": ids, "text": texts}), folder / f"{number:02}.parquet")
    return folder


FREE_PARTS = 4
"""Parts that are computed while the gate is shut; those that have begun by then are, too."""


def gate_of(begun: Path) -> Path:
    """The file that opens the gate."""
    return begun.with_name(f"{begun.name}.gate")


def slow_translation(
    run: Path, seconds: float, begun: Path, output: Path | None = None
) -> Callable[..., Mapping[str, Any]]:
    """Translates with a pause before each group, at whose begin the worker leaves its process id in a folder.

    With the folder of the results, it waits for the gate when they are `FREE_PARTS`.
    """
    from heed.decoding.options import SearchOptions
    from heed.tasks import open_without_pytorch

    loaded = open_without_pytorch("translate", run, None, "float32", "auto", 1)
    assert loaded is not None
    translator, options = loaded.line_translator(with_tokens=False), SearchOptions(beam_size=2, guard=False)

    def translated(texts: Sequence[str]) -> Mapping[str, Any]:
        (begun / str(os.getpid())).touch()
        time.sleep(seconds)
        while output is not None and not gate_of(begun).exists() and len(contents(output)) >= FREE_PARTS:
            time.sleep(0.02)
        return {"translation": pyarrow.array([best.text for best in translator.translate(texts, options)])}

    return translated


def compute(
    corpus: str, run: str, begun: str, output: str, address: str, seconds: float = 0.0
) -> None:  # fmt: skip
    """Translate a corpus on a cluster, slowly."""
    opening = partial(slow_translation, Path(run), seconds, Path(begun), Path(output))
    work = Work("translate", opening, ("text",), {"--beam": 2}, (Path(run),))
    files, _ = input_files([f"{corpus}/*.parquet"], None)
    compute_corpus(work, files, Path(output), Cluster(address, quiet=True), quiet=True)


def compute_alone(corpus: Path, opening: Callable[[], Any], output: Path) -> dict[str, bytes]:
    """The files of results that one process writes, without Ray."""
    files, _ = input_files([f"{corpus}/*.parquet"], None)
    output.mkdir()
    translate = opening()
    for part in cut(files):
        write_part(part, ("text",), translate, output / part.name)
    return contents(output)


def contents(folder: Path) -> dict[str, bytes]:
    """The finished files of results."""
    return {path.name: path.read_bytes() for path in sorted(folder.glob("part-*.parquet"))}
