"""Memory and time for a corpus of ten million sentence pairs.

Generates the pairs, then checks them, prepares them and reads them, each step in its own process whose peak memory is
measured. For a rank with its workers, memory is sampled together four times a second, and shared pages count once.
Checks that every pair occurs exactly once per epoch, for one and two ranks and several numbers of loader workers, and
that resuming at the end of an epoch takes no longer than starting it. Exits with 0 only if preparing stayed under 1
GB, the loader of a rank with its workers under 1.5 GB, and all pairs came once.
"""

from __future__ import annotations

import argparse
import re
import resource
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import peers

GB = 10**9
MOST_TO_PREPARE, MOST_TO_LOAD = 1.0 * GB, 1.5 * GB
BLOCK = 50_000
TOKENS_PER_BATCH = 16384
Measured = dict[str, Any]


def write_corpus(folder: Path, num_pairs: int) -> int:
    """Write `train.aa` and `train.bb` with 3 to 25 words of a Zipfian vocabulary per line. Returns their bytes."""
    dice = np.random.default_rng(1)
    ranks = np.arange(1, 200_001)
    shares = np.cumsum(1 / (ranks + 2.7))
    shares /= shares[-1]
    syllables = [a + b for a in "bdfgklmnprst" for b in "aeiou"]
    names = ["".join(syllables[(rank // 60**place) % 60] for place in range(3)) for rank in ranks.tolist()]
    words = {
        side: np.array([ending + name for name in names], dtype=object) for side, ending in (("aa", ""), ("bb", "z"))
    }
    files = {side: (folder / f"train.{side}").open("w", encoding="utf-8") for side in words}
    for begin in range(0, num_pairs, BLOCK):
        lengths = dice.integers(3, 26, min(BLOCK, num_pairs - begin))
        drawn = np.searchsorted(shares, dice.random(int(lengths.sum())))
        ends = np.cumsum(lengths)
        for side, file in files.items():
            said = words[side][drawn].tolist()
            spans = zip((ends - lengths).tolist(), ends.tolist(), strict=True)
            file.writelines(" ".join(said[first:end]) + "\n" for first, end in spans)
    for file in files.values():
        file.close()
    return sum((folder / f"train.{side}").stat().st_size for side in words)


def plan_of(folder: Path) -> Any:
    """The recipe that heed chooses for the corpus, after the data doctor has examined all of it."""
    from heed.core.config import Document
    from heed.planner import Planner, TrainOptions

    keys = {
        "task": "translation", "data.src": str(folder / "train.aa"), "data.tgt": str(folder / "train.bb"),
        "training.tokens_per_batch": TOKENS_PER_BATCH,
    }  # fmt: skip
    return Planner(Document(), keys, TrainOptions(folder / "run", device="cpu", quiet=True)).plan()


def prepare(folder: Path) -> Measured:
    """Run the doctor, then make the tokenizer and the token store."""
    from heed.execute import prepare_run

    run = prepare_run(plan_of(folder), folder / "run", quiet=True)
    return {"pairs": run.corpus["num_rows"]}


def loader_of(folder: Path, **options: Any) -> Any:
    """The training batches of the prepared run."""
    from heed.data.loader import BatchLoader
    from heed.data.store import TokenStore
    from heed.tasks.generation import text_batch

    store = TokenStore.open(folder / "run" / "data" / "train")
    return BatchLoader(store, text_batch, tokens_per_batch=TOKENS_PER_BATCH, seed=1, **options)


def read_epoch(folder: Path, rank: int, world_size: int, workers: int) -> Measured:
    """Read one rank's batches of an epoch and record their pairs; a pair that comes twice is an error."""
    loader = loader_of(folder, rank=rank, world_size=world_size, workers=workers)
    seen = np.zeros(len(loader.store), dtype=np.bool_)
    batches = loader.batches_from()
    for _ in range(rank, loader.num_batches(0), world_size):
        rows = next(batches)[1].rows.numpy()
        if seen[rows].any() or len(np.unique(rows)) < len(rows):
            raise SystemExit("a pair came twice")
        seen[rows] = True
    batches.close()
    return {"seen": np.packbits(seen), "pairs": len(seen)}


class Watched:
    """Samples the memory of this process and its children in a thread, and keeps the largest value in bytes."""

    def __init__(self) -> None:
        self.peak = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def end(self) -> int:
        """The largest sample."""
        self._ended.set()
        self._thread.join()
        return self.peak

    def _watch(self) -> None:
        while not self._ended.wait(0.25):
            self.peak = max(self.peak, sum(map(proportional_memory, ["self", *children()])))


def children() -> list[str]:
    """Ids of this process's children, from Linux's /proc."""
    return [pid for started in Path("/proc/self/task").glob("*/children") for pid in started.read_text().split()]


def proportional_memory(pid: str) -> int:
    """A process's memory in bytes, each page divided by the number of processes that share it."""
    try:
        told = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:  # it has ended
        return 0
    return sum(int(size) * 1024 for size in re.findall(r"^Pss:\s+(\d+) kB", told, re.MULTILINE))


def read_by_all(folder: Path, world_size: int, workers: int) -> Measured:
    """Read an epoch by all ranks in turn. Returns whether each pair came once, and the largest peak with workers."""
    ranks = [measured(read_epoch, folder, rank, world_size, workers) for rank in range(world_size)]
    counts = sum(np.unpackbits(found["seen"])[: found["pairs"]] for found in ranks)
    largest = {name: max(found[name] for found in ranks) for name in ("peak", "peak_together", "seconds")}
    return {"once": bool((counts == 1).all()), **largest}


def go_on(folder: Path, share: float) -> Measured:
    """Read the first batch after resuming at a share of the epoch."""
    from heed.data.schedule import Position

    loader = loader_of(folder, prefetch=0)
    begin = time.perf_counter()
    next(loader.batches_from(Position(0, int(share * (loader.num_batches(0) - 1)))))
    return {"seconds_to_batch": time.perf_counter() - begin}


def _measured(pipe: Any, work: Callable[..., Measured], arguments: tuple[Any, ...]) -> None:
    begin, watched = time.perf_counter(), Watched()
    found = work(*arguments)
    seconds = time.perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    pipe.send({**found, "seconds": seconds, "peak": peak, "peak_together": watched.end()})


def measured(work: Callable[..., Measured], *arguments: Any) -> Measured:
    """Run work in a new process. Returns its result, its seconds, and its peak memory in bytes."""
    context = get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_measured, args=(theirs, work, arguments))
    process.start()
    theirs.close()
    try:
        return dict(ours.recv())
    except EOFError:
        sys.exit(f"{work.__name__} failed; see its error above.")
    finally:
        process.join()


def checks(folder: Path, readings: list[tuple[int, int]]) -> Iterator[tuple[str, Measured, bool]]:
    """Rows of (step, measurements, whether it held)."""
    if not (folder / "run" / "data" / "train").is_dir():
        found = measured(prepare, folder)
        yield "doctor, tokenizer, token store", found, found["peak"] < MOST_TO_PREPARE
    for world_size, workers in readings:
        found = read_by_all(folder, world_size, workers)
        name = f"an epoch, {world_size} rank{'s' if world_size > 1 else ''}, {workers or 'no'} workers"
        yield name, found, found["once"] and (found["peak_together"] or found["peak"]) < MOST_TO_LOAD
    for share in (0.0, 1.0):
        found = measured(go_on, folder, share)
        yield f"first batch after {share:.0%} of an epoch", found, found["peak"] < MOST_TO_LOAD


def main() -> None:
    """Measure and print; the exit code says whether everything held."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=10_000_000, help="sentence pairs (default ten million)")
    parser.add_argument(
        "--folder", type=Path, help="where to work; data already prepared there is reused (default: a temporary folder)"
    )
    parser.add_argument(
        "--all", action="store_true", help="read with 0 to 3 loader workers and 1 and 2 ranks, not only two of these"
    )
    given = parser.parse_args()
    with ExitStack() as stack:
        folder = given.folder or Path(stack.enter_context(tempfile.TemporaryDirectory()))
        folder.mkdir(parents=True, exist_ok=True)
        files = [folder / f"train.{side}" for side in ("aa", "bb")]
        num_bytes = (
            sum(file.stat().st_size for file in files) if files[1].exists() else write_corpus(folder, given.pairs)
        )
        print(peers.machine_line(1, []), flush=True)
        print(f"Corpus: {given.pairs:,} pairs, {num_bytes / GB:.2f} GB of text", flush=True)
        readings = [(n, k) for n in (1, 2) for k in (0, 1, 2, 3)] if given.all else [(1, 0), (2, 2)]
        rows, held = [], True
        for what, found, good in checks(folder, readings):
            held &= good
            seconds = found.get("seconds_to_batch", found["seconds"])
            together = f"{found['peak_together'] / GB:.2f}"
            rows.append([what, f"{found['peak'] / GB:.2f}", together, f"{seconds:,.1f}", "yes" if good else "NO"])
            print(f"  {what}: {found}", file=sys.stderr, flush=True)
    print(peers.table(["", "peak memory, GB", "with its workers, shared pages once", "seconds", "held"], rows))
    sys.exit(0 if held else 1)


if __name__ == "__main__":
    main()
