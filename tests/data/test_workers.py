"""Loader workers: the same batches as without workers, and one clear error when a worker ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heed.core.errors import HeedError
from heed.data.batch import Batch
from heed.data.loader import BatchLoader
from heed.data.schedule import Position
from heed.data.store import TokenStore, write_store
from heed.data.subword_dropout import SubwordDropout
from heed.data.workers import Worker, _packed, _unpacked, running
from heed.tasks.generation import text_batch
from heed.text.tokenizers import TokenizerConfig, train_tokenizer

NUM_ROWS = 50


@pytest.fixture(scope="module")
def dropout() -> SubwordDropout:
    """Of a tokenizer with many merges and a tag, for both sides."""
    words = [f"{a}{b}{c}" for a in "bdgklm" for b in "aeiou" for c in ("st", "nd", "")]
    config = TokenizerConfig(vocab_size=400, min_frequency=1)
    tokenizer = train_tokenizer(config, [" ".join(words[i:]) for i in range(len(words))], tags=["2de"])
    return SubwordDropout({"src": tokenizer, "tgt": tokenizer}, 0.3, seed=7)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory, dropout: SubwordDropout) -> TokenStore:
    """Pairs of random words, every third with a tag."""
    tokenizer = dropout.tokenizers["src"]
    random = np.random.default_rng(0)
    words = ["best", "gand", "lust", "mond", "kind", "dost", "bela"]
    lines = [" ".join(random.choice(words, random.integers(1, 8))) for _ in range(2 * NUM_ROWS)]
    ids = tokenizer.encode(lines)
    tag = tokenizer.vocabulary.tag_ids["2de"]
    rows = [([tag] * (i % 3 == 0) + ids[2 * i], ids[2 * i + 1]) for i in range(NUM_ROWS)]
    size = len(tokenizer.vocabulary)
    return write_store(tmp_path_factory.mktemp("workers") / "store", ("src", "tgt"), rows, (size, size), {})


def loader(store: TokenStore, dropout: SubwordDropout | None, **options: Any) -> BatchLoader[Batch]:
    return BatchLoader(store, text_batch, tokens_per_batch=60, seed=3, subword_dropout=dropout, **options)


def comparable(item: tuple[Position, Batch]) -> tuple[Any, ...]:
    position, batch = item
    assert batch.source is not None
    tensors = (batch.rows, batch.source.ids, batch.source.mask, batch.tgt_in, batch.tgt_out, batch.tgt_mask)
    return position, [(tensor.dtype, tensor.tolist()) for tensor in tensors], batch.num_tokens, batch.num_src_tokens


def take(loader: BatchLoader, num: int, start: Position | None = None) -> list[tuple[Any, ...]]:
    with closing(loader.batches_from(start or Position())) as batches:
        return [comparable(item) for item in islice(batches, num)]


@pytest.mark.parametrize(("workers", "world_size"), [(1, 1), (3, 1), (2, 2)])
def test_any_number_of_workers_makes_the_same_batches_with_each_row_once_an_epoch(
    store: TokenStore, dropout: SubwordDropout, workers: int, world_size: int
) -> None:
    """Over more than an epoch, then from the middle of it."""
    rows: dict[int, list[int]] = {}
    num_batches = loader(store, dropout).num_batches(0)
    steps = num_batches // world_size + 3
    for rank in range(world_size):
        of_rank = {"rank": rank, "world_size": world_size}
        whole = take(loader(store, dropout, prefetch=0, **of_rank), steps)
        assert take(loader(store, dropout, workers=workers, prefetch=workers % 3, **of_rank), steps) == whole
        middle = steps // 2
        assert take(loader(store, dropout, workers=workers, **of_rank), 3, whole[middle][0]) == whole[middle + 1 :][:3]
        rows |= {step * world_size + rank: item[1][0][1] for step, item in enumerate(whole)}
    assert sorted(row for index in range(num_batches) for row in rows[index]) == list(range(NUM_ROWS))


def test_workers_also_work_without_subword_dropout_and_without_sources(tmp_path: Path) -> None:
    store = write_store(tmp_path / "store", ["tgt"], [([5] * (i % 4),) for i in range(40)], [70_000], {})
    items = []
    for workers in (0, 2):
        with closing(loader(store, None, workers=workers).batches_from()) as batches:
            items.append([(at, batch.rows.tolist(), batch.tgt_out.tolist()) for at, batch in islice(batches, 9)])
            assert batch_of(batches).source is None
    assert items[0] == items[1]


def batch_of(batches: Iterator[tuple[Position, Batch]]) -> Batch:
    return next(batches)[1]


def test_a_message_preserves_ids() -> None:
    ids = {"src": [[1, 2], [], np.array([3], dtype=np.uint16)], "tgt": [[], [70_000], [2**31 - 1, 0]]}
    found = _unpacked(_packed(ids), ("src", "tgt"), 3)
    assert {side: [row.tolist() for row in rows] for side, rows in found.items()} == {  # type: ignore[union-attr]
        "src": [[1, 2], [], [3]], "tgt": [[], [70_000], [2**31 - 1, 0]],
    }  # fmt: skip


def test_a_source_that_dropout_would_make_too_long_for_the_model_keeps_its_pieces(
    store: TokenStore, dropout: SubwordDropout
) -> None:
    rows = [(side, store.row(side, row), row) for side in ("src", "tgt") for row in range(NUM_ROWS)]
    free = [dropout(side, ids, 0, row) for side, ids, row in rows]
    limited = SubwordDropout(dropout.tokenizers, dropout.p, dropout.seed, longest_source=8)
    too_long = [side == "src" and len(pieces) > 8 for pieces, (side, _, _) in zip(free, rows, strict=True)]
    assert 0 < sum(too_long) < NUM_ROWS and any(len(pieces) > 8 for pieces in free[NUM_ROWS:])
    for again in (limited, SubwordDropout.from_json(limited.to_json())):
        found = [again(side, ids, 0, row) for side, ids, row in rows]
        assert found == [
            ids.tolist() if kept else pieces for kept, pieces, (_, ids, _) in zip(too_long, free, rows, strict=True)
        ]


def test_subword_dropout_is_restored_from_its_json(store: TokenStore, dropout: SubwordDropout) -> None:
    again = SubwordDropout.from_json(dropout.to_json())
    assert again.tokenizers["src"] is again.tokenizers["tgt"]
    for row in range(9):
        ids = store.row("src", row)
        assert again("src", ids, 1, row) == dropout("src", ids, 1, row)
        assert (dropout("src", ids, 1, row)[0] == ids[0]) or row % 3


def pids(workers: list[Worker]) -> list[int]:
    return [worker._process.pid for worker in workers]


def test_a_killed_worker_is_reported_in_one_line(store: TokenStore, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Worker] = []
    begun = Worker.__init__

    def noted(self: Worker, *arguments: Any) -> None:
        begun(self, *arguments)
        started.append(self)

    monkeypatch.setattr(Worker, "__init__", noted)
    with closing(loader(store, None, workers=2).batches_from()) as batches:
        next(batches)
        os.kill(pids(started)[1], signal.SIGKILL)
        with pytest.raises(HeedError) as caught:
            for _ in range(10):
                next(batches)
    message = str(caught.value)
    assert message.startswith("a loader worker ended by SIGKILL. ")
    assert "\n" not in message
    assert not any(map(is_alive, pids(started)))


def test_the_error_of_a_worker_is_reported(store: TokenStore, dropout: SubwordDropout) -> None:
    with running(1, store, dropout) as [worker]:
        worker.begin(0, np.array([0, NUM_ROWS]))
        with pytest.raises(HeedError, match="a loader worker failed: IndexError: range object index"):
            worker.finish()
        worker.begin(0, np.array([0]))
        assert len(worker.finish()["tgt"]) == 1


def test_a_worker_that_cannot_start_is_reported(tmp_path: Path, store: TokenStore) -> None:
    gone = TokenStore(tmp_path / "gone", store.manifest, {})
    with running(1, gone, None) as [worker], pytest.raises(HeedError, match="a loader worker ended with exit code 1"):
        worker.finish()


def test_workers_end_with_the_iterator_and_ignore_signals(store: TokenStore) -> None:
    with running(2, store, None) as workers:
        found = pids(workers)
        for worker in workers:
            worker.begin(0, np.array([1]))
            worker.finish()
        for pid in found:
            os.kill(pid, signal.SIGTERM)
            os.kill(pid, signal.SIGINT)
        for worker in workers:
            worker.begin(0, np.array([2]))
            assert len(worker.finish()["tgt"]) == 1
    assert not any(map(is_alive, found))


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


PARENT = """
import sys, time
from pathlib import Path
import numpy as np
from heed.data.store import TokenStore
from heed.data.workers import running
with running(2, TokenStore.open(Path(sys.argv[1])), None) as workers:
    for worker in workers:
        worker.begin(0, np.array([0]))
        worker.finish()
    workers[0].begin(0, np.zeros(100_000, dtype=np.int64))  # more than a pipe holds
    print(*(worker._process.pid for worker in workers), flush=True)
    time.sleep(60)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
def test_workers_end_silently_when_the_training_process_is_killed(store: TokenStore) -> None:
    program = [sys.executable, "-c", PARENT, store.folder]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        assert parent.stderr is not None
        found = [*map(int, parent.stdout.readline().split())]
        assert len(found) == 2
        assert all(map(is_alive, found))
        parent.kill()
        stderr = parent.stderr.read()  # to its end, when the workers have closed it too
    deadline = time.monotonic() + 60
    while any(map(is_running, found)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(map(is_running, found))
    assert stderr == ""


def is_running(pid: int) -> bool:
    """Alive and not a zombie, as an orphan is until it is waited for."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_a_worker_does_not_load_torch() -> None:
    program = "import sys, heed.data.workers; print('torch' in sys.modules)"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout == "False\n"
