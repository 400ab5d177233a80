"""Training speed of heed compared with `transformers`' Marian in a plain loop.

Multi30k English to German with heed's joint byte-level BPE. The same batches, padded alike, go to both sides. The
model is 256/1024, 4 heads, 3 + 3 layers, dropout 0.1 (also on attention weights), label smoothing 0.1, Adam, gradients
clipped at 1. heed's step is that of its trainer; the peer's is the usual training loop. On a GPU batches are copied
there before, and a step ends when the GPU has finished. Prints, never asserts.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import peers
import torch
import torch.nn.functional as F

from heed.core.environment import num_cpus
from heed.data.batch import Batch, collate, plan_epoch
from heed.models.transformer import Transformer
from heed.nn.contract import Smoothing, State, Vocabularies
from heed.nn.device import choose_device, set_threads, synchronise
from heed.nn.dropout_keys import DropoutKeys
from heed.tasks.generation import chain_rule_loss
from heed.tasks.task import Loss
from heed.text.tokenizers import TokenizerConfig, train_tokenizer
from heed.text.vocabulary import Vocabulary
from heed.training.config import TrainingConfig
from heed.training.trainer import Trainer

SEED = 1
SMOOTHING = 0.1
Rows = tuple[list[list[int]], list[list[int]], list[int]]
Variant = tuple[str, str, str]
"""(side, precision, other options)."""
Job = tuple[tuple[str, str], int]
"""((precision, other options), number of the batch)."""
Builder = Callable[..., Callable[[Job], float]]

OURS = [("float32", "no average"), ("bfloat16", "no average"), ("float32", "EMA"), ("bfloat16", "EMA")]
THEIRS = [("float32", "Adam"), ("float32", "fused Adam"), ("bfloat16", "Adam"), ("bfloat16", "fused Adam")]


def batches_of(folder: Path, tokens_per_batch: int, num_batches: int) -> tuple[list[Rows], int, str]:
    """The first batches of an epoch as ids, the size of the vocabulary, and a line about the data."""
    src, tgt = peers.both_sides(folder, "train")
    tokenizer = train_tokenizer(TokenizerConfig(vocab_size=peers.VOCAB_SIZE), [*src, *tgt])
    sides = tokenizer.encode(src), tokenizer.encode(tgt)
    lengths = [torch.tensor([len(ids) + 1 for ids in side]).numpy() for side in sides]
    plan = plan_epoch(lengths, tokens_per_batch, SEED, epoch=0)
    taken = plan[:num_batches]
    real = sum(int(side.sum()) for side in lengths)
    positions = sum(len(rows) * int(side[rows].max()) for rows in plan for side in lengths)
    about = (
        f"{len(src):,} pairs, {len(tokenizer.vocabulary):,} pieces, {len(plan)} batches an epoch, "
        f"padding {1 - real / positions:.1%} of both sides; timed: {num_batches} batches"
    )
    picked = [([sides[0][i] for i in rows], [sides[1][i] for i in rows], rows.tolist()) for rows in taken]
    return picked, len(tokenizer.vocabulary), about


def padded(rows: Rows) -> Batch:
    """Padded id tensors, the same for both sides."""
    return collate(*rows, Vocabulary.bos_id, Vocabulary.eos_id, Vocabulary.pad_id)


class OnlyALoss:
    """The part of a task that a training step needs."""

    replayable = True

    def __init__(self, smoothing: Smoothing) -> None:
        self.smoothing = smoothing

    def loss(self, model: Any, batch: Batch, dropout_keys: DropoutKeys | None, carried: State | None = None) -> Loss:
        return chain_rule_loss(model, batch, self.smoothing, dropout_keys, carried)


def heed_steps(
    rows: Sequence[Rows], vocab_size: int, threads: int, device: torch.device
) -> Callable[[Job], float]:  # fmt: skip
    """Seconds of one update by heed's trainer."""
    set_threads(threads)
    batches = [padded(one).to(device) for one in rows]
    trainers: dict[tuple[str, str], Trainer] = {}

    def make(precision: str, average: str) -> Trainer:
        torch.manual_seed(SEED)
        model = Transformer(peers.MODEL, Vocabularies(vocab_size, vocab_size))
        config = TrainingConfig(
            precision=precision, average="ema" if average == "EMA" else "none", label_smoothing=SMOOTHING
        )
        nowhere = Path(tempfile.gettempdir())  # a step writes nothing
        return Trainer(
            config, model, OnlyALoss(config.smoothing), nowhere, SEED, device, peers.MODEL.d_model, quiet=True
        )

    def step(job: Job) -> float:
        variant, number = job
        trainer = trainers.get(variant) or trainers.setdefault(variant, make(*variant))
        synchronise(device)
        begin = time.perf_counter()
        trainer.train_step([batches[number]])
        synchronise(device)
        return time.perf_counter() - begin

    return step


class PlainLoop:
    """A Marian model with Adam in a plain loop."""

    def __init__(self, vocab_size: int, precision: str, optimizer: str, attention: str, device: torch.device) -> None:
        torch.manual_seed(SEED)
        self.device = device
        self.model = peers.marian(peers.MODEL, vocab_size, peers.MODEL.dropout, peers.MODEL.attention_dropout)
        self.model.to(device)
        self.model.set_attn_implementation(attention)
        self.model.train()
        fused = optimizer == "fused Adam" or None
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3, betas=(0.9, 0.98), fused=fused)
        self.half = precision == "bfloat16"

    def step(self, batch: Batch) -> None:
        """One update."""
        with torch.autocast(self.device.type, torch.bfloat16) if self.half else contextlib.nullcontext():
            logits = marian_logits(self.model, batch)
        smoothed_loss(logits, batch).backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad()


def marian_logits(model: Any, batch: Batch) -> torch.Tensor:
    """Teacher forcing."""
    assert batch.source is not None
    return model(
        input_ids=batch.source.ids, attention_mask=batch.source.mask, decoder_input_ids=batch.tgt_in, use_cache=False
    ).logits


def smoothed_loss(logits: torch.Tensor, batch: Batch) -> torch.Tensor:
    """PyTorch's mean over the real target tokens."""
    flat, truth = logits.flatten(0, 1).float(), batch.tgt_out.flatten()
    return F.cross_entropy(flat, truth, ignore_index=Vocabulary.pad_id, label_smoothing=SMOOTHING)


def marian_steps(
    rows: Sequence[Rows], vocab_size: int, threads: int, device: torch.device, attention: str
) -> Callable[[Job], float]:  # fmt: skip
    """Seconds of one update of the plain loop."""
    torch.set_num_threads(threads)
    batches = [padded(one).to(device) for one in rows]
    loops: dict[tuple[str, str], PlainLoop] = {}

    def step(job: Job) -> float:
        variant, number = job
        loop = loops.get(variant) or loops.setdefault(variant, PlainLoop(vocab_size, *variant, attention, device))
        synchronise(device)
        begin = time.perf_counter()
        loop.step(batches[number])
        synchronise(device)
        return time.perf_counter() - begin

    return step


def same_loss(rows: Rows, vocab_size: int) -> str:
    """heed's loss and Marian's on one batch with the same weights and no dropout."""
    torch.manual_seed(SEED)
    model, batch = Transformer(peers.MODEL, Vocabularies(vocab_size, vocab_size)), padded(rows)
    torch.nn.init.normal_(model.head.bias)
    with torch.no_grad():
        loss_sum, _, _ = chain_rule_loss(model, batch, Smoothing(SMOOTHING), dropout_keys=None)
        peer = peers.marian(peers.MODEL, vocab_size, 0.0, 0.0).eval()
        peers.give_weights_to_marian(model, peer)
        ours, theirs = float(loss_sum) / batch.num_tokens, float(smoothed_loss(marian_logits(peer, batch), batch))
    verdict = "equal to 1e-4" if abs(ours - theirs) < 1e-4 else "NOT EQUAL"
    return f"Loss with the same weights, no dropout, float32: heed {ours:.6f}, Marian {theirs:.6f}: {verdict}."


def start(builders: dict[str, Builder], *arguments: Any) -> dict[Variant, peers.Side]:
    """The processes of the variants, heed's and the peer's in turn; only the precisions share one.

    oneDNN generates code for the shape of a batch, which takes about a tenth of a step in bfloat16. In a shared
    process, the next variant would get that for free, whereas in a real training the shape of most batches is new or
    forgotten.
    """
    shared: dict[tuple[str, str], peers.Side] = {}
    processes: dict[Variant, peers.Side] = {}
    for pair in zip(OURS, THEIRS, strict=True):
        for side, (precision, option) in zip(("heed", "transformers"), pair, strict=True):
            if side in builders:
                if (side, option) not in shared:
                    shared[side, option] = peers.Side(builders[side], *arguments)
                processes[side, precision, option] = shared[side, option]
    return processes


def compare(
    processes: dict[Variant, peers.Side], batches: Sequence[Rows], warm_up: int, passes: int
) -> dict[Variant, list[float]]:  # fmt: skip
    """Target tokens per second of each variant on each batch after the warm-up, in the last of the passes."""
    variants = list(processes)
    speeds: dict[Variant, list[float]] = {variant: [] for variant in sorted(variants)}
    for turn in range(passes * len(batches)):
        number = turn % len(batches)
        tgt = batches[number][1]
        num_tokens = sum(len(ids) + 1 for ids in tgt)
        for variant in (
            variants if turn % 2 == 0 else variants[::-1]
        ):  # vary the order, so that no variant always follows the same one
            seconds = processes[variant].run((variant[1:], number))
            if number >= warm_up and turn >= (passes - 1) * len(batches):
                speeds[variant].append(num_tokens / seconds)
    return speeds


def report(speeds: dict[Variant, list[float]]) -> str:
    """The table and the ratios."""
    middle = {variant: statistics.median(values) for variant, values in speeds.items()}
    rows = [
        [f"{side} {precision}, {more}", f"{middle[side, precision, more]:,.0f}", f"{min(v):,.0f} to {max(v):,.0f}"]
        for (side, precision, more), v in speeds.items()
    ]
    lines = [peers.table(["training step", "target tokens/s, median", "range"], rows), ""]

    def best(side: str, precision: str = "") -> Variant:
        able = [v for v in speeds if v[0] == side and v[2] != "EMA" and v[1].startswith(precision)]
        return max(able, key=lambda v: middle[v])

    ratios = []
    if any(variant[0] == "transformers" for variant in speeds):
        for title, precision in (
            ("each in its better precision", ""),
            ("float32", "float32"),
            ("bfloat16", "bfloat16"),
        ):
            ours, theirs = best("heed", precision), best("transformers", precision)
            what = f"heed / transformers, {title}: {ours[1]} / {theirs[1]} with {theirs[2]}"
            ratios.append([what, peers.ratio(speeds[ours], speeds[theirs])])
    for precision in ("float32", "bfloat16"):
        both = [speeds["heed", precision, option] for option in ("EMA", "no average")]
        ratios.append([f"heed {precision}, with the moving average of the weights / without", peers.ratio(*both)])
    return "\n".join([*lines, peers.table(["of the same batches", "ratio, median (range)"], ratios)])


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of Multi30k's raw .gz files")
    parser.add_argument("--steps", type=int, default=12, help="timed updates of each variant (default 12)")
    parser.add_argument("--warm-up", type=int, default=3, help="warm-up updates (default 3)")
    parser.add_argument("--tokens", type=int, default=4096, help="padded tokens of a batch, longer side (default 4096)")
    parser.add_argument("--threads", type=int, default=num_cpus(), help="CPU threads (default: all cores)")
    parser.add_argument("--peer-attention", choices=("sdpa", "eager"), default="sdpa", help="Marian's (default sdpa)")
    parser.add_argument("--device", default="cpu", help="cpu (default), cuda or cuda:N")
    given = parser.parse_args()
    device = choose_device(given.device)
    folder, there = peers.multi30k(given.data), peers.installed("transformers")
    torch.set_num_threads(given.threads)
    print(peers.machine_line(given.threads, ["transformers"] if there else [], device), flush=True)
    rows, vocab_size, about = batches_of(folder, given.tokens, given.warm_up + given.steps)
    print(f"Data: {about}, {given.warm_up} of them to warm up", flush=True)
    builders: dict[str, Builder] = {"heed": heed_steps}
    if there:
        print(same_loss(rows[0], vocab_size), flush=True)
        builders["transformers"] = partial(marian_steps, attention=given.peer_attention)
    passes = 3 if device.type == "cuda" else 1  # with the third batch of a shape, heed replays what it has recorded
    processes = start(builders, rows, vocab_size, given.threads, device)
    print(f"\n{report(compare(processes, rows, given.warm_up, passes))}")


if __name__ == "__main__":
    main()
