"""Latency of one prediction at a time: the time of `predict` in Python with one line of a file, for each of some runs.

A line is what `heed predict` reads: a text, a sentence, or a question, a tab and its context. The first twenty lines
warm up. Wall time and processor time of one thread, in milliseconds.

    python benchmarks/latency.py texts.txt runs/topics runs/topics-linear
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path
from typing import Any

import torch

import heed


def latencies(predictor: Any, lines: list[str]) -> tuple[list[float], list[float]]:
    """Milliseconds of wall time and of processor time of each line."""
    predictor.predict(lines[:20])
    wall, processor = [], []
    for line in lines:
        begin = time.perf_counter(), time.process_time()
        predictor.predict([line])
        wall.append(1000 * (time.perf_counter() - begin[0]))
        processor.append(1000 * (time.process_time() - begin[1]))
    return wall, processor


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lines", type=Path, help="a file with one input on each line")
    parser.add_argument("runs", nargs="+", help="run folders")
    parser.add_argument("--number", type=int, default=300, help="lines that are predicted")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    lines = arguments.lines.read_text(encoding="utf-8").splitlines()[: arguments.number]
    for run in arguments.runs:
        wall, processor = latencies(heed.load(run), lines)
        slowest = statistics.quantiles(wall, n=20)[-1]
        print(
            f"{run}: {len(lines)} lines one at a time, p50 {statistics.median(wall):.2f} ms (p95 {slowest:.2f}), "
            f"{statistics.median(processor):.2f} ms of processor time"
        )


if __name__ == "__main__":
    main()
