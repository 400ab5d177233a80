"""Consensus of unlike translators: candidates of one run, chosen by their similarity to those of other runs.

    python benchmarks/consensus.py RUN OTHER [OTHER ...] --src val.en.gz --ref val.de.gz

An ensemble multiplies probabilities, so its runs need one vocabulary. Candidates of runs of any kind, such as a
Transformer and phrases, can be compared as texts: minimum Bayes risk (Kumar & Byrne 2004) over the best K translations
of several runs. The rows are each run alone; RUN with consensus among its own candidates; and the candidates of RUN, or
those of all runs, with the highest mean chrF over the candidates of all runs. Each run has the same weight, and so has
each of its candidates. Tests compare with the first row.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from heed.api import load
from heed.core.environment import num_cpus
from heed.decoding.hypothesis import single_spaced
from heed.evaluation.outputs import System, evaluate_outputs
from heed.evaluation.table import render_table
from heed.evaluation.test_set import read_parallel
from heed.metrics.pairwise import pairwise_scores
from heed.nn.device import set_threads


def consensus(candidates: Sequence[Sequence[str]], choices: Sequence[str], language: str) -> str:
    """The choice with the highest mean over runs of its mean chrF over the candidates of a run."""
    texts = list(dict.fromkeys([*choices, *(text for each in candidates for text in each)]))
    number = {text: i for i, text in enumerate(texts)}
    scores = pairwise_scores("chrf", texts, language or None)
    means = np.mean([scores[:, [number[text] for text in each]].mean(1) for each in candidates], axis=0)
    return max(choices, key=lambda text: means[number[text]])


def main() -> None:
    """Translate with each run, choose, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("others", type=Path, nargs="+")
    parser.add_argument("--src", type=Path, required=True)
    parser.add_argument("--ref", type=Path, required=True)
    parser.add_argument("--candidates", type=int, default=10, help="K: translations of each run (default 10)")
    parser.add_argument("--threads", type=int, default=0, help="CPU threads (default: all cores)")
    given = parser.parse_args()
    set_threads(given.threads or num_cpus())
    test = read_parallel(given.src, given.ref)
    runs = [load(path) for path in (given.run, *given.others)]
    language = runs[0].run.predictor.languages[1] or ""
    single = [[str(text) for text in run.translate(list(test.sources))] for run in runs]
    lists = [
        [[single_spaced(each.text) for each in best] for best in run.predict(list(test.sources), given.candidates)]
        for run in runs
    ]
    rows = [[each[i] for each in lists] for i in range(len(test.sources))]
    systems = [
        *(System(run.run.folder.name, outputs) for run, outputs in zip(runs, single, strict=True)),
        System("among its own", [consensus(row[:1], row[0], language) for row in rows]),
        System("its own, by all", [consensus(row, row[0], language) for row in rows]),
        System("all, by all", [consensus(row, [text for each in row for text in each], language) for row in rows]),
    ]
    print(render_table(evaluate_outputs(test, systems, language or None, metrics=("bleu", "chrf"))))


if __name__ == "__main__":
    main()
