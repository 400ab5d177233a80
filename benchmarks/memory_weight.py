"""Weights of nearest neighbours compared: the published one, and the one that heed fits.

    python benchmarks/memory_weight.py RUN --memory FILE --src F --ref F --lines 200

The translator reads the references given their sources, and looks each next word up in the related translations of the
memory (`heed.models.nearest_neighbours`). The table has nats per token of the references for several numbers of
neighbours: with λ = max(0, 1 - d / τ) as in SK-MT (Dai et al. 2023), with the best of many τ on these very references;
with heed's logistic λ, fitted to translations of the memory as `heed translate --memory` does; and with the same
fitted to the references, which nothing can be fitted to in use.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from experiments import markdown

import heed
from heed.models import nearest_neighbours
from heed.models.nearest_neighbours import Tokens, fit, interpolated
from heed.nn.device import set_threads
from heed.tasks.translation.neighbours import Guide, open_memory
from heed.text.readers import CorpusFiles, read_pairs


def published(tokens: Tokens) -> float:
    """Nats per token with the λ of SK-MT and the best τ."""

    def nats(tau: float) -> float:
        part = (1 - tokens.distances[:, :1] / tau).clamp(0, 0.999)
        found = ((-tokens.distances / tau).softmax(dim=-1) * tokens.is_value).sum(dim=-1)
        return float(-((1 - part[:, 0]) * tokens.log_prob.exp() + part[:, 0] * found).log().mean())

    return min(nats(1.2**power) for power in range(60))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="a translator")
    for name in ("memory", "src", "ref"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--lines", type=int, default=200, help="references to read (default 200)")
    given = parser.parse_args()
    set_threads(1)
    predictor: Any = heed.load(given.run, engine="torch")
    guide = Guide(predictor.translator, open_memory(given.memory, predictor.languages))
    pairs = list(read_pairs(CorpusFiles(src=given.src, tgt=given.ref)))[: given.lines]
    held_out = [pair for pair in guide.related.encoded(pairs) if pair.source]
    rows = []
    for k in (1, 4, 8, 16):
        nearest_neighbours.NEIGHBOURS = k
        tokens = guide.related.looked_up(held_out, guide.usable)
        of_memory, of_these = fit(guide.known()), fit([(tokens, 1)])
        alone = float(-tokens.log_prob.mean())
        fitted = (float(-interpolated(tokens, each).mean()) for each in (of_memory, of_these))
        rows.append([str(k), *(f"{each:.3f}" for each in (alone, published(tokens), *fitted))])
    print(markdown(["neighbours", "model alone", "SK-MT, best τ", "fitted to the memory", "fitted to these"], rows))


if __name__ == "__main__":
    main()
