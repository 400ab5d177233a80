"""Other tasks on the same pairs before translating: are they worth their updates?

    python benchmarks/warm_starts.py --pairs train.tsv.xz --languages en,vi --updates 2400 --out runs/warm -- \\
        --task=translation --data.valid_pairs=dev.tsv.xz --tokenizer.vocab_size=4000 ...

Each row trains for the same number of updates, a third of them on its first task:

- `alone`: translating from the beginning;
- `both`: translating in both directions with one model, without tags (Ding et al. 2021, "BiT"). In the paper, too, a
  third of the updates are on both directions;
- `denoising`: restoring the sentences of both languages (Lewis et al. 2020, BART's text infilling): spans with lengths
  drawn from a Poisson distribution of mean 3 become one mask each, until 35 % of the words are gone.

After `--` come recipe keys that all rows share: one vocabulary for both languages, so that the model stays the same.
Finished trainings are not made again, interrupted ones are resumed. The table has scores on the validation data with
paired tests against `alone`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from experiments import Budget, Experiment, cells, compare, machine_line, markdown, train
from second_source import Pair, write

from heed.text.readers import read_pairs
from heed.text.readers.corpus import CorpusFiles

SHARE = 1 / 3
"""Of the updates, those on the first task."""
GONE = 0.35
MEAN_SPAN = 3
MASK = "▒"


def noised(text: str, rng: np.random.Generator) -> str:
    """A text in which masks have taken the place of spans of words."""
    words = text.split()
    left = round(GONE * len(words))
    while left > 0:
        length = min(max(1, int(rng.poisson(MEAN_SPAN))), left, len(words))
        at = int(rng.integers(len(words) - length + 1))
        words[at : at + length] = [MASK]
        left -= length
    return " ".join(words)


def first_tasks(pairs: list[Pair], src: str, tgt: str, folder: Path) -> dict[str, list[str]]:
    """Write the pairs of the first tasks; returns the flags of their data by name."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(1)
    tables = {
        "exchanged": [(target, source) for source, target in pairs],
        "noised": [(noised(text, rng), text) for pair in pairs for text in pair],
    }
    for name, rows in tables.items():
        write(folder / f"{name}.tsv", rows)
    return {
        "both": [f"--part=pairs={(folder / 'exchanged.tsv').absolute()},src_lang={tgt},tgt_lang={src}"],
        "denoising": [
            f"--data.pairs={(folder / 'noised.tsv').absolute()}",
            "--force",
        ],  # with both languages on each side
    }


def main() -> None:
    """Train what is missing, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=Path, required=True, help="training data: a table of source and target")
    parser.add_argument("--languages", required=True, help="codes of source and target: en,de")
    parser.add_argument("--updates", type=int, required=True, help="updates of each row")
    parser.add_argument("--only", default="alone,both,denoising", help="comma-separated rows")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("runs/warm-starts"))
    parser.add_argument("--table", action="store_true", help="train nothing, compare the finished runs")
    parser.add_argument("train", nargs="*", metavar="-- KEYS", help="recipe keys of all rows")
    given = parser.parse_args()
    src, tgt = given.languages.split(",")
    first = first_tasks(list(read_pairs(CorpusFiles(pairs=given.pairs))), src, tgt, given.out / "data")
    own = [f"--data.pairs={given.pairs.absolute()}", f"--data.src_lang={src}", f"--data.tgt_lang={tgt}"]
    updates = round(SHARE * given.updates)
    rows, begins = [], []
    for name in given.only.split(","):
        if name == "alone":
            rows.append(Experiment(name, [*own, *Budget(0, given.updates).flags]))
            continue
        begins.append(Experiment(f"{name}, first", [*own, *first[name], *Budget(0, updates).flags]))
        init = f"--init={given.out / f'{name}--first'}"
        rows.append(Experiment(name, [*own, init, *Budget(0, given.updates - updates).flags]))
    if not given.table:
        train([*begins, *rows], given.out, given.threads, given.train)
    found = compare(rows, given.out, given.threads)
    heads = ["first task", "BLEU", "against the first", "chrF2", "against the first", "updates"]
    lines = [[row.name, *cells(row, "bleu"), *cells(row, "chrf"), f"{row.updates:,}"] for row in found]
    print(f"{found[0].evaluation.test.label}, {machine_line(given.threads)}\n\n{markdown(heads, lines)}")


if __name__ == "__main__":
    main()
