"""A corpus on a Ray cluster of this machine: workers and one process, memory, and what a large corpus would take.

    python benchmarks/cluster.py RUN LINES.en.gz --lines 6000 --turns 3

One process and a cluster with a worker for each processor translate the same parts, in turns, each process or worker
with one thread. Rates are those after the first parts, when all have loaded the model, as the whole first turn has not
yet. The results must be the same bytes. Then the parts are empty tasks, for the rate at which one driver distributes
them. The projection needs assumptions that are no measurement: --machines, --cores of each, --price of a core for an
hour.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet

from heed.cli.options import Compute
from heed.cli.translate import ConstraintFlags, FusionFlags, OutputFlags, SearchFlags, _open_corpus
from heed.cluster.corpus import Work, compute_corpus, write_part
from heed.cluster.parts import MAX_STEPS, STEP_ROWS, cut, input_files
from heed.cluster.ray_cluster import Cluster
from heed.core.environment import num_cpus
from heed.text.readers import read_lines

ROWS_PER_FILE = 500


@dataclass(frozen=True)
class Turn:
    """One translation of the corpus."""

    seconds: float
    """From the start of the work to its end, with the loading of models."""
    lines_per_second: float
    """Of all workers, after the first part of each."""


class Connected:
    """A connection that stays open between turns."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def __enter__(self) -> Cluster:
        return self.cluster

    def __exit__(self, *error: object) -> None:
        pass


class Memory:
    """The highest resident memory of this process, the driver, and of each of Ray's workers, while a block runs."""

    def __enter__(self) -> Memory:
        self.peaks: dict[str, int] = {}
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._is_over.wait(0.2):
            for process in ("self", *(path.name for path in Path("/proc").iterdir() if path.name.isdigit())):
                try:
                    command = (Path("/proc") / process / "cmdline").read_bytes()
                    status = (Path("/proc") / process / "status").read_text()
                except OSError:
                    continue
                if process == "self" or command.startswith(b"ray::compute_part"):
                    kilobytes = int(re.search(r"VmRSS:\s+(\d+)", status)[1])  # type: ignore[index]
                    self.peaks[process] = max(self.peaks.get(process, 0), kilobytes * 1024)


def rate_of(folder: Path, num_workers: int) -> float:
    """Lines a second between the first part of each worker and the last part of all, by the times of the files."""
    times = sorted(path.stat().st_mtime_ns / 1e9 for path in folder.glob("part-*"))
    return ROWS_PER_FILE * (len(times) - num_workers) / (times[-1] - times[num_workers - 1])


def one_process(run: Path, corpus: Path, output: Path) -> Turn:
    """Translate the parts in a process of its own, with a thread."""
    words = [sys.executable, __file__, str(run), str(corpus), "--alone", str(output)]
    seconds = float(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    return Turn(seconds, rate_of(output, 1))


def alone(run: Path, corpus: Path, output: Path) -> None:
    """Be that process, and print the seconds."""
    begin = time.perf_counter()
    output.mkdir()
    translate = opening(run)()
    files, _ = input_files([f"{corpus}/*.parquet"], None)
    for part in cut(files):
        write_part(part, ("text",), translate, output / part.name)
    print(time.perf_counter() - begin)


def opening(run: Path) -> Any:
    """What `heed translate RUN --ray` does in a worker."""
    settings = ([str(run)], SearchFlags(), ConstraintFlags(), FusionFlags(), OutputFlags(), "strict", True)
    return partial(_open_corpus, *settings, Compute(threads=1))


def on_cluster(run: Path, corpus: Path, output: Path, cluster: Cluster) -> Turn:
    """Translate the parts on the cluster."""
    begin = time.perf_counter()
    files, column = input_files([f"{corpus}/*.parquet"], None)
    work = Work("translate", opening(run), (column,), {}, (run,))
    compute_corpus(work, files, output, Connected(cluster), quiet=True)
    return Turn(time.perf_counter() - begin, rate_of(output, num_cpus()))


def nothing(number: int) -> int:
    """An empty task."""
    return number


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("lines", type=Path, help="a text, a sentence in each line")
    parser.add_argument("--lines", dest="number", type=int, default=6000)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--machines", type=int, default=100)
    parser.add_argument("--cores", type=int, default=32)
    parser.add_argument("--price", type=float, default=0.04)
    parser.add_argument("--corpus-lines", type=float, default=1e9)
    parser.add_argument("--alone", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.alone is not None:
        alone(options.run, options.lines, options.alone)
        return
    with tempfile.TemporaryDirectory() as folder:
        measure(options, Path(folder))


def measure(options: Any, folder: Path) -> None:
    """Measure and print everything."""
    corpus, workers = folder / "corpus", num_cpus()
    corpus.mkdir()
    texts = list(islice(read_lines(options.lines), options.number))
    for begin in range(0, len(texts), ROWS_PER_FILE):
        table = pyarrow.table({"text": texts[begin : begin + ROWS_PER_FILE]})
        pyarrow.parquet.write_table(table, corpus / f"{begin:09}.parquet")
    turns: list[tuple[Turn, Turn]] = []
    begin_start = time.perf_counter()
    with Cluster("", quiet=True) as cluster, Memory() as memory:
        start = time.perf_counter() - begin_start
        for turn in range(options.turns):
            names = folder / f"one-{turn}", folder / f"many-{turn}"
            turns.append(
                (one_process(options.run, corpus, names[0]), on_cluster(options.run, corpus, names[1], cluster))
            )
            for path in names[0].iterdir():
                assert path.read_bytes() == (names[1] / path.name).read_bytes(), "the results differ"
            print(f"turn {turn + 1}: {turns[-1]}", file=sys.stderr)
        begin_tasks = time.perf_counter()
        num_tasks = sum(1 for _ in cluster.results({n: {"number": n} for n in range(2000)}, nothing, {}))
        tasks_per_second = num_tasks / (time.perf_counter() - begin_tasks)
    one = statistics.median(a.lines_per_second for a, _ in turns)
    many = statistics.median(b.lines_per_second for _, b in turns)
    ratios = [b.lines_per_second / a.lines_per_second for a, b in turns]
    figures: Mapping[str, Any] = {
        "lines": len(texts), "workers": workers, "one process, lines/s": round(one, 1),
        "cluster, lines/s": round(many, 1), "ratio": [round(ratio, 2) for ratio in sorted(ratios)],
        "whole first turn of one process and of the cluster, s": [round(side.seconds, 1) for side in turns[0]],
        "start of the local cluster, s": round(start, 1), "empty tasks/s of one driver": round(tasks_per_second),
        "driver, MB": round(memory.peaks.pop("self") / 1e6),
        "worker, MB": [round(peak / 1e6) for peak in sorted(memory.peaks.values())],
    }  # fmt: skip
    print(json.dumps(figures, indent=1))
    project(options, many / workers, tasks_per_second)


def project(options: Any, per_core: float, tasks_per_second: float) -> None:
    """Print what a large corpus would take on many machines, with the assumptions."""
    cores = options.machines * options.cores
    core_hours = options.corpus_lines / per_core / 3600
    parts_per_second = cores * per_core / (STEP_ROWS * MAX_STEPS)
    print(
        f"{options.corpus_lines:.0e} lines at {per_core:.1f} lines/s of a core: {core_hours:,.0f} core hours; on "
        f"{options.machines} machines with {options.cores} cores {core_hours / cores:.2f} hours; at {options.price} "
        f"per core hour {core_hours * options.price:,.0f}.\n"
        f"Assumed: every core is as fast as those here with all of them at work, lines are as long as these, machines "
        f"do not wait for the file system, the last parts ({STEP_ROWS * MAX_STEPS / per_core / 60:.1f} minutes each) "
        f"cost nothing. Parts that end in a second: {parts_per_second:.1f}; one driver distributes "
        f"{tasks_per_second:.0f}."
    )


if __name__ == "__main__":
    main()
