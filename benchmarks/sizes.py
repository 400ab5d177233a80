"""Sizes of a Transformer at equal training time: which width and depth is best on your data?

    python benchmarks/sizes.py --out runs/sizes --updates 4180 --threads 1 -- runs/enfr/scorer/recipe.toml --seed 1

After `--` come the flags that all trainings share: a recipe, and keys. Sizes are written MODEL/INNER/HEADS/LAYERS, as
in 192/384/3/4+4: features of the model, features inside its feed-forward layers, attention heads, and encoder + decoder
layers. The first one is trained for --updates. The time of an update of each size is measured in turns, so that other
work on the machine slows all of them, and every other size is trained for as many updates as fit into the time of the
first. The same command again resumes; `--table` prints the finished trainings, and `--time` only measures.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

import torch
from experiments import Experiment, cells, compare, machine_line, markdown, train
from variants import value_of

from heed.core.environment import num_cpus
from heed.core.toml import Document, read_toml
from heed.nn.device import set_threads
from heed.recipe import build_recipe
from heed.tasks import task_type
from heed.training.trainer import Trainer

SIZES = [
    "128/256/2/4+4", "128/256/2/3+3", "128/256/2/6+6", "128/512/2/4+4", "128/512/2/3+3", "96/192/2/4+4",
    "96/192/2/6+6", "96/384/2/4+4", "192/384/3/4+4", "192/384/3/3+3", "192/384/3/2+2", "256/512/4/2+2",
]  # fmt: skip
TOKENS_PER_ROW = 9.0
"""Length of the rows of the batch that is timed."""
WARM_UP, ROUNDS = 3, 40


def flags_of(size: str) -> list[str]:
    """The flags of a size such as 192/384/3/4+4."""
    try:
        width, inner, heads, layers = size.split("/")
        encoder, decoder = layers.split("+")
    except ValueError:
        sys.exit(f"error: a size is MODEL/INNER/HEADS/LAYERS, such as 192/384/3/4+4, got {size!r}.")
    return [
        f"--model.d_model={width}", f"--model.d_ff={inner}", f"--model.num_heads={heads}",
        f"--model.num_encoder_layers={encoder}", f"--model.num_decoder_layers={decoder}",
    ]  # fmt: skip


def relative_times(sizes: list[str], document: Document, keys: dict[str, object], folder: Path) -> dict[str, float]:
    """Time of an update of each size, divided by that of the first: the median over the rounds of their ratio."""
    cpu = torch.device("cpu")
    trainers = []
    for size in sizes:
        own = dict(flag.removeprefix("--").split("=") for flag in flags_of(size))
        recipe = build_recipe(document, {**keys, **{name: int(value) for name, value in own.items()}})
        task_class = task_type(recipe.task)
        vocabularies = task_class.vocabularies(dict.fromkeys(task_class.sides, recipe.tokenizer.vocab_size))
        task = task_class(folder, recipe, {}, cpu)
        batch = task.trial_batch(vocabularies, TOKENS_PER_ROW, 1)
        assert batch is not None, "translation has a trial batch"
        model = task_class.new_model(recipe, vocabularies)
        width = int(own["model.d_model"])
        trainers.append((Trainer(recipe.training, model, task, folder, 1, cpu, width, quiet=True), batch))
    ratios: list[list[float]] = [[] for _ in sizes]
    for number in range(WARM_UP + ROUNDS):
        seconds = []
        for trainer, batch in trainers:
            begin = time.perf_counter()
            trainer.train_step([batch])
            seconds.append(time.perf_counter() - begin)
        if number >= WARM_UP:
            for of_one, taken in zip(ratios, seconds, strict=True):
                of_one.append(taken / seconds[0])
    return dict(zip(sizes, map(statistics.median, ratios), strict=True))


def main() -> None:
    """Measure, train and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/sizes"), help="folder of the runs (default runs/sizes)")
    parser.add_argument("--updates", type=int, default=0, help="updates of the first size")
    parser.add_argument("--sizes", default=",".join(SIZES), help="comma-separated sizes")
    parser.add_argument("--threads", type=int, default=num_cpus(), help="CPU threads (default: all cores)")
    parser.add_argument("--time", action="store_true", help="measure the time of updates, and train nothing")
    parser.add_argument("--table", action="store_true", help="train nothing, compare the finished runs")
    parser.add_argument("train", nargs="+", metavar="-- FLAGS", help="a recipe file, and keys as --KEY=VALUE")
    given = parser.parse_args()
    if not (given.updates or given.time or given.table):
        sys.exit("error: give the updates of the first size: --updates N.")
    sizes = [size.strip() for size in given.sizes.split(",")]
    set_threads(given.threads)
    times = given.out / "times.json"
    relative = json.loads(times.read_text(encoding="utf-8")) if times.is_file() and not given.time else {}
    if list(relative)[:1] != sizes[:1] or not set(sizes) <= set(relative):  # measured for other sizes, or not at all
        recipe = Path(next((word for word in given.train if word.endswith(".toml")), ""))
        if not recipe.is_file():
            sys.exit("error: give a recipe file, and keys as --KEY=VALUE, after `--`.")
        words = [word.removeprefix("--").partition("=") for word in given.train if word.startswith("--")]
        keys: dict[str, object] = {name: value_of(value) for name, equals, value in words if equals}
        with tempfile.TemporaryDirectory() as folder:
            relative = relative_times(sizes, read_toml(recipe), keys, Path(folder))
        given.out.mkdir(parents=True, exist_ok=True)
        times.write_text(json.dumps(relative, indent=1), encoding="utf-8")
    print("\n".join(f"{size}: {relative[size]:.2f} times the time of an update" for size in sizes), file=sys.stderr)
    if given.time:
        return
    flags = {
        size: [*flags_of(size), f"--max-steps={round(given.updates / relative[size])}", "--training.patience=0"]
        for size in sizes
    }
    experiments = [Experiment(size, flags[size]) for size in sizes]
    if not given.table:
        train(experiments, given.out, given.threads, given.train)
    rows = compare(experiments, given.out, given.threads)
    heads = ["size", "time of an update", "updates", "BLEU", "against the first", "chrF2", "against the first"]
    lines = [
        [row.name, f"{relative[row.name]:.2f}", f"{row.updates or 0:,}", *cells(row, "bleu"), *cells(row, "chrf")]
        for row in rows
    ]
    print(f"{rows[0].evaluation.test.label}, beam of the recipe; {machine_line(given.threads)}\n")
    print(markdown(heads, lines))


if __name__ == "__main__":
    main()
