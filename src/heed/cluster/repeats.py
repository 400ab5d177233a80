"""Rows that repeat earlier ones of a corpus, and work that needs to know them.

Three stages, each of tasks whose results are files, so that a lost worker or command costs no more than a task:

1. Each part writes the keys of its rows, 64-bit hashes, sorted, with the first row that has them: `keys/0-000000.npy`,
   ... Its other rows go into `keys/0-000000.again.npy`, ...
2. Each range of hashes is read from all parts, and the rows are written whose key an earlier part has:
   `repeats/0-000000.npy`, ... So memory is bounded by the keys of a range, each at most once for a part, and not by
   those of the corpus.
3. Each part is read again, with the knowledge which of its rows repeat earlier ones.
"""

from __future__ import annotations

import secrets
from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from heed.cluster.corpus import Task, Work, are_missing, attempted, claimed, distribute, opened
from heed.cluster.parts import Part
from heed.cluster.rows import Corpus
from heed.core.errors import HeedError
from heed.core.files import atomic_write, remove_folder

RANGE_KEYS = 1 << 23
"""Keys of a range, of which a worker holds all: 500 MB."""
KEYS, REPEATS = "keys", "repeats"

Bools = NDArray[np.bool_]


class RowWork(Protocol):
    """What a `Work` opens that needs to know repeated rows."""

    num_keys: int
    """Keys of a row."""

    def keys(self, part: Part) -> Iterable[Sequence[int]]:
        """The keys of each row of a part; 0 is compared with none."""

    def write(self, part: Part, begin: int, total: int, are_repeated: Sequence[Bools], target: Path) -> None:
        """Write the result of a part, whose first row is row `begin` of the corpus of `total` rows.

        `are_repeated`: of each key, the rows of which an earlier row has it.
        """


def compute_distinct(
    work: Work, num_keys: int, corpus: Corpus, folder: Path, suffix: str, cluster: Any, quiet: bool = False
) -> list[Path]:
    """Compute the parts whose results do not exist, and return all results in order.

    `work` opens a `RowWork`; `suffix`: of the names of the results. Raises as `compute_corpus`.
    """
    parts, total = corpus.parts, corpus.num_rows
    begins = [0, *accumulate(part.num_rows for part in parts)]
    with claimed(work, corpus.files, parts, folder):
        results = [
            Task(
                part.title, (folder / part.name).with_suffix(suffix), part.num_rows,
                {"part": part, "begin": begin, "total": total},
            )
            for part, begin in zip(parts, begins, strict=False)
        ]  # fmt: skip
        if are_missing(results):
            (folder / KEYS).mkdir(exist_ok=True)
            (folder / REPEATS).mkdir(exist_ok=True)
            ranges = -(-total // RANGE_KEYS)
            last = num_keys - 1  # written after the others
            keyed = [Task(part.title, _keys_file(folder, last, part), part.num_rows, {"part": part}) for part in parts]
            compared = [
                Task(
                    f"hashes {kind}, range {number:,}", _repeats_file(folder, kind, number), total // ranges,
                    {"kind": kind, "number": number, "ranges": ranges, "size": total // ranges},
                )
                for kind in range(num_keys)
                for number in range(ranges)
            ]  # fmt: skip
            whole = folder.absolute()
            by_work = {"work": work, "num_keys": num_keys, "key": secrets.token_hex(8), "folder": whole}
            with cluster as connected:
                if are_missing(compared):
                    distribute(work, "hash", keyed, write_keys, by_work, connected, quiet)
                    shared = {"parts": parts, "begins": begins, "folder": whole}
                    distribute(work, "compare", compared, write_repeats, shared, connected, quiet)
                distribute(
                    work, work.verb, results, compute_rows, {**by_work, "ranges": ranges, "suffix": suffix},
                    connected, quiet,
                )  # fmt: skip
        for name in (KEYS, REPEATS):
            if (folder / name).exists():
                remove_folder(folder / name)
    return [task.result for task in results]


def _keys_file(folder: Path, kind: int, part: Part) -> Path:
    return folder / KEYS / f"{kind}-{part.number:06}.npy"


def _again_file(folder: Path, kind: int, part: Part) -> Path:
    return _keys_file(folder, kind, part).with_suffix(".again.npy")


def _repeats_file(folder: Path, kind: int, number: int) -> Path:
    return folder / REPEATS / f"{kind}-{number:06}.npy"


def write_keys(part: Part, work: Work, num_keys: int, key: str, folder: Path) -> int | HeedError:
    """In a worker: write the keys of a part, sorted, and their first rows, each kind in a file, and the other rows."""

    def write() -> None:
        rows: RowWork = opened(work, key)
        kinds = [array("Q") for _ in range(num_keys)]
        for row in rows.keys(part):
            for keys, its in zip(kinds, row, strict=True):
                keys.append(its)
        for kind, keys in enumerate(kinds):
            values = np.array(keys, np.uint64)
            compared = np.flatnonzero(values)
            order = compared[np.argsort(values[compared], kind="stable")]
            ordered = values[order]  # equal keys are in the order of their rows
            again = np.concatenate([np.zeros(min(1, len(order)), np.bool_), ordered[1:] == ordered[:-1]])
            _save(_again_file(folder, kind, part), order[again].astype(np.uint64))
            _save(_keys_file(folder, kind, part), np.stack([ordered[~again], order[~again].astype(np.uint64)]))

    return attempted(_keys_file(folder, num_keys - 1, part), write, part.num_rows)


def write_repeats(
    kind: int, number: int, ranges: int, size: int, parts: Sequence[Part], begins: Sequence[int], folder: Path
) -> int | HeedError:
    """In a worker: write the rows of the corpus whose key is in a range of hashes and which an earlier part has."""
    target = _repeats_file(folder, kind, number)

    def write() -> None:
        all_keys, all_rows = [np.zeros(0, np.uint64)], [np.zeros(0, np.uint64)]
        lowest, highest = (np.uint64(min((1 << 64) * at // ranges, (1 << 64) - 1)) for at in (number, number + 1))
        for part, begin in zip(parts, begins, strict=False):
            keys, rows = np.load(_keys_file(folder, kind, part), mmap_mode="r")
            first = np.searchsorted(keys, lowest)
            end = len(keys) if number == ranges - 1 else np.searchsorted(keys, highest)
            all_keys.append(keys[first:end])
            all_rows.append(rows[first:end] + np.uint64(begin))
        keys, rows = np.concatenate(all_keys), np.concatenate(all_rows)
        order = np.argsort(keys, kind="stable")  # equal keys stay in the order of their rows
        keys = keys[order]
        _save(target, np.sort(rows[order][1:][keys[1:] == keys[:-1]]))

    return attempted(target, write, size)


def compute_rows(
    part: Part, begin: int, total: int, work: Work, num_keys: int, ranges: int, suffix: str, key: str, folder: Path
) -> int | HeedError:
    """In a worker: compute the result of a part."""
    target = (folder / part.name).with_suffix(suffix)

    def write() -> None:
        are_repeated = [np.zeros(part.num_rows, np.bool_) for _ in range(num_keys)]
        for kind, its in enumerate(are_repeated):
            for number in range(ranges):
                rows = np.load(_repeats_file(folder, kind, number), mmap_mode="r")
                first, end = np.searchsorted(rows, np.array([begin, begin + part.num_rows], np.uint64))
                its[(rows[first:end] - np.uint64(begin)).astype(np.int64)] = True
            its[np.load(_again_file(folder, kind, part)).astype(np.int64)] = True
        rows_of: RowWork = opened(work, key)
        rows_of.write(part, begin, total, are_repeated, target)

    return attempted(target, write, part.num_rows)


def _save(target: Path, values: NDArray[np.uint64]) -> None:
    with atomic_write(target) as file:
        np.save(file, values)
