"""Word alignment of a text whose first pairs have links made by people: F1 and alignment error rate by symmetrisation.

    python benchmarks/alignment.py all.en all.fr test.gold --aligner hmm
    python benchmarks/alignment.py all.en all.fr test.gold --links forward backward

The text contains the test pairs, so each is aligned without its own counts. A run folder (`heed align --out`) does not
keep what each pair added, and aligns them a little worse. `--links` scores the links of another program, which has no
posteriors for `agreement`. `--against` adds the difference from links that `heed align` printed, and its p value.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from heed.metrics.alignment import LINK_METRICS
from heed.metrics.significance import compare
from heed.statistical.alignment.pairs import Links
from heed.statistical.alignment.symmetrise import AGREEMENT, SYMMETRISATIONS
from heed.statistical.alignment.training import train_pair
from heed.text.readers.lines import read_lines
from heed.text.readers.links import parse_links, render_links
from heed.text.readers.tokenised import read_tokenised


def found(arguments: argparse.Namespace) -> Iterator[tuple[str, list[Links]]]:
    """Each symmetrisation with the links of all pairs."""
    if arguments.links:
        forward, backward = ([parse_links(line).sure for line in read_lines(name)] for name in arguments.links)
        for how, combine in SYMMETRISATIONS.items():
            yield how, list(map(combine, forward, backward))
        return
    pairs = read_tokenised(arguments.src, arguments.tgt)
    trained = train_pair(arguments.aligner, *pairs, lowercase=True)
    for how in (*SYMMETRISATIONS, AGREEMENT):
        yield how, trained.own_links(how)


def main() -> None:
    """Align, and print the scores."""
    parser = argparse.ArgumentParser(description="Scores of word alignment by symmetrisation.")
    parser.add_argument("src")
    parser.add_argument("tgt")
    parser.add_argument("gold", help="links of the first pairs of the text")
    parser.add_argument("--aligner", default="hmm")
    parser.add_argument("--links", nargs=2, metavar="F", help="links of both directions by another program")
    parser.add_argument("--against", metavar="F", help="links of the same text, for paired tests")
    arguments = parser.parse_args()
    gold = list(read_lines(arguments.gold))
    first = list(read_lines(arguments.against))[: len(gold)] if arguments.against else None
    for how, links in found(arguments):
        lines = [render_links(of_pair) for of_pair in links[: len(gold)]]
        scores = [metric().score(lines, gold, intervals=1000) for metric in LINK_METRICS]
        print(how, *(f"{score.name} {score.numbers}" for score in scores), sep="  ")
        if first is not None:
            for metric in LINK_METRICS:
                test = compare(metric().statistics(first, gold), metric().statistics(lines, gold))
                print(f"    {metric.title}: {test.difference:+.2f}, p = {test.p_bootstrap}")


if __name__ == "__main__":
    main()
