"""The Penn Treebank recipes, each trained for the same time, in one table.

    python benchmarks/ptb.py --data FOLDER --out runs/ptb --minutes 30 --threads 1 --test -- --dynamic sgd

FOLDER holds ptb.train.txt.xz, ptb.valid.txt.xz and ptb.test.txt.xz (the recipes say where they come from). Each recipe
is trained for `--minutes` (count-based models take seconds); `--only kn5,lstm` selects some of them. Finished runs are
not trained again and interrupted ones are resumed, so `timeout -s TERM 1h python benchmarks/ptb.py ...` does an hour
of the work. At the end, `heed evaluate` prints the table: on validation text, and with `--test` on test text.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from experiments import Budget, Experiment, folder_name, has_ended, train

from heed.core.environment import num_cpus

RECIPES = Path(__file__).resolve().parent.parent / "recipes" / "language-model"
PREFIX = "ptb-"


def recipes() -> dict[str, Path]:
    """The recipes by name; count-based models come first, as the baseline."""
    found = {path.stem.removeprefix(PREFIX): path for path in sorted(RECIPES.glob(f"{PREFIX}*.toml"))}
    return dict(sorted(found.items(), key=lambda item: "text_as" in item[1].read_text(encoding="utf-8")))


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--data", type=Path, required=True, help="folder of the texts")
    made.add_argument("--out", type=Path, default=Path("runs/ptb"), help="folder of the runs (default runs/ptb)")
    made.add_argument("--only", default="", help=f"comma-separated names: {', '.join(recipes())}")
    made.add_argument("--minutes", type=float, default=30.0, help="minutes of training for each recipe (default 30)")
    made.add_argument("--threads", type=int, default=num_cpus(), help="CPU threads (default: all cores)")
    made.add_argument("--table", action="store_true", help="train nothing, score the finished runs")
    made.add_argument("--test", action="store_true", help="score on test text too")
    made.add_argument("scoring", nargs="*", metavar="FLAGS", help="after --: arguments of `heed evaluate`")
    return made


def main() -> None:
    """Train the requested recipes and print the table."""
    given = parser().parse_args()
    known = recipes()
    names = [name.strip() for name in given.only.split(",") if name.strip()] or list(known)
    if unknown := [name for name in names if name not in known]:
        sys.exit(f"error: no recipe is called {', '.join(unknown)}. There are: {', '.join(known)}.")
    if not given.table:
        experiments = [Experiment(name, [str(known[name]), f"--data.dir={given.data}"]) for name in names]
        train(experiments, given.out, given.threads, Budget(given.minutes, 0).flags)
    ended = [given.out / folder_name(name) for name in names if has_ended(given.out / folder_name(name))]
    if not ended:
        sys.exit("error: no run has finished yet.")
    for part in ["valid", *(["test"] if given.test else [])]:
        text = given.data / f"ptb.{part}.txt.xz"
        words = [*map(str, ended), "--text", str(text), "--threads", str(given.threads), *given.scoring]
        if code := subprocess.run([sys.executable, "-m", "heed", "evaluate", *words], check=False).returncode:
            sys.exit(code)
        print()


if __name__ == "__main__":
    main()
