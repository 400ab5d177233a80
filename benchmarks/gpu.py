"""Speed of updates by size of model and batch, and of translating by number of sentences at once, on a GPU or a CPU.

Updates are those of heed's trainer on batches of Multi30k, all of which it has met twice before, so that a GPU replays
what it has recorded. Translations are those of `--run`, searched by PyTorch. Prints, never asserts.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import peers
import torch
from training import SEED, SMOOTHING, OnlyALoss, batches_of, padded

import heed
from heed.core.environment import num_cpus
from heed.data.batch import Batch
from heed.decoding.options import SearchOptions
from heed.models.transformer import Transformer, TransformerConfig
from heed.nn.contract import Vocabularies
from heed.nn.device import choose_device, set_threads, synchronise
from heed.training.config import TrainingConfig
from heed.training.trainer import Trainer

MODELS = {
    "128/256, 4 + 4": TransformerConfig(
        d_model=128, d_ff=256, num_heads=4, num_encoder_layers=4, num_decoder_layers=4, dropout=0.2, norm="pre"
    ),
    "512/2,048, 6 + 6": TransformerConfig(
        d_model=512, d_ff=2048, num_heads=8, num_encoder_layers=6, num_decoder_layers=6, dropout=0.1,
        attention_dropout=0.1,
    ),
}  # fmt: skip
TEST = "test_2016_flickr"
PRECISIONS = ("float32", "bfloat16")


def seconds_of(work: Callable[[], object], device: torch.device) -> float:
    """Time of some work, which a GPU has finished."""
    synchronise(device)
    begin = time.perf_counter()
    work()
    synchronise(device)
    return time.perf_counter() - begin


def trainer_of(config: TransformerConfig, vocab_size: int, precision: str, device: torch.device) -> Trainer:
    """A trainer of a new model, which writes nothing."""
    torch.manual_seed(SEED)
    model = Transformer(config, Vocabularies(vocab_size, vocab_size))
    training = TrainingConfig(precision=precision, label_smoothing=SMOOTHING)  # type: ignore[arg-type]
    nowhere = Path(tempfile.gettempdir())
    task: Any = OnlyALoss(training.smoothing)
    return Trainer(training, model, task, nowhere, SEED, device, config.d_model, quiet=True)


def update_rows(data: Path, sizes: list[int], number: int, device: torch.device) -> list[list[str]]:
    """Updates and target tokens a second, for each size of batch, model and precision."""
    rows = []
    for tokens in sizes:
        ids, vocab_size, _ = batches_of(data, tokens, number)
        batches = [padded(each).to(device) for each in ids]
        num_targets = sum(batch.num_tokens for batch in batches)
        for name, config in MODELS.items():
            for precision in PRECISIONS:
                trainer = trainer_of(config, vocab_size, precision, device)
                train_on(trainer, batches * 2)
                seconds = seconds_of(lambda: train_on(trainer, batches), device)  # noqa: B023 - called at once
                speeds = f"{number / seconds:.2f}", f"{num_targets / seconds:,.0f}"
                rows.append([f"{name}, {tokens:,} tokens, {precision}", *speeds])
    return rows


def train_on(trainer: Trainer, batches: list[Batch]) -> None:
    """One update for each batch."""
    for batch in batches:
        trainer.train_step([batch])


def translation_rows(run: Path, lines: list[str], device: torch.device) -> list[list[str]]:
    """Sentences a second with few and with many at once."""
    rows = []
    for precision in PRECISIONS:
        translator = heed.load(run, device=str(device), precision=precision).run.predictor.translator
        for beam in (1, 5):
            speeds = []
            for batch_size in (8, 64):
                options = SearchOptions(
                    beam_size=beam, batch_size=batch_size, length_norm="mean", length_penalty=1.0, guard=False
                )
                translator.translate(lines[:200], options)
                seconds = seconds_of(lambda: translator.translate(lines, options), device)  # noqa: B023
                speeds.append(f"{len(lines) / seconds:,.0f}")
            rows.append([f"beam {beam}, {precision}", *speeds])
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of Multi30k's raw .gz files")
    parser.add_argument("--run", type=Path, help="a translator of Multi30k; without one, only updates are measured")
    parser.add_argument("--device", default="cuda", help="cuda (default), cuda:N or cpu")
    parser.add_argument("--tokens", type=int, nargs="+", default=[4096, 16384], help="sizes of batches")
    parser.add_argument("--updates", type=int, default=10, help="timed updates of each variant (default 10)")
    given = parser.parse_args()
    device, data = choose_device(given.device), peers.multi30k(given.data)
    set_threads(num_cpus())
    print(peers.machine_line(num_cpus(), [], device), flush=True)
    header = ["update", "updates a second", "target tokens a second"]
    print(f"\n{peers.table(header, update_rows(data, given.tokens, given.updates, device))}", flush=True)
    if given.run is not None:
        header = [
            "sentences a second (a GPU: eight times as many at once)",
            "--batch-size 8",
            "--batch-size 64",
        ]
        lines, _ = peers.both_sides(data, TEST)
        print(f"\n{peers.table(header, translation_rows(given.run, lines, device))}")


if __name__ == "__main__":
    main()
