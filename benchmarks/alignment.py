"""Word alignment of a text whose first pairs have links made by people: F1 and alignment error rate by symmetrisation.

    python benchmarks/alignment.py all.en all.fr test.gold --aligner hmm

The text contains the test pairs, so each is aligned without its own counts. A run folder (`heed align --out`) does not
keep what each pair added, and aligns them a little worse.
"""

from __future__ import annotations

import argparse

from heed.metrics.alignment import LINK_METRICS
from heed.statistical.alignment.symmetrise import AGREEMENT, SYMMETRISATIONS
from heed.statistical.alignment.training import train_pair
from heed.text.readers.lines import read_lines
from heed.text.readers.links import render_links
from heed.text.readers.tokenised import read_tokenised


def main() -> None:
    """Align, and print the scores."""
    parser = argparse.ArgumentParser(description="Scores of word alignment by symmetrisation.")
    parser.add_argument("src")
    parser.add_argument("tgt")
    parser.add_argument("gold", help="links of the first pairs of the text")
    parser.add_argument("--aligner", default="hmm")
    arguments = parser.parse_args()
    pairs, gold = read_tokenised(arguments.src, arguments.tgt), list(read_lines(arguments.gold))
    trained = train_pair(arguments.aligner, *pairs, lowercase=True)
    for how in (*SYMMETRISATIONS, AGREEMENT):
        lines = [render_links(links) for links in trained.own_links(how)[: len(gold)]]
        scores = [metric().score(lines, gold, intervals=1000) for metric in LINK_METRICS]
        print(how, *(f"{score.name} {score.numbers}" for score in scores), sep="  ")


if __name__ == "__main__":
    main()
