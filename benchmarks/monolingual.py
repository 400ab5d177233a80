"""A small parallel corpus and text in each of its languages alone, drawn from a large parallel corpus.

    python benchmarks/monolingual.py --pairs train.tsv.xz --without dev.tsv.xz test.tsv.xz --languages en,fr --out DATA

DATA gets `pairs.tsv`, and a file of sentences for each language (`mono.en` and `mono.fr`), all drawn at random. The
sentences of a language are distinct and not in the pairs, and none has a translation in the other file that the large
corpus knows of. No sentence of the tables `--without` is in any of the three files.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Container, Iterable
from itertools import chain
from pathlib import Path

from second_source import Pair, write

from heed.text.readers import read_pairs
from heed.text.readers.corpus import CorpusFiles


def drawn(pairs: Iterable[Pair], without: Container[str], number: int, seed: int) -> tuple[list[Pair], list[Pair]]:
    """Random distinct pairs, and all others, neither with a sentence that is `without`."""
    allowed = [pair for pair in dict.fromkeys(pairs) if not any(text in without for text in pair)]
    random.Random(seed).shuffle(allowed)
    return allowed[:number], allowed[number:]


def sentences(texts: Iterable[str], without: Container[str], number: int) -> list[str]:
    """The first distinct texts that are not `without`."""
    found = [text for text in dict.fromkeys(texts) if text not in without]
    if len(found) < number:
        sys.exit(f"error: only {len(found):,} other sentences are left, and {number:,} are asked for.")
    return found[:number]


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=Path, required=True, help="the large corpus: a table of source and target")
    parser.add_argument("--without", type=Path, nargs="*", default=[], help="tables of which no sentence is used")
    parser.add_argument("--languages", required=True, help="codes of source and target: en,de")
    parser.add_argument("--num-pairs", type=int, default=10_000)
    parser.add_argument("--num-sentences", type=int, default=20_000, help="of each language")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    languages = given.languages.split(",")
    if len(languages) != 2:
        sys.exit("error: --languages takes two codes: en,de.")
    tested = {text for path in given.without for pair in read_pairs(CorpusFiles(pairs=path)) for text in pair}
    pairs, rest = drawn(read_pairs(CorpusFiles(pairs=given.pairs)), tested, given.num_pairs, given.seed)
    if len(pairs) < given.num_pairs:
        sys.exit(f"error: only {len(pairs):,} pairs are left, and {given.num_pairs:,} are asked for.")
    given.out.mkdir(parents=True, exist_ok=True)
    write(given.out / "pairs.tsv", pairs)
    taken = set(chain.from_iterable(pairs))
    sources = sentences((src for src, _ in rest), taken, given.num_sentences)
    chosen = {*sources}
    translations = {tgt for src, tgt in rest if src in chosen}
    targets = sentences((tgt for _, tgt in rest), taken | translations, given.num_sentences)
    for language, lines in zip(languages, (sources, targets), strict=True):
        (given.out / f"mono.{language}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
