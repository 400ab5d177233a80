"""Time of self-attention, a recurrence and a convolution by length, and the length at which attention becomes dearer.

    python benchmarks/crossover.py --size 128

The layers are heed's, from D to D features: softmax(H Hᵀ) H, multi-head attention with its projections, SSRU, a vanilla
RNN and a convolution of three positions, for one text, without gradients. By operations, self-attention without
projections and the RNN are equal at n = D (tests/claims/test_complexity.py); by time a recurrence waits for every step,
so attention is ahead far beyond. Seconds of the processor, the best of some turns. Prints, never asserts.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import torch
from experiments import machine_line, markdown
from torch import Tensor

from heed.models.cnn import Cnn, CnnConfig
from heed.nn.attention import ATTENTION, BEGINNING, Attention
from heed.nn.causal_mixing import SSRU
from heed.nn.contract import TokenSource, Vocabularies
from heed.nn.recurrent import CELLS, unroll

LENGTHS = tuple(2**power for power in range(4, 13))
WIDTH = 3
Layer = Callable[[int], Callable[[], object]]


def layers(size: int) -> dict[str, Layer]:
    """Each layer as a function of the length that returns what to time."""
    dot, heads = (ATTENTION[name].in_block(size, max(1, size // 64), 0.0) for name in ("dot", "multi_head"))
    ssru, cell = SSRU(size), CELLS["tanh"](size, size)
    cnn = Cnn(CnnConfig(d_model=size, widths=(WIDTH,), num_filters=size), Vocabularies(10, 2))

    def of(attention: Attention) -> Layer:
        def layer(length: int) -> Callable[[], Tensor]:
            h = torch.randn(1, length, size)
            return lambda: attention(h, attention.project(h))

        return layer

    def rnn(length: int) -> Callable[[], object]:
        x = torch.randn(length, 1, size)
        return lambda: unroll(cell, x, cell.zeros(1))

    def simple(length: int) -> Callable[[], Tensor]:
        x = torch.randn(1, length, size)
        return lambda: ssru(x, ssru.empty_cache(1, 0, x).appending(0), None, BEGINNING)

    def convolution(length: int) -> Callable[[], Tensor]:
        ids = torch.full((1, length), 5)
        return lambda: cnn.read(TokenSource(ids, ids > 0))

    return {
        "softmax(H Hᵀ) H": of(dot), "multi-head attention": of(heads), "SSRU": simple, "vanilla RNN": rnn,
        f"convolution of {WIDTH}": convolution,
    }  # fmt: skip


def milliseconds(run: Callable[[], object], turns: int) -> float:
    """Processor time of a call, the best of some turns."""
    run()
    spent = []
    for _ in range(turns):
        begin = time.process_time()
        run()
        spent.append(time.process_time() - begin)
    return min(spent) * 1e3


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=128, help="features of each position (D)")
    parser.add_argument("--longest", type=int, default=LENGTHS[-1])
    parser.add_argument("--turns", type=int, default=5)
    given = parser.parse_args()
    torch.set_num_threads(1)
    lengths = [length for length in LENGTHS if length <= given.longest]
    with torch.inference_mode():
        times = {
            name: [milliseconds(layer(length), given.turns) for length in lengths]
            for name, layer in layers(given.size).items()
        }
    print(f"D = {given.size}, milliseconds, {machine_line(1)}\n")
    print(markdown(["n", *map(str, lengths)], [[name, *(f"{ms:.2f}" for ms in row)] for name, row in times.items()]))
    name, attention = next(iter(times.items()))
    for other, row in list(times.items())[1:]:
        dearer = [n for n, mine, theirs in zip(lengths, attention, row, strict=True) if mine > theirs]
        print(f"{name} takes longer than {other} from n = {dearer[0] if dearer else 'none of these'}")


if __name__ == "__main__":
    main()
