"""Training of word vectors, in words of text per second, in turn with gensim's.

Both train skip-gram vectors of 100 features with 5 negatives, window 5, subsampling at 0.001 and one thread for one
epoch of the same lower-cased text. Each side runs in its own process, and they take turns. gensim runs in the Python
that `--gensim` names, so that it need not be installed next to heed; without it, heed is measured alone.

    python benchmarks/word_vectors.py --text wiki.train.tokens --gensim venv/bin/python
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

GENSIM = """
import json, sys, time
from gensim.models import Word2Vec
lines = [line.lower().split() for line in open(sys.argv[1], encoding="utf-8")]
model = Word2Vec(vector_size=100, window=5, min_count=5, workers=1, sg=1, negative=5, sample=1e-3, epochs=1, seed=1)
model.build_vocab(lines)
wall, processor = time.perf_counter(), time.process_time()
model.train(lines, total_examples=len(lines), epochs=1)
words = sum(map(len, lines))
print(json.dumps([words / (time.perf_counter() - wall), words / (time.process_time() - processor)]))
"""
HEED = """
import json, sys, time, torch, heed
from heed.training.trainer import Trainer
torch.set_num_threads(1)
run, rates = Trainer.run, []
def timed(trainer):
    wall, processor = time.perf_counter(), time.process_time()
    outcome = run(trainer)
    words = outcome.progress.step * trainer.config.tokens_per_batch
    rates[:] = [words / (time.perf_counter() - wall), words / (time.process_time() - processor)]
    return outcome
Trainer.run = timed
keys = {"task": "word-vectors", "data.text": sys.argv[1], "data.hold_out": 20, "training.max_epochs": 1,
        "training.tokens_per_batch": 1000, "training.eval_every": 10**6, "training.save_every": 10**6}
heed.train(keys, sys.argv[2], overwrite=True, quiet=True)
print(json.dumps(rates))
"""


def measured(python: str, code: str, *arguments: str) -> list[float]:
    """Words per second of wall time and of processor time."""
    done = subprocess.run([python, "-c", code, *arguments], capture_output=True, check=True, text=True)
    rates: list[float] = json.loads(done.stdout.splitlines()[-1])
    return rates


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--text", required=True, help="text, one sentence or paragraph a line")
    parser.add_argument("--gensim", help="the Python that has gensim")
    parser.add_argument("--turns", type=int, default=3)
    arguments = parser.parse_args()
    ours, theirs = [], []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(arguments.turns):
            ours.append(measured(sys.executable, HEED, str(Path(arguments.text).resolve()), f"{folder}/run"))
            if arguments.gensim:
                theirs.append(measured(arguments.gensim, GENSIM, arguments.text))
    for kind, place in (("wall time", 0), ("processor time", 1)):
        line = f"{kind}: heed {statistics.median(each[place] for each in ours):,.0f} words/s"
        if theirs:
            ratios = [own[place] / other[place] for own, other in zip(ours, theirs, strict=True)]
            line += f", gensim {statistics.median(each[place] for each in theirs):,.0f}"
            line += f", ratio {statistics.median(ratios):.2f}x ({min(ratios):.2f}-{max(ratios):.2f})"
        print(line)


if __name__ == "__main__":
    main()
