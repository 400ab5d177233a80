"""Quality experiments: the effect of single settings on a translator for your data.

    python benchmarks/levers.py --minutes 20 --threads 2 --out runs/levers -- \\
        --src train.en.gz --tgt train.de.gz --valid-src val.en.gz --valid-tgt val.de.gz

After `--` come the flags that all experiments share: the data, or a recipe. The baseline has no other flags. Each other
experiment changes one setting, and heed adapts the defaults that depend on it. For example, another vocabulary gives an
epoch more or fewer tokens, so the batch size may change (fix it with `--training.tokens_per_batch` after `--`); another
width has its own learning rate.

`--only r-drop,r-drop+bpe-dropout` trains these two and the baseline, `--add "huge=--model.d_model=512"` adds one of
your own, `--ensemble baseline,seed-2,seed-3` scores runs together. The same command again resumes; `--table` prints
the finished experiments. Differences have a p-value by paired bootstrap over the sentences (by randomisation for fewer
than 20), which does not account for the choice of the seed: `seed-2` and `seed-3` show that.
"""

from __future__ import annotations

import argparse
import shlex
import sys

from experiments import (
    Flags,
    Row,
    add_arguments,
    budget_of,
    cells,
    chosen,
    compare,
    machine_line,
    markdown,
    require_comparable,
    train,
)

BASELINE = "baseline"
LEVERS: dict[str, Flags] = {
    BASELINE: [],
    "seed-2": ["--seed=2"],
    "seed-3": ["--seed=3"],
    "post-norm": ["--model.norm=post"],
    "post-norm-slow": ["--model.norm=post", "--training.lr=1e-3", "--training.warmup_steps=1000"],
    "dropout-0.1": ["--model.dropout=0.1"],
    "dropout-0.2": ["--model.dropout=0.2"],
    "dropout-0.3": ["--model.dropout=0.3"],
    "dropout-0.4": ["--model.dropout=0.4"],
    "attention-dropout": ["--model.attention_dropout=0.1"],
    "bpe-dropout": ["--tokenizer.dropout=0.1"],
    "vocabulary-1000": ["--tokenizer.vocab_size=1000"],
    "vocabulary-2000": ["--tokenizer.vocab_size=2000"],
    "vocabulary-8000": ["--tokenizer.vocab_size=8000"],
    "joint": ["--tokenizer.joint=true"],
    "separate": ["--tokenizer.joint=false", "--model.tie=target"],
    "unigram": ["--tokenizer.kind=unigram"],
    "layers-2": ["--model.num_encoder_layers=2", "--model.num_decoder_layers=2"],
    "layers-3": ["--model.num_encoder_layers=3", "--model.num_decoder_layers=3"],
    "layers-5": ["--model.num_encoder_layers=5", "--model.num_decoder_layers=5"],
    "deep-encoder": ["--model.num_encoder_layers=6", "--model.num_decoder_layers=2"],
    "narrow": ["--model.d_model=64", "--model.d_ff=128"],
    "wide": ["--model.d_model=192", "--model.d_ff=384", "--model.num_heads=3"],
    "wider": ["--model.d_model=256", "--model.d_ff=1024", "--model.num_heads=4"],
    "gelu": ["--model.activation=gelu"],
    "r-drop": ["--training.r_drop=5"],
    "r-drop-1": ["--training.r_drop=1"],
    "no-smoothing": ["--training.label_smoothing=0"],
    "smoothing-0.2": ["--training.label_smoothing=0.2"],
    "no-average": ["--training.average=none"],
    "average-last": ["--training.average=last"],
    "batches-1024": ["--training.tokens_per_batch=1024"],
    "batches-2048": ["--training.tokens_per_batch=2048"],
    "batches-4096": ["--training.tokens_per_batch=4096"],
    "lr-1e-3": ["--training.lr=1e-3"],
    "lr-2e-3": ["--training.lr=2e-3"],
    "lr-4e-3": ["--training.lr=4e-3"],
    "lr-8e-3": ["--training.lr=8e-3"],
    "recurrent": ["--model.kind=rnn_attention"],
}
"""The flags that each experiment changes."""


def added(texts: list[str]) -> dict[str, Flags]:
    """The user's own experiments, given as `NAME=FLAGS`."""
    found: dict[str, Flags] = {}
    for text in texts:
        name, equals, flags = text.partition("=")
        if not (name and equals and flags.startswith("--")):
            sys.exit(f'error: --add is "NAME=--KEY=VALUE ...", got {text!r}.')
        if LEVERS.get(name, shlex.split(flags)) != shlex.split(flags):
            sys.exit(f"error: --add {name}: an experiment with this name and other flags exists; choose another name.")
        found[name] = shlex.split(flags)
    return found


def report(rows: list[Row]) -> str:
    """The results as a table."""
    heads = ["experiment", "BLEU", "against the first", "chrF2", "against the first", "updates", "minutes", "flags"]
    lines = []
    for row in rows:
        spent = [f"{row.updates:,}" if row.updates else "", f"{row.minutes:.1f}" if row.minutes else ""]
        lines.append([row.name, *cells(row, "bleu"), *cells(row, "chrf"), *spent, " ".join(row.flags)])
    signatures = [score.signature for name, score in rows[0].evaluation.scores.items() if name in ("bleu", "chrf")]
    return "\n".join([markdown(heads, lines), "", *signatures])


def main() -> None:
    """Train and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add_arguments(parser, "runs/levers")
    parser.add_argument("--add", action="append", default=[], metavar='"NAME=FLAGS"', help="an experiment of your own")
    parser.add_argument(
        "--ensemble",
        action="append",
        default=[],
        metavar="NAME,NAME",
        help="runs to score as an ensemble, in one more row",
    )
    given = parser.parse_args()
    budget = budget_of(given)
    own = added(given.add)
    experiments = chosen({**LEVERS, **own}, given.only, BASELINE, own=list(own))
    ensembles = [names.split(",") for names in given.ensemble]
    if missing := {name for names in ensembles for name in names} - {it.name for it in experiments}:
        sys.exit(f"error: --ensemble has {', '.join(sorted(missing))}, which --only has not.")
    if not given.table:
        require_comparable(experiments, given.train)
        train(experiments, given.out, given.threads, [*given.train, *budget.flags])
    rows = compare(experiments, given.out, given.threads, ensembles=ensembles)
    print(f"{rows[0].evaluation.test.label}, beam of the recipe; {machine_line(given.threads)}\n\n{report(rows)}")


if __name__ == "__main__":
    main()
