"""Data-parallel ranks: the processes that train one model together.

They are started by `torchrun`, or by `heed train --nproc`. Each rank takes every n-th batch; the gradients of the
summed loss are added up over the ranks and divided by the target tokens of all of them, so that n ranks make the
update that one makes from n batches. Dropout is keyed by update and row, so it does not depend on the rank either.
All ranks take the same decisions at the same update, because they share what those rest on; only the first
validates and writes. Lifelines tell each that another is gone, whatever it is doing.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh

from heed.core import environment
from heed.core.errors import HeedError
from heed.training.last_words import LastWords
from heed.training.lifelines import FAILED, FINISHED, Lifelines, connected, sentence_of_loss

PATIENCE = timedelta(hours=12)
"""How long a rank waits for the others, if their lifelines hold: the first may be preparing data, or validating."""
BUCKET_ELEMENTS = 8 << 20
"""Gradients that travel in one message."""


@dataclass(frozen=True)
class Ranks:
    """This process among those that train together. Where it is alone, there is nobody to tell anything."""

    rank: int = 0
    world_size: int = 1
    lifelines: Lifelines | None = None

    @property
    def is_first(self) -> bool:
        """Whether this is the rank that validates and writes."""
        return self.rank == 0

    def sums(self, *values: float) -> list[float]:
        """Each value's sum over all ranks, the same on all of them."""
        return self._reduced(values, dist.ReduceOp.SUM)

    def highest(self, *values: float) -> list[float]:
        """Each value's maximum over all ranks, the same on all of them."""
        return self._reduced(values, dist.ReduceOp.MAX)

    def mesh(self, device: torch.device) -> DeviceMesh:
        """All ranks in a row, for weights of which each has a part."""
        return init_device_mesh(device.type, (self.world_size,))

    def wait(self) -> None:
        """Until all ranks are here."""
        self.sums(0.0)

    def add_up(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by its sum over all ranks."""
        if self.world_size == 1:
            return
        with _told_when_one_is_lost(self.lifelines):
            sent = []
            for bucket in _buckets(tensors):
                flat = torch.cat([tensor.reshape(-1) for tensor in bucket])
                sent.append((bucket, flat, dist.all_reduce(flat, async_op=True)))
            for bucket, flat, work in sent:
                work.wait()
                parts = torch.split(flat, [tensor.numel() for tensor in bucket])
                for tensor, part in zip(bucket, parts, strict=True):
                    tensor.copy_(part.view_as(tensor))

    def gathered(self, tensors: Mapping[str, Tensor]) -> list[dict[str, Tensor]]:
        """The tensors of each rank, in the order of ranks. All have the same names, shapes and types."""
        if self.world_size == 1:
            return [dict(tensors)]
        everyone: list[dict[str, Tensor]] = [{} for _ in range(self.world_size)]
        with _told_when_one_is_lost(self.lifelines):
            for name, tensor in tensors.items():
                plain = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)  # gloo knows few types
                received = [torch.empty_like(plain) for _ in everyone]
                dist.all_gather(received, plain)
                for found, content in zip(everyone, received, strict=True):
                    found[name] = content.view(tensor.dtype).view(tensor.shape)
        return everyone

    def _reduced(self, values: Sequence[float], operation: dist.ReduceOp.RedOpType) -> list[float]:
        if self.world_size == 1:
            return list(values)
        shared = torch.tensor(values, dtype=torch.float64)
        with _told_when_one_is_lost(self.lifelines):
            dist.all_reduce(shared, operation)
        return shared.tolist()


ALONE = Ranks()


@contextmanager
def joined(device: torch.device) -> Iterator[Ranks]:
    """Join the processes that were started together; alone where there is one."""
    found = environment.distributed()
    if found.world_size == 1:
        yield ALONE
        return
    with _told_when_one_is_lost():
        answering = _answer(found)
        dist.init_process_group("cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo", timeout=PATIENCE)
        del answering  # the group answers now
    ranks = Ranks(found.rank, found.world_size)
    words = LastWords()
    with words.listening():
        connections = connected(found.rank, found.world_size, found.host, ranks.sums)
        lifelines = Lifelines(connections, found.world_size, words.say)
        try:
            yield replace(ranks, lifelines=lifelines)
        except BaseException:
            words.over()
            lifelines.close(FAILED)
            if device.type == "cpu":  # at the end of the process, gloo's threads would abort it now and then
                dist.destroy_process_group()
            raise
        words.over()
        lifelines.close(FINISHED)
    dist.destroy_process_group()  # after an error the process ends, and the others may not answer any more


def _answer(found: environment.Distributed) -> object:
    """Answer the ranks that look for each other on the socket that this process inherited, if it did, while this lives.

    Without one, PyTorch opens the port of torchrun's variables.
    """
    descriptor = environment.take_listener()
    if descriptor is None:
        return None
    with socket.socket(fileno=os.dup(descriptor)) as listener:
        host, port = listener.getsockname()
    return dist.TCPStore(  # type: ignore[attr-defined]
        host, port, found.world_size, is_master=True, timeout=PATIENCE, wait_for_workers=False, multi_tenant=True,
        master_listen_fd=descriptor,
    )  # fmt: skip


@contextmanager
def _told_when_one_is_lost(lifelines: Lifelines | None = None) -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        raise HeedError(lifelines.verdict() if lifelines else sentence_of_loss()) from error


def _buckets(tensors: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """Tensors in groups of about `BUCKET_ELEMENTS`, in order."""
    bucket: list[Tensor] = []
    for tensor in tensors:
        bucket.append(tensor)
        if sum(member.numel() for member in bucket) >= BUCKET_ELEMENTS:
            yield bucket
            bucket = []
    if bucket:
        yield bucket
