"""Norms of gradients through time, which show how far back a recurrent language model learns from an error.

    python benchmarks/gradients.py runs/ptb-rnn runs/ptb-lstm --text ptb.valid.txt --plot gradients.png

For each run, with its trained and with its initial weights: the norm of the gradient of a token's -log p with respect
to the state k tokens before, as the median over many tokens of the text, divided by that at k = 1. Below 1 the
gradient vanishes, above 1 it explodes. Prints a Markdown table, never asserts.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from heed.models.rnn_lm import Recurrent
from heed.run import Run
from heed.tasks.language_model.gradient_flow import norms_through_time
from heed.text.readers import read_lines
from heed.text.vocabulary import Vocabulary

SHOWN = (1, 2, 5, 10, 20, 50, 100)
COLOURS = ("#b5432a", "#33658a", "#4f7a4a", "#8a5a9e", "#b08a2e", "#555555")
LINES = {"trained": "-", "first weights": ":"}


def ids_of(run: Run, path: Path, num_tokens: int) -> Tensor:
    """The first tokens of a text, with an end-of-sentence token after each line."""
    ids: list[int] = []
    for line in read_lines(path):
        ids += [*run.tokenizers["tgt"].encode([run.recipe.data.normaliser.apply(line)])[0], Vocabulary.eos_id]
        if len(ids) >= num_tokens:
            return torch.tensor(ids[:num_tokens])
    sys.exit(f"{path} has {len(ids):,} tokens, fewer than the {num_tokens:,} that are wanted: lower --rows.")


def decay(model: Recurrent, ids: Tensor, rows: int, distance: int) -> Tensor:
    """Median gradient norm `[distance]` at 1, 2, … tokens before the loss, relative to the first.

    Half of each row is read before the measured part.
    """
    stretches = ids.view(rows, -1)
    begin = stretches.shape[1] - distance - 1
    with torch.no_grad():
        _, before = model.advance(stretches[:, :begin], model.start(None, rows))
    norms = norms_through_time(model, stretches[:, begin:-1], stretches[:, -1], before)
    return (norms / norms[:, -1:]).median(0).values.flip(0)


def table(curves: dict[tuple[str, str], Tensor]) -> str:
    """A table with a row for each model and a column for each of some distances."""
    shown = [k for k in SHOWN if k <= len(next(iter(curves.values())))]
    lines = ["| | " + " | ".join(f"k = {k}" for k in shown) + " |", "| --- |" + " ---: |" * len(shown)]
    for (name, weights), curve in curves.items():
        lines.append(f"| {name}, {weights} | " + " | ".join(f"{float(curve[k - 1]):.1e}" for k in shown) + " |")
    return "\n".join(lines)


def draw(path: Path, curves: dict[tuple[str, str], Tensor]) -> None:
    """Plot the norm over the distance, on a logarithmic scale."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.5, 4.2), layout="constrained")
    axes = figure.subplots()
    names = list(dict.fromkeys(name for name, _ in curves))
    for (name, weights), curve in curves.items():
        colour = COLOURS[names.index(name) % len(COLOURS)]
        axes.semilogy(
            range(1, len(curve) + 1), curve.clamp(min=1e-30), LINES[weights], color=colour, label=f"{name}, {weights}"
        )
    axes.axhline(1.0, color="#999999", linewidth=0.8)
    axes.set_xlabel("tokens between the state and the loss")
    axes.set_title("norm of the gradient through time, relative")
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    FigureCanvasAgg(figure)
    figure.savefig(path, dpi=120, format="png")


def recurrent(run: Run) -> Recurrent:
    """The trained model. Exits if it is not a recurrent one."""
    if not isinstance(run.model, Recurrent):
        sys.exit(f"{run.folder} is not a recurrent language model (model.kind is {run.recipe.model.kind!r}).")
    return run.model


def main() -> None:
    """Read the arguments, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN")
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--distance", type=int, default=100, help="tokens to go back (default 100)")
    parser.add_argument("--rows", type=int, default=64, help="number of losses (default 64)")
    parser.add_argument("--plot", type=Path, help="write a PNG")
    given = parser.parse_args()
    curves: dict[tuple[str, str], Tensor] = {}
    for folder in given.runs:
        run = Run(folder)
        ids = ids_of(run, given.text, 2 * given.rows * (given.distance + 1))
        models: Sequence[tuple[str, Recurrent]] = [("trained", recurrent(run)), ("first weights", run.new_model())]
        for weights, model in models:
            curves[folder.name, weights] = decay(model.requires_grad_(False), ids, given.rows, given.distance)
    print(table(curves))
    if given.plot:
        draw(given.plot, curves)


if __name__ == "__main__":
    main()
