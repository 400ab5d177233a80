"""Other tasks before translating, on the same pairs or on text in one language: are they worth their updates?

    python benchmarks/warm_starts.py --pairs train.tsv.xz --languages en,vi --updates 2400 --out runs/warm -- \\
        --task=translation --data.valid_pairs=dev.tsv.xz --tokenizer.vocab_size=4000 ...

Each row trains for the same number of updates, a third of them, or `--first N`, on its first task:

- `alone`: translating from the beginning;
- `both`: translating in both directions with one model, without tags (Ding et al. 2021, "BiT"). In the paper, too, a
  third of the updates are on both directions;
- `denoising`: restoring the sentences of both languages, in which spans of words are masked, as in `heed improve`
  (`heed.tasks.translation.restoring`), but each sentence once.

With `--mono-src F --mono-tgt F`, text in each language alone (plain or compressed, a sentence a line), also

- `text-denoising`: denoising of these texts and of the sentences of the pairs;
- `masked-encoder`: the encoder is pretrained as a masked language model on the source language, text and pairs, with
  the training settings of the translator; the decoder begins with random weights;
- `language-model`: the decoder is pretrained as a language model on the target language, text and pairs. heed's
  decoder-only Transformer has other blocks (learned positions, GELU, vectors that are not scaled), so the translator
  itself is trained, with sources that say nothing about the targets: random numbers below 1,000. Not one constant
  source, because validation data has distinct ones. Encoder and attention to the source begin with random weights;
- `encoder-and-language-model`: the first weights of both, each pretrained for as many updates as by itself.

`benchmarks/pretrained_parts.py` has the rule for the vectors of pieces, which both sides share.
`python benchmarks/monolingual.py --pairs LARGE.tsv.xz --without dev.tsv.xz test.tsv.xz --languages en,fr --out DATA`
draws a small parallel corpus and such texts from a large one.

All rows then have one joint vocabulary, `alone` too, of the pairs, both texts and the mask. First tasks of restoring
and predicting are validated on 300 of their own rows, which are not trained on. `--extra` adds the updates of the first
task to those of translating, instead of taking them away.

After `--` come recipe keys that all rows share, as `--KEY=VALUE`: one vocabulary for both languages, so that the model
stays the same. Finished trainings are not made again, interrupted ones are resumed. Runs are named after their updates,
so that one folder can hold rows of several `--first`. The table has scores on the validation data with paired tests
against `alone`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from experiments import (
    Budget,
    Experiment,
    Row,
    cells,
    compare,
    folder_name,
    has_ended,
    machine_line,
    markdown,
    spent,
    train,
)
from pretrained_parts import Pretrained, encoder_flags, require_shared_vectors, write_start
from second_source import Pair, write

from heed.run import Run
from heed.tasks.translation.restoring import MASK, masked
from heed.text.readers import read_pairs, read_text
from heed.text.readers.corpus import CorpusFiles

SHARE = 1 / 3
"""Of the updates, those on the first task."""
NUM_VALID = 300
NUM_NUMBERS = 1000
"""Sources that say nothing."""
ALONE = "alone"
FIRST_TASKS = {
    "both": ["both"],
    "denoising": ["denoising"],
    "text-denoising": ["text-denoising"],
    "masked-encoder": ["masked"],
    "language-model": ["unconditional"],
    "encoder-and-language-model": ["masked", "unconditional"],
}
"""The rows and the tasks that they begin with."""
OF_PAIRS = ("both", "denoising")
"""Rows that need no other text."""
IN_PARTS = ("masked", "unconditional")
"""First tasks that give parts of the weights."""
ONLY_FOR_TRANSLATION = ("label_smoothing", "smoothing_kind", "stop_metric", "r_drop")
"""Settings of training that a masked language model does not take over."""


class Sentences:
    """The pairs, the distinct sentences of each language, and the files of the first tasks."""

    def __init__(self, pairs: Path, mono_src: Path | None, mono_tgt: Path | None, folder: Path) -> None:
        self.folder = folder.absolute()
        self.pairs: list[Pair] = list(read_pairs(CorpusFiles(pairs=pairs)))
        self.src = _distinct([*(src for src, _ in self.pairs), *(read_text(mono_src) if mono_src else ())])
        self.tgt = _distinct([*(tgt for _, tgt in self.pairs), *(read_text(mono_tgt) if mono_tgt else ())])

    def path(self, name: str) -> Path:
        """A file of this name."""
        return self.folder / name

    def write(self) -> None:
        """Write all files."""
        self.folder.mkdir(parents=True, exist_ok=True)
        write(self.path("exchanged.tsv"), [(target, source) for source, target in self.pairs])
        self._write_restored("noised", _distinct(text for pair in self.pairs for text in pair))
        self._write_restored("noised-text", _distinct([*self.src, *self.tgt]))
        rng = np.random.default_rng(1)
        texts = [self.tgt[number] for number in rng.permutation(len(self.tgt))]
        valid, rest = texts[: _num_valid(texts)], texts[_num_valid(texts) :]
        write(self.path("numbers-valid.tsv"), [(str(number), text) for number, text in enumerate(valid)])
        write(self.path("numbers.tsv"), [(str(rng.integers(NUM_NUMBERS)), text) for text in rest])
        _write_lines(self.path("source.txt"), self.src)
        masks = [" ".join([MASK] * number) for number in range(1, 51)]  # so that it becomes a piece
        _write_lines(self.path("vocabulary.txt"), _distinct([*self.src, *self.tgt, *masks]))

    def _write_restored(self, name: str, texts: Sequence[str]) -> None:
        """Sentences to restore, some of them for validation."""
        rng = np.random.default_rng(1)
        rows = [(masked(texts[number], rng), texts[number]) for number in rng.permutation(len(texts))]
        write(self.path(f"{name}-valid.tsv"), rows[: _num_valid(rows)])
        write(self.path(f"{name}.tsv"), rows[_num_valid(rows) :])


def _distinct(texts: Iterable[str]) -> list[str]:
    return [text for text in dict.fromkeys(texts) if text.strip()]


def _num_valid(rows: Sequence[object]) -> int:
    return min(NUM_VALID, len(rows) // 10)


def _write_lines(path: Path, lines: Iterable[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


class Bench:
    """The rows of the table and the runs that they begin with."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.out: Path = given.out
        self.threads: int = given.threads
        self.keys: list[str] = given.train
        self.updates: int = given.updates
        self.first: int = given.first or round(SHARE * given.updates)
        self.is_extra: bool = given.extra
        self.has_text = given.mono_src is not None
        self.languages: list[str] = given.languages.split(",")
        self.sentences = Sentences(given.pairs, given.mono_src, given.mono_tgt, given.out / "data")
        src, tgt = self.languages
        self.own = [f"--data.pairs={given.pairs.absolute()}", f"--data.src_lang={src}", f"--data.tgt_lang={tgt}"]

    @property
    def alone(self) -> Experiment:
        """Translating from the beginning."""
        return Experiment(ALONE, [*self.own, *self._vocabulary, *Budget(0, self.updates).flags])

    def row(self, name: str) -> Experiment:
        """Translating after the first tasks."""
        begins = FIRST_TASKS[name]
        left = self.updates if self.is_extra else self.updates - self.first * len(begins)
        if left <= 0:
            sys.exit(f"error: {name} has no updates left for translating: lower --first, or give --extra.")
        named = "+".join(map(str, [*[self.first] * len(begins), left]))
        flags = [*self.own, f"--init={self._init(name)}", *Budget(0, left).flags]
        return Experiment(f"{name} {named}", flags)

    def train_alone(self) -> None:
        """Train what the rows are compared with, and before it the vocabulary, if text gives one."""
        if self.has_text:
            train([self._vocabulary_run], self.out, self.threads, ())
        train([self.alone], self.out, self.threads, self.keys)

    def train_row(self, name: str) -> None:
        """Train a row, unless a training before it fails."""
        row = self.row(name)
        for task in FIRST_TASKS[name]:
            if task == "masked":
                train([self._masked], self.out, self.threads, ())
            else:
                train([self.alone, self._translating(task)], self.out, self.threads, self.keys)
        if not all(has_ended(self._folder(task)) for task in FIRST_TASKS[name]):
            return
        self._transplant(name)
        train([self.alone, row], self.out, self.threads, self.keys)

    def spent_first(self, name: str) -> tuple[int, float]:
        """Updates and minutes of a row's first tasks."""
        each = [spent(self._folder(task)) for task in FIRST_TASKS.get(name, ())]
        return sum(updates or 0 for updates, _ in each), sum(minutes or 0.0 for _, minutes in each)

    def _folder(self, task: str) -> Path:
        return self.out / folder_name(self._first_name(task))

    def _first_name(self, task: str) -> str:
        return f"{task} first {self.first}"

    def _init(self, name: str) -> Path:
        """The run whose weights a row begins with."""
        if FIRST_TASKS[name][0] in IN_PARTS:
            return self.out / folder_name(f"{name} start {self.first}")
        return self._folder(name)

    @property
    def _vocabulary(self) -> list[str]:
        return [f"--tokenizer-of={self.out / folder_name(self._vocabulary_run.name)}"] if self.has_text else []

    @property
    def _vocabulary_run(self) -> Experiment:
        """One update of a tiny masked language model on all text: its vocabulary has what all tasks need."""
        tokenizer = [key for key in self.keys if key.startswith("--tokenizer.") and ".dropout" not in key]
        tiny = ["--model.d_model=16", "--model.num_heads=1", "--model.num_layers=1"]
        text = f"--text={self.sentences.path('vocabulary.txt')}"
        flags = ["--task=masked-language-model", text, *tokenizer, *tiny, *Budget(0, 1).flags]
        return Experiment("vocabulary", flags)

    @property
    def _masked(self) -> Experiment:
        """The encoder as a masked language model, with the translator's training settings."""
        left_out = tuple(f"--training.{name}=" for name in ONLY_FOR_TRANSLATION)
        shared = [
            key for key in self.keys if key.startswith(("--training.", "--seed")) and not key.startswith(left_out)
        ]
        flags = [
            "--task=masked-language-model", f"--text={self.sentences.path('source.txt')}", *shared,
            f"--data.hold_out={_num_valid(self.sentences.src)}", *encoder_flags(self._translator), *self._vocabulary,
            *Budget(0, self.first).flags,
        ]  # fmt: skip
        return Experiment(self._first_name("masked"), flags)

    def _translating(self, task: str) -> Experiment:
        """A first task of the translator itself."""
        src, tgt = self.languages
        path = self.sentences.path
        table = {"denoising": "noised", "text-denoising": "noised-text", "unconditional": "numbers"}.get(task)
        flags = [f"--part=pairs={path('exchanged.tsv')},src_lang={tgt},tgt_lang={src}"]
        if table is not None:  # --force: for both languages on each side, and for numbers
            flags = [
                f"--data.pairs={path(f'{table}.tsv')}", f"--data.valid_pairs={path(f'{table}-valid.tsv')}", "--force",
                "--training.stop_metric=perplexity", "--data.filter.max_length_ratio=1000",
            ]  # fmt: skip
        return Experiment(self._first_name(task), [*self.own, *self._vocabulary, *flags, *Budget(0, self.first).flags])

    @cached_property
    def _translator(self) -> Run:
        run = Run(self.out / ALONE)
        require_shared_vectors(run)
        return run

    def _transplant(self, name: str) -> None:
        """Write the first weights of a row, if they are made of parts."""
        where = self._init(name)
        if FIRST_TASKS[name][0] not in IN_PARTS or where.exists():
            return
        texts = {"masked": self.sentences.src, "unconditional": self.sentences.tgt}
        found = {task: Pretrained(Run(self._folder(task)), texts[task]) for task in FIRST_TASKS[name]}
        write_start(self._translator, where, found.get("masked"), found.get("unconditional"))


def table(bench: Bench, names: Sequence[str], found: Sequence[Row]) -> str:
    """The finished rows."""
    heads = ["first task", "BLEU", "against the first", "chrF2", "against the first", "updates", "minutes"]
    of_rows = {bench.row(name).name: name for name in names}
    lines = []
    for row in found:
        name = of_rows.get(row.name, ALONE)
        first, minutes = bench.spent_first(name)
        updates = f"{first:,} first, then {row.updates:,}" if first else f"{row.updates:,}"
        both = f"{minutes + (row.minutes or 0):.1f}"
        lines.append([name, *cells(row, "bleu"), *cells(row, "chrf"), updates, both])
    return markdown(heads, lines)


def _parsed() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=Path, required=True, help="training data: a table of source and target")
    parser.add_argument("--languages", required=True, help="codes of source and target: en,de")
    parser.add_argument("--mono-src", type=Path, help="text in the source language, one sentence per line")
    parser.add_argument("--mono-tgt", type=Path, help="text in the target language, one sentence per line")
    parser.add_argument("--updates", type=int, required=True, help="updates of each row")
    parser.add_argument("--first", type=int, default=0, help="updates of each first task (default: a third)")
    parser.add_argument("--extra", action="store_true", help="first tasks come on top of --updates")
    parser.add_argument("--only", default="", help="comma-separated rows (default: all for which there is data)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("runs/warm-starts"))
    parser.add_argument("--table", action="store_true", help="train nothing, compare the finished runs")
    parser.add_argument("train", nargs="*", metavar="-- KEYS", help="recipe keys of all rows: --KEY=VALUE")
    given = parser.parse_args()
    if (given.mono_src is None) != (given.mono_tgt is None):
        parser.error("give --mono-src and --mono-tgt together.")
    return given


def main() -> None:
    """Train what is missing, and print the table."""
    given = _parsed()
    known = [name for name in FIRST_TASKS if name in OF_PAIRS or given.mono_src is not None]
    names = [name for name in given.only.split(",") if name not in ("", ALONE)] if given.only else known
    if unknown := sorted({*names} - {*known}):
        has = "" if given.mono_src is not None else ", and without --mono-src and --mono-tgt only those of the pairs"
        sys.exit(f"error: no row is called {', '.join(unknown)}. There are {', '.join(known)}{has}.")
    bench = Bench(given)
    rows = [bench.alone, *map(bench.row, names)]
    if not given.table:
        bench.sentences.write()
        bench.train_alone()
        for name in names:
            bench.train_row(name)
    found = compare(rows, given.out, given.threads)
    print(f"{found[0].evaluation.test.label}, {machine_line(given.threads)}\n\n{table(bench, names, found)}")


if __name__ == "__main__":
    main()
