"""Data-parallel ranks: the processes that train one model together.

`torchrun` or `heed train --nproc` starts them. Each rank takes every n-th batch. The gradients of the summed loss are
added over all ranks and divided by the number of their target tokens, so that n ranks make the same update as one rank
with n batches. Dropout is keyed by update and row, so it does not depend on the rank. Ranks exchange the values that
decisions depend on, so all decide alike at the same update; only rank 0 validates and writes. Lifelines report the loss
of a rank to the others, whatever they are doing.
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

from heed.core import environment
from heed.core.errors import HeedError
from heed.training.last_words import LastWords
from heed.training.lifelines import FAILED, FINISHED, Lifelines, connected, sentence_of_loss

PATIENCE = timedelta(hours=12)
"""Longest time that a rank waits for the others while their lifelines hold: rank 0 may prepare data or validate."""
BUCKET_ELEMENTS = 8 << 20
"""Elements of gradients in one message."""


@dataclass(frozen=True)
class Ranks:
    """This process and the number of processes. With one process, all methods do nothing or return their input."""

    rank: int = 0
    world_size: int = 1
    lifelines: Lifelines | None = None

    @property
    def is_first(self) -> bool:
        """Whether this is the rank that validates and writes."""
        return self.rank == 0

    def sums(self, *values: float) -> list[float]:
        """The sum of each value over all ranks, on every rank."""
        return self._reduced(values, dist.ReduceOp.SUM)

    def highest(self, *values: float) -> list[float]:
        """The maximum of each value over all ranks, on every rank."""
        return self._reduced(values, dist.ReduceOp.MAX)

    def wait(self) -> None:
        """Wait until all ranks call this."""
        self.sums(0.0)

    def add_up(self, tensors: Sequence[Tensor]) -> None:
        """Replace each tensor by its sum over all ranks."""
        if self.world_size == 1:
            return
        with _lost_rank_errors(self.lifelines):
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
        """The tensors of each rank, in the order of ranks. Names, shapes and dtypes must be equal on all of them."""
        if self.world_size == 1:
            return [dict(tensors)]
        all_tensors: list[dict[str, Tensor]] = [{} for _ in range(self.world_size)]
        with _lost_rank_errors(self.lifelines):
            for name, tensor in tensors.items():
                plain = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)  # gloo supports few dtypes
                received = [torch.empty_like(plain) for _ in all_tensors]
                dist.all_gather(received, plain)
                for of_rank, content in zip(all_tensors, received, strict=True):
                    of_rank[name] = content.view(tensor.dtype).view(tensor.shape)
        return all_tensors

    def _reduced(self, values: Sequence[float], operation: dist.ReduceOp.RedOpType) -> list[float]:
        if self.world_size == 1:
            return list(values)
        shared = torch.tensor(values, dtype=torch.float64)
        with _lost_rank_errors(self.lifelines):
            dist.all_reduce(shared, operation)
        return shared.tolist()


ALONE = Ranks()


@contextmanager
def joined(device: torch.device) -> Iterator[Ranks]:
    """Join the process group that the environment describes; `ALONE` without one."""
    launched = environment.distributed()
    if launched.world_size == 1:
        yield ALONE
        return
    with _lost_rank_errors():
        store = _rendezvous_store(launched)
        dist.init_process_group("cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo", timeout=PATIENCE)
        del store  # the group has its own
    ranks = Ranks(launched.rank, launched.world_size)
    words = LastWords()
    with words.listening():
        connections = connected(launched.rank, launched.world_size, launched.host, ranks.sums)
        lifelines = Lifelines(connections, launched.world_size, words.say)
        try:
            yield replace(ranks, lifelines=lifelines)
        except BaseException:
            words.over()
            lifelines.close(FAILED)
            if device.type == "cpu":  # otherwise gloo's threads sometimes abort the process at its end
                dist.destroy_process_group()
            raise
        words.over()
        lifelines.close(FINISHED)
    dist.destroy_process_group()  # not after an error: the other ranks may no longer respond


def _rendezvous_store(launched: environment.Distributed) -> object:
    """Serve the rendezvous on the socket that this process inherited, for the lifetime of the returned object.

    Without such a socket the result is None, and PyTorch opens the port of torchrun's variables.
    """
    descriptor = environment.take_listener()
    if descriptor is None:
        return None
    with socket.socket(fileno=os.dup(descriptor)) as listener:
        host, port = listener.getsockname()
    return dist.TCPStore(  # type: ignore[attr-defined]
        host, port, launched.world_size, is_master=True, timeout=PATIENCE, wait_for_workers=False, multi_tenant=True,
        master_listen_fd=descriptor,
    )  # fmt: skip


@contextmanager
def _lost_rank_errors(lifelines: Lifelines | None = None) -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        raise HeedError(lifelines.verdict() if lifelines else sentence_of_loss()) from error


def _buckets(tensors: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """Groups of consecutive tensors with about `BUCKET_ELEMENTS` elements."""
    bucket: list[Tensor] = []
    for tensor in tensors:
        bucket.append(tensor)
        if sum(member.numel() for member in bucket) >= BUCKET_ELEMENTS:
            yield bucket
            bucket = []
    if bucket:
        yield bucket
