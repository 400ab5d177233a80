"""Speed of training with loader workers, the processes that prepare batches.

With subword dropout, each batch is segmented in every epoch. For several numbers of loader workers, this measures the
CPU time per batch in the training process, and the time of an update when that process trains on them. The variants
take turns, so that disturbances affect all of them. Prints medians. Uses the built-in corpus and a Transformer with
two layers per side. Never asserts.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import Any

import peers

from heed.core.config import Document
from heed.core.environment import num_cpus
from heed.data.batch import Batch
from heed.execute import prepare_run
from heed.nn.device import choose_device, set_threads
from heed.planner import Planner, TrainOptions
from heed.run import Run
from heed.text.synthetic import build_corpus, write_corpus
from heed.training.trainer import Trainer

WARM_UP = 5
"""Batches until the workers have started and the thread is ahead."""


def prepared(folder: Path, given: argparse.Namespace) -> Run:
    """A run on the built-in corpus with subword dropout."""
    write_corpus(folder, build_corpus(num_train=20_000, num_valid=50, num_test=0))
    files = {f"data.{part}": str(folder / name) for part, name in {
        "src": "train.en", "tgt": "train.de", "valid_src": "valid.en", "valid_tgt": "valid.de",
    }.items()}  # fmt: skip
    keys = {
        "task": "translation", **files, "tokenizer.vocab_size": 4000, "tokenizer.dropout": given.dropout,
        "training.tokens_per_batch": given.tokens_per_batch, "model.d_model": given.d_model, "model.num_heads": 4,
        "model.d_ff": 4 * given.d_model, "model.num_encoder_layers": 2, "model.num_decoder_layers": 2,
    }  # fmt: skip
    options = TrainOptions(folder / "run", device=given.device, quiet=True)
    return prepare_run(Planner(Document(), keys, options).plan(), options.out, quiet=True)


def batches_of(run: Run, workers: int) -> Iterator[tuple[object, Batch]]:
    """The training batches, prepared by the given number of workers."""
    return run.task().loader(run.recipe.training.tokens_per_batch, 1, workers=workers).batches_from()


def cpu_of_a_batch(run: Run, workers: int, num: int) -> float:
    """Milliseconds of this process's CPU time per batch."""
    with closing(batches_of(run, workers)) as batches:  # type: ignore[type-var]
        list(islice(batches, WARM_UP))
        begin = time.process_time()
        list(islice(batches, num))
        return 1000 * (time.process_time() - begin) / num


def time_of_an_update(trainer: Trainer, run: Run, workers: int, num: int) -> float:
    """Milliseconds of wall-clock time per update."""
    with closing(batches_of(run, workers)) as batches:  # type: ignore[type-var]
        train(trainer, batches, WARM_UP)
        begin = time.perf_counter()
        train(trainer, batches, num)
        return 1000 * (time.perf_counter() - begin) / num


def train(trainer: Trainer, batches: Iterator[tuple[Any, Batch]], num: int) -> None:
    """Make the given number of updates."""
    for _, batch in islice(batches, num):
        trainer.train_step([batch.to(trainer.device)])


def trainer_of(run: Run) -> Trainer:
    """A new trainer, before its first update."""
    recipe = run.recipe
    d_model = recipe.model.model_dump()["d_model"]
    return Trainer(recipe.training, run.new_model(), run.task(), run.folder, 1, run.device, d_model, quiet=True)


def main() -> None:
    """Measure the variants in turn and print medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batches", type=int, default=20, help="batches and updates of each round")
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--tokens-per-batch", type=int, default=4096)
    parser.add_argument("--d-model", type=int, default=128)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    set_threads(given.threads)
    choose_device(given.device)
    with tempfile.TemporaryDirectory() as name:
        run = prepared(Path(name), given)
        trainer = trainer_of(run)
        found: dict[int, list[tuple[float, float]]] = {workers: [] for workers in given.workers}
        for _ in range(given.rounds):
            for workers, measured in found.items():
                cpu = cpu_of_a_batch(run, workers, given.batches)
                measured.append((cpu, time_of_an_update(trainer, run, workers, given.batches)))
    print(peers.machine_line(given.threads, []), f"; {num_cpus()} CPUs for all processes")
    rows = [[str(n), *(f"{statistics.median(one):,.1f}" for one in zip(*of, strict=True))] for n, of in found.items()]
    print(peers.table(["loader workers", "CPU of a batch in the training process, ms", "an update, ms"], rows))


if __name__ == "__main__":
    main()
