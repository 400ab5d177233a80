"""The inference gap: what a decoder loses, by position, by reading its own outputs instead of the truth.

    python benchmarks/inference_gap.py runs/forced runs/scheduled --src val.en.gz --ref val.de.gz --plot gap.png

In training a decoder reads the true words, in use its own (lecture 9; Bengio et al. 2015). For each position of the
reference, this is the mean of -log p of the true token after the true tokens before it, and after tokens that were
sampled from the model itself. The difference is the gap. Prints a Markdown table, never asserts.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from heed.api import load
from heed.core.environment import num_cpus
from heed.data.batch import Batch
from heed.evaluation.test_set import read_parallel
from heed.nn.device import set_threads
from heed.nn.dropout_keys import DropoutKeys
from heed.tasks.generation import text_batch
from heed.tasks.scheduled_sampling import read_partly_own

ROWS = 100
"""Pairs of a batch."""
FEWEST = 100
"""References that must reach a position for it to be shown."""


@torch.no_grad()
def losses(model: Any, batch: Batch, seed: int, own: bool) -> NDArray[np.float64]:
    """-log p of the true tokens `[B, T]`, NaN at padding; `own`: after sampled tokens."""
    read = batch.tgt_in
    if own:
        keys = DropoutKeys.for_step(seed, 0, batch.rows)
        read = read_partly_own(model, read, model.start(batch.source), keys, 0.0)
    features, _ = model.advance(read, model.start(batch.source))
    values = -model.head.log_prob(features, batch.tgt_out).double()
    return values.masked_fill(~batch.tgt_mask, float("nan")).numpy()  # type: ignore[no-any-return]


def by_position(folder: Path, rows: Sequence[tuple[str, ...]], seed: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Mean losses of a run by position: after the truth, and after its own samples."""
    run = load(folder).run
    ids = {side: run.tokenizers[side].encode([row[n] for row in rows]) for n, side in enumerate(("src", "tgt"))}
    order = sorted(range(len(rows)), key=lambda n: len(ids["tgt"][n]))
    found: dict[bool, list[NDArray[Any]]] = {False: [], True: []}
    longest = max(map(len, ids["tgt"])) + 1
    for begin in range(0, len(order), ROWS):
        part = order[begin : begin + ROWS]
        batch = text_batch({side: [of_side[n] for n in part] for side, of_side in ids.items()}, part)
        for own, parts in found.items():
            values = losses(run.model, batch, seed, own)
            parts.append(np.pad(values, ((0, 0), (0, longest - values.shape[1])), constant_values=np.nan))
    forced, own_read = (np.concatenate(found[own]) for own in (False, True))
    enough = (~np.isnan(forced)).sum(0) >= FEWEST
    return np.nanmean(forced[:, enough], 0), np.nanmean(own_read[:, enough], 0)


def draw(path: Path, gaps: dict[str, tuple[NDArray[Any], NDArray[Any]]]) -> None:
    """The losses of each run over the position."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for number, (name, (forced, own)) in enumerate(gaps.items()):
        positions = range(1, len(forced) + 1)
        axes.plot(positions, own, color=f"C{number}", label=f"{name}, after its own words")
        axes.plot(positions, forced, color=f"C{number}", linestyle="--", label=f"{name}, after the truth")
    axes.set_xlabel("position")
    axes.set_ylabel("-log p of the true token (nats)")
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, fontsize="small")
    FigureCanvasAgg(figure)
    figure.savefig(path, dpi=120, format="png")


def main() -> None:
    """Read the arguments, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+", help="run folders of translators")
    parser.add_argument("--src", type=Path, required=True)
    parser.add_argument("--ref", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=num_cpus())
    parser.add_argument("--plot", type=Path, help="write a PNG")
    given = parser.parse_args()
    set_threads(given.threads)
    rows = read_parallel(given.src, given.ref).rows
    gaps = {folder.name: by_position(folder, rows, given.seed) for folder in given.runs}
    print("| run | " + " | ".join(["position 1", "2", "5", "10", "15", "20"]) + " |")
    print("| --- |" + " ---: |" * 6)
    for name, (forced, own) in gaps.items():
        cells = [f"{own[n] - forced[n]:.2f} ({forced[n]:.2f})" if n < len(own) else "" for n in (0, 1, 4, 9, 14, 19)]
        print(f"| {name} | {' | '.join(cells)} |")
    print("\nthe gap, and in brackets the loss after the truth, in nats per token")
    if given.plot:
        draw(given.plot, gaps)


if __name__ == "__main__":
    main()
