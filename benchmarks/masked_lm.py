"""Training of a masked language model: heed and a plain loop around `transformers`, on the same text and machine.

    python benchmarks/masked_lm.py TEXT --updates 12 --rounds 3

Both train a BERT of equal sizes from random weights with Adam, dropout 0.1 and 15 % masks, with the same number of rows
in a batch on average. The plain loop pads random rows to the longest of their batch, masks them as
`DataCollatorForLanguageModeling` does, and computes in the better of float32 and bfloat16 autocast. The tools take
turns, and the medians of real tokens per second are compared.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from transformers import BertConfig, BertForMaskedLM

import heed
from heed.core.config import Document
from heed.execute import prepare_run
from heed.export.bert import bert_config
from heed.planner import Planner, TrainOptions
from heed.run import Run
from heed.training.trainer import Trainer

KEYS = {
    "task": "masked-language-model", "model.norm": "post", "model.positions": "learned", "model.max_len": 128,
    "model.attention_dropout": 0.0, "training.max_minutes": 0.0,
}  # fmt: skip


def plain_batches(rows: list[list[int]], size: int, mask_id: int) -> Iterator[tuple[torch.Tensor, ...]]:
    """Random rows, padded to the longest, with masks and labels."""
    while True:
        chosen = [[1, *rows[i], 2] for i in torch.randint(len(rows), (size,)).tolist()]
        longest = max(map(len, chosen))
        ids = torch.tensor([row + [0] * (longest - len(row)) for row in chosen])
        labels, die = torch.full_like(ids, -100), torch.rand(ids.shape)
        masked = (torch.rand(ids.shape) < 0.15) & (ids > 3)
        labels[masked] = ids[masked]
        inputs = torch.where(masked & (die < 0.8), mask_id, ids)
        inputs = torch.where(masked & (die > 0.9), torch.randint(4, mask_id, ids.shape), inputs)
        yield inputs, (ids != 0), labels


def plain_round(model: Any, optimizer: Any, batches: Iterator[Any], updates: int, bfloat16: bool) -> float:
    """Real tokens per second of the plain loop."""
    begin, tokens = time.perf_counter(), 0
    for _ in range(updates):
        ids, mask, labels = next(batches)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=bfloat16):
            loss = model(input_ids=ids, attention_mask=mask, labels=labels).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        tokens += int(mask.sum())
    return tokens / (time.perf_counter() - begin)


def heed_round(trainer: Trainer, batches: Iterator[Any], updates: int) -> float:
    """Real tokens per second of heed."""
    begin, tokens = time.perf_counter(), 0
    for _ in range(updates):
        _, batch = next(batches)
        trainer.train_step([batch])
        tokens += batch.num_real
    return tokens / (time.perf_counter() - begin)


def prepared(text: Path, folder: Path) -> Run:
    """A run folder with the data, as `heed train` makes it without a configuration."""
    options = TrainOptions(folder, device="cpu", quiet=True)
    return prepare_run(Planner(Document(), {**KEYS, "data.text": str(text)}, options).plan(), folder, quiet=True)


def main() -> None:
    """Print the medians and their ratio."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("text", type=Path)
    parser.add_argument("--updates", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=0)
    options = parser.parse_args()
    if options.threads:
        torch.set_num_threads(options.threads)
    with tempfile.TemporaryDirectory() as folder:
        run = prepared(options.text, Path(folder) / "run")
        recipe, task = run.recipe, run.task()
        trainer = Trainer(recipe.training, run.new_model(), task, run.folder, 1, run.device, 0, quiet=True)
        ours = task.loader(recipe.training.tokens_per_batch, 1).batches_from()
        rows = [task.store.row("src", index).tolist() for index in range(len(task.store))]
        size = max(1, round(recipe.training.tokens_per_batch * len(rows) / sum(len(row) + 1 for row in rows)))
        theirs = plain_batches(rows, size, run.vocabularies.src_size - 1)
        model = BertForMaskedLM(BertConfig(**bert_config(recipe.model, recipe.head, run.vocabularies))).train()
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
        speeds: dict[str, list[float]] = {}
        for number in range(options.rounds + 1):
            results = {
                "heed": heed_round(trainer, ours, options.updates),
                "transformers, float32": plain_round(model, optimizer, theirs, options.updates, False),
                "transformers, bfloat16": plain_round(model, optimizer, theirs, options.updates, True),
            }
            for name, value in results.items() if number else ():  # the first round warms up
                speeds.setdefault(name, []).append(value)
        ours.close()
    medians = {name: statistics.median(values) for name, values in speeds.items()}
    print(f"heed {heed.__version__}, {recipe.model.summary()}, {recipe.training.precision}")
    for name, value in medians.items():
        print(f"{name:24} {value:10,.0f} tokens/s")
    best = max(value for name, value in medians.items() if name != "heed")
    print(f"ratio {medians['heed'] / best:.2f}")


if __name__ == "__main__":
    main()
