"""Training speed of a BiLSTM-CRF tagger compared with a plain loop around PyTorch's modules and pytorch-crf.

Both sides make the same updates of the same model on the same batches, in turns: nn.LSTM over packed sequences, a
convolution over the characters of each word, torchcrf.CRF, torch.optim.Adam. First the losses of equal weights are
compared. heed's updates include its moving average. Prints, never asserts.

    python benchmarks/tagging.py RUN     # a prepared run of the task tagging with model.kind = bilstm
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import peers
import torch
from torch import Tensor, nn
from torchcrf import CRF

from heed.core.environment import num_cpus
from heed.run import Run
from heed.tasks.tagging.batch import TagBatch
from heed.training.trainer import Trainer


class Plain(nn.Module):
    """The same tagger as a user of PyTorch writes it."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        reader, head = model.reader, model.head
        self.words = nn.Embedding.from_pretrained(reader.embedding.detach().clone(), freeze=False)
        self.characters = nn.Embedding.from_pretrained(
            reader.characters.weight.detach().clone(), freeze=False, padding_idx=0
        )
        self.characters.weight.data[0] = 0.0
        filters = reader.characters.filters
        size = self.characters.embedding_dim
        self.convolution = nn.Conv1d(size, filters.out_features, 3, padding=1)
        self.convolution.weight.data = filters.weight.detach().view(-1, 3, size).transpose(1, 2).contiguous()
        self.convolution.bias.data = filters.bias.detach().clone()  # type: ignore[union-attr]
        self.cases = nn.Embedding.from_pretrained(reader.cases.detach().clone(), freeze=False)
        [layer] = reader.layers
        self.lstm = nn.LSTM(layer.left_to_right.input.in_features, layer.left_to_right.hidden_size, batch_first=True,
                            bidirectional=True)  # fmt: skip
        for suffix, cell in (("", layer.left_to_right), ("_reverse", layer.right_to_left)):
            for name, linear in (("ih", cell.input), ("hh", cell.recurrent)):
                getattr(self.lstm, f"weight_{name}_l0{suffix}").data = linear.weight.detach().clone()
                getattr(self.lstm, f"bias_{name}_l0{suffix}").data = linear.bias.detach().clone()
        self.output = nn.Linear(head.output.in_features, head.output.out_features)
        self.output.load_state_dict(head.output.state_dict())
        self.crf = CRF(head.output.out_features, batch_first=True)
        self.crf.transitions.data = head.transitions.detach().clone()
        self.crf.start_transitions.data, self.crf.end_transitions.data = (
            each.detach().clone() for each in (head.begin, head.end)
        )
        self.dropout = nn.Dropout(reader.config.dropout)
        self.unknown, self.first_singleton = reader.unknown_id, reader.first_singleton

    def loss(self, batch: TagBatch) -> Tensor:
        """-log p of the tags, summed."""
        source, ids = batch.source, batch.source.ids
        if self.training:
            unknown = (torch.rand(ids.shape) < 0.5) & (ids >= self.first_singleton)
            ids = ids.masked_fill(unknown, self.unknown)
        letters = source.characters[source.forms]
        convolved = self.convolution(self.characters(letters.flatten(0, 1)).transpose(1, 2))
        convolved = convolved.masked_fill((letters.flatten(0, 1) == 0)[:, None], -torch.inf).amax(-1)
        convolved = convolved.masked_fill((letters.flatten(0, 1) == 0).all(1)[:, None], 0.0).view(*ids.shape, -1)
        x = self.dropout(torch.cat((self.words(ids), convolved, self.cases(source.cases)), -1))
        packed = nn.utils.rnn.pack_padded_sequence(x, source.mask.sum(1), batch_first=True, enforce_sorted=False)
        states, _ = nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True)
        scores = self.output(self.dropout(states))[:, : batch.tags.shape[1]]
        total: Tensor = -self.crf(scores, batch.tags, batch.source.words)
        return total


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="a prepared run of the task tagging with model.kind = bilstm")
    parser.add_argument("--updates", type=int, default=40)
    parser.add_argument("--repeats", type=int, default=5)
    given = parser.parse_args()
    torch.set_num_threads(1)
    run = Run(given.run)
    task, model = run.task(), run.new_model()
    loader = task.loader(run.recipe.training.tokens_per_batch, seed=1)
    batches: list[Any] = [batch for _, batch in itertools.islice(loader.batches_from(), given.updates)]
    plain = Plain(model)
    print(peers.machine_line(num_cpus(), ["torch", "pytorch-crf"]))
    _compare_losses(task, model, plain, batches[:5])
    trainer = Trainer(run.recipe.training, model, task, run.folder, 1, torch.device("cpu"), 0, quiet=True)
    optimizer = torch.optim.Adam(plain.parameters(), lr=run.recipe.training.lr)

    def update(batch: TagBatch) -> None:
        (plain.loss(batch) / batch.num_targets).backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(plain.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    sides: dict[str, Callable[[Any], None]] = {"heed": lambda batch: trainer.train_step([batch]), "plain": update}
    _measure(sides, batches, given.repeats)


def _compare_losses(task: Any, model: Any, plain: Plain, batches: Sequence[TagBatch]) -> None:
    """Losses without dropout, over all tag sequences, since pytorch-crf has no illegal ones."""
    plain.eval()
    legal = [name for name in dict(model.head.named_buffers()) if name.startswith("legal_")]
    kept = {name: getattr(model.head, name).clone() for name in legal}
    for name in legal:
        getattr(model.head, name).fill_(True)
    with torch.no_grad():
        ours = sum(float(task.loss(model, batch, None).loss_sum) for batch in batches)
        theirs = sum(float(plain.loss(batch)) for batch in batches)
    for name, allowed in kept.items():
        getattr(model.head, name).copy_(allowed)
    plain.train()
    print(f"losses of equal weights: heed {ours:.4f}, plain {theirs:.4f}")


def _measure(sides: dict[str, Callable[[Any], None]], batches: Sequence[TagBatch], repeats: int) -> None:
    words = sum(batch.num_targets for batch in batches)
    times: dict[str, list[float]] = {name: [] for name in sides}
    for _ in range(repeats):
        for name, update in sides.items():
            begin = time.perf_counter()
            for batch in batches:
                update(batch)
            times[name].append(time.perf_counter() - begin)
    for name, seconds in times.items():
        print(f"{name:6} {words / statistics.median(seconds):8,.0f} words/s")
    ratios = [theirs / ours for ours, theirs in zip(times["heed"], times["plain"], strict=True)]
    print(f"heed is {statistics.median(ratios):.2f} times as fast ({min(ratios):.2f} to {max(ratios):.2f})")


if __name__ == "__main__":
    main()
