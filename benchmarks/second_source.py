"""A translation memory as a second source: each source with the translation of the most similar one after it.

    python benchmarks/second_source.py --pairs train.tsv.xz --valid-pairs dev.tsv.xz --out FOLDER
    python benchmarks/levers.py --minutes 20 --threads 1 --out runs/alone -- --pairs FOLDER/train.tsv ...
    python benchmarks/levers.py --minutes 20 --threads 1 --out runs/both -- --pairs FOLDER/both/train.tsv ...

Bulte & Tezcan (2019) let an unchanged translator read "source ‖ translation of a similar source" and learn by itself
what to copy. The memory is the training data. Each source gets the translation of the most similar other source, by the
words in common, as `heed translate --memory` finds them, unless their similarity is below 0.5 (as in the paper).

FOLDER gets train.tsv, valid.tsv and (of `--test-pairs`) test.tsv as they are, FOLDER/both with second sources, so
that two trainings differ in nothing else. The table has the share of sources with a second one, and how good these are
as translations by themselves.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from experiments import markdown
from sacrebleu.metrics import BLEU

from heed.memory.related import RelatedSentences
from heed.text.readers import read_pairs
from heed.text.readers.corpus import CorpusFiles

SEPARATOR = " ‖ "
Pair = tuple[str, str]


class Memory:
    """Pairs, of which the most similar one with another source is found."""

    def __init__(self, pairs: Sequence[Pair]) -> None:
        self.pairs = list(dict.fromkeys(pairs))
        self.numbers: dict[str, int] = {}
        self.related = RelatedSentences([self.ids(source) for source, _ in self.pairs])

    def ids(self, text: str) -> list[int]:
        """The words of a text as numbers."""
        return [self.numbers.setdefault(word, len(self.numbers)) for word in text.lower().split()]

    def best(self, source: str) -> tuple[str, float]:
        """The translation of the most similar other source, and its similarity; ("", 0) if there is none."""
        for number, similarity in self.related.find(self.ids(source)).items():
            if self.pairs[number][0] != source:
                return self.pairs[number][1], similarity
        return "", 0.0


def write(path: Path, pairs: Sequence[Pair]) -> None:
    """A table of two columns."""
    path.write_text("".join(f"{source}\t{target}\n" for source, target in pairs), encoding="utf-8")


def main() -> None:
    """Write the files and print the shares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=Path, required=True, help="training data: a table of source and target")
    parser.add_argument("--valid-pairs", type=Path, required=True)
    parser.add_argument("--test-pairs", type=Path)
    parser.add_argument("--least", type=float, default=0.5, help="least similarity of a second source (default 0.5)")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    (given.out / "both").mkdir(parents=True, exist_ok=True)
    files = {"train": given.pairs, "valid": given.valid_pairs, "test": given.test_pairs}
    tables = {name: list(read_pairs(CorpusFiles(pairs=path))) for name, path in files.items() if path}
    memory = Memory(tables["train"])
    rows = []
    for name, pairs in tables.items():
        write(given.out / f"{name}.tsv", pairs)
        found = [memory.best(source) for source, _ in pairs]
        used = [similarity >= given.least for _, similarity in found]
        both = [
            (source + SEPARATOR + other if is_used else source, target)
            for (source, target), (other, _), is_used in zip(pairs, found, used, strict=True)
        ]
        write(given.out / "both" / f"{name}.tsv", both)
        chosen = [(other, pair[1]) for (other, _), pair, is_used in zip(found, pairs, used, strict=True) if is_used]
        outputs, references = [other for other, _ in chosen], [target for _, target in chosen]
        bleu = BLEU().corpus_score(outputs, [references]).score if chosen else 0.0
        rows.append([name, f"{len(pairs):,}", f"{sum(used) / len(pairs):.1%}", f"{bleu:.2f}"])
    print(markdown(["", "pairs", "with a second source", "BLEU of the second sources by themselves"], rows))


if __name__ == "__main__":
    main()
