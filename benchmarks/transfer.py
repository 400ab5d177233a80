"""The transfer table: pretraining × task, with the gain over the same reader from random weights.

    python benchmarks/transfer_data.py --data DIR --out DATA
    python benchmarks/transfer.py --pretrain --texts DATA --out OUT
    python benchmarks/transfer.py --texts DATA --out OUT [--only lm,elmo] [--tasks trec,sick] [--seed N]
    python benchmarks/transfer.py --texts DATA --out OUT --table

`--pretrain` trains a masked language model, a language model, one that reads from the end, and a translator, each with
at most 25 minutes of one core, into `OUT/masked`, `OUT/forward`, `OUT/backward` and `OUT/translator`. The second call
fine-tunes each of them on each task, and trains the same reader from random weights with the same updates, rate and
batches. It can be stopped and started again. `--table` scores all on the test sets, and prints the gains with 95 %
intervals: both systems are scored on the same draws of the test rows.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from experiments import has_ended, machine_line, markdown

import heed
from heed.metrics.significance import paired_bootstrap, resampled_totals, values

TRAIN = [sys.executable, "-m", "heed", "train", "--threads", "1"]
RECURRENT = [
    "--task", "language-model", "--data.keep_blank_lines=false", "--model.kind=rnn", "--model.d_model=256",
    "--model.hidden_size=256", "--model.dropout=0.1", "--training.max_steps=6000",
]  # fmt: skip
SHORT = [
    "--training.lr=3e-3", "--training.schedule=cosine", "--training.warmup_steps=200", "--training.average=none",
    "--training.eval_every=1500", "--training.save_every=1500", "--training.patience=0", "--precision=bfloat16",
]  # fmt: skip
"""Settings of a single pass over the text."""
PRETRAININGS = {
    "forward": [
        "--text", "english.txt", *RECURRENT, "--tokenizer.vocab_size=8000", "--data.hold_out=500",
        "--data.text_as=stream", "--training.context=70", "--training.num_streams=20", *SHORT, "--max-time=25m",
    ],
    "backward": [
        "--text", "sentences.txt", *RECURRENT, "--data.backward=true", "--tokenizer-of", "forward",
        "--data.hold_out=2000", "--data.text_as=lines", "--data.max_tokens=96", "--training.tokens_per_batch=1400",
        *SHORT, "--max-time=25m",
    ],
    "masked": [
        "--text", "english.txt", "--task", "masked-language-model", "--data.hold_out=500", "--data.max_tokens=126",
        "--data.mask_share=0.3", "--tokenizer.vocab_size=5000", "--model.d_model=192", "--model.d_ff=768",
        "--model.num_heads=3", "--model.num_layers=3", "--model.dropout=0.0", "--training.tokens_per_batch=2048",
        *SHORT, "--training.lr=2e-3", "--training.max_steps=5000", "--max-time=20m",
    ],
    "translator": [
        "--task", "translation", "--src", "captions.en", "--tgt", "captions.de", "--valid-src", "captions.valid.en",
        "--valid-tgt", "captions.valid.de", "--precision=bfloat16", "--max-time=8m",
    ],
}  # fmt: skip
FILES = {"--text", "--src", "--tgt", "--valid-src", "--valid-tgt"}


@dataclass(frozen=True)
class Beginning:
    """What a fine-tuning begins with."""

    runs: Sequence[str]
    """The pretrained run, and for ELMo the one that reads from the end."""
    rate: float


BEGINNINGS = {
    "masked": Beginning(["masked"], 1e-3),
    "lm": Beginning(["forward"], 2e-3),
    "elmo": Beginning(["forward", "backward"], 2e-3),
    "translator": Beginning(["translator"], 1e-3),
}


@dataclass(frozen=True)
class Task:
    """A task, its number of updates and its score."""

    updates: int
    metric: str = "accuracy"

    def flags(self, name: str, texts: Path) -> list[str]:
        """The training and validation data."""
        kind, flag, ending = ("tagging", "conll", "conll") if name == "chunks" else ("classification", "table", "csv")
        files = [str(texts / f"{name}.{part}.{ending}") for part in ("train", "valid")]
        alone = [] if name == "chunks" else ["--head.linear=false", "--head.dropout=0.3"]
        return ["--task", kind, f"--{flag}", files[0], f"--valid-{flag}", files[1], *alone]

    def test(self, name: str, texts: Path) -> Path:
        """The test set."""
        return texts / (f"{name}.test.conll" if name == "chunks" else f"{name}.test.csv")


TASKS = {"trec": Task(400), "sick": Task(500), "chunks": Task(600, "entity_f1"), "sst2": Task(700)}


def pretrain(texts: Path, out: Path) -> None:
    """Train what the tasks begin with."""
    for name, flags in PRETRAININGS.items():
        placed = [
            str(texts / flag) if before in FILES else str(out / flag) if before == "--tokenizer-of" else flag
            for before, flag in zip(["", *flags], flags, strict=False)
        ]
        run([*TRAIN, *placed], out / name)


def fine_tune(name: str, task: str, texts: Path, out: Path, seed: int) -> None:
    """Train a task from pretrained weights, and from random ones by the same recipe."""
    beginning, first = BEGINNINGS[name], out / BEGINNINGS[name].runs[0]
    init = ["--init", str(first), "--init-parts", "encoder"]
    init += [flag for each in beginning.runs[1:] for flag in ("--init-backward", str(out / each))]
    updates = TASKS[task].updates
    limits = [f"--training.max_steps={updates}", f"--training.eval_every={updates // 4}"]
    settings = [
        f"--training.lr={beginning.rate}", "--training.schedule=cosine", "--training.warmup_steps=30",
        "--training.average=none", f"--training.save_every={updates}", "--training.patience=0",
        "--precision=bfloat16", f"--seed={seed}",
    ]  # fmt: skip
    tuned, scratch = folders(name, task, out, seed)
    run([*TRAIN, *TASKS[task].flags(task, texts), *init, *settings, *limits], tuned)
    run([*TRAIN, str(tuned / "recipe.toml"), "--tokenizer-of", str(first)], scratch)


def folders(name: str, task: str, out: Path, seed: int) -> tuple[Path, Path]:
    """The runs with pretrained and with random weights."""
    return out / f"{task}-{name}-{seed}", out / f"{task}-{name}-{seed}-random"


def run(command: Sequence[str], out: Path) -> None:
    """Train a run that has not been trained yet."""
    if has_ended(out):
        return
    again = ["--overwrite"] if out.exists() else []
    print(" ".join([*command[3:], "--out", str(out)]), file=sys.stderr, flush=True)
    subprocess.run([*command, "--out", str(out), "--force", "--quiet", *again], check=True)


def rows(names: Sequence[str], tasks: Sequence[str], texts: Path, out: Path, seed: int) -> Iterator[list[str]]:
    """The scores of each pair of runs that have been trained, and the gain."""
    for task in tasks:
        for name in names:
            pair = folders(name, task, out, seed)
            if not all(map(has_ended, pair)):
                continue
            metric, test = TASKS[task].metric, TASKS[task].test(task, texts)
            tuned, scratch = (heed.load(folder).evaluate(test) for folder in pair)
            before, after = (each.statistics[metric] for each in (scratch, tuned))
            drawn = [values(each, resampled_totals(each.rows, 1000)) for each in (before, after)]
            low, high = np.quantile(drawn[1] - drawn[0], (0.025, 0.975))
            gain, p = paired_bootstrap(before, after)
            scores = [each.scores[metric].numbers for each in (scratch, tuned)]
            yield [task, name, *scores, f"{gain:+.2f} ({low:+.2f} to {high:+.2f})", f"{p:.3f}"]


def main() -> None:
    """Pretrain, fine-tune, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--texts", type=Path, required=True, help="what transfer_data.py wrote")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", default=",".join(BEGINNINGS))
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pretrain", action="store_true")
    parser.add_argument("--table", action="store_true")
    given = parser.parse_args()
    names, tasks = given.only.split(","), given.tasks.split(",")
    if given.pretrain:
        pretrain(given.texts, given.out)
    elif given.table:
        print(machine_line(1))
        heads = ["task", "pretraining", "random weights", "pretrained", "gain", "p"]
        print(markdown(heads, [*rows(names, tasks, given.texts, given.out, given.seed)]))
    else:
        for task in tasks:
            for name in names:
                fine_tune(name, task, given.texts, given.out, given.seed)


if __name__ == "__main__":
    main()
