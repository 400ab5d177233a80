"""Classifiers: training and prediction of the linear model in turn with other programs, and the latency of one text.

heed and scikit-learn fit a logistic regression with C = 10 over tf-idf of words 1-2 and of characters 2-5 inside words,
n-grams that occur twice, logarithms of counts, unit norm of each kind, on one thread and the same tables (columns
`label` and `text`). scikit-learn has its faster solver for the number of labels. fastText trains vectors of 100
features for words and pairs of words over 25 epochs, as in its tutorial, at half of that rate. Each runs in its own
process, and they take turns; the others run in the Pythons that `--scikit` and `--fasttext` name, so that they need not
be installed next to heed. The latency is that of `predict` in Python with one text of at most 200 characters at a time,
of every run that is given.

    python benchmarks/classification.py --train train.csv --test test.csv --scikit venv/bin/python --run runs/topics
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys

TABLES = """
import csv, json, sys, time
csv.field_size_limit(1 << 30)
def read(path):
    rows = list(csv.DictReader(open(path, encoding="utf-8", newline="")))
    return [row["text"] for row in rows], [row["label"] for row in rows]
train, test = read(sys.argv[1]), read(sys.argv[2])
def timed(work):
    begin = time.process_time()
    return work(), time.process_time() - begin
"""
SCIKIT = """
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline, make_union
words = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)
characters = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), min_df=2, sublinear_tf=True)
solver = "liblinear" if len(set(train[1])) == 2 else "lbfgs"
model = make_pipeline(make_union(words, characters), LogisticRegression(C=10, solver=solver, max_iter=1000))
fitting = timed(lambda: model.fit(*train))[1]
answers, predicting = timed(lambda: list(model.predict(test[0])))
"""
FASTTEXT = """
import os, random, tempfile, fasttext
def line(text):
    return " ".join(text.split())
def fit():
    with tempfile.NamedTemporaryFile("w", suffix=".txt", delete=False) as file:
        rows = [*zip(*train)]
        random.Random(1).shuffle(rows)  # it reads them in this order
        for text, label in rows:
            file.write(f"__label__{label.replace(' ', '_')} {line(text)}\\n")
    model = fasttext.train_supervised(file.name, dim=100, wordNgrams=2, epoch=25, lr=0.5, thread=1, verbose=0)
    os.unlink(file.name)
    return model
model, fitting = timed(fit)
answers, predicting = timed(lambda: [model.f.predict(line(text) + "\\n", 1, 0.0, "strict")[0][1] for text in test[0]])
answers = [answer.removeprefix("__label__").replace("_", " ") for answer in answers]
"""
HEED = """
import torch, heed
torch.set_num_threads(1)
from heed.models.linear import Examples, LinearConfig, LinearNgrams
from heed.nn.contract import Vocabularies
from heed.nn.links import LINKS
names = sorted(set(train[1]))
full = torch.nn.functional.one_hot(torch.tensor([names.index(label) for label in train[1]])).float()
targets = full[:, -LINKS["label"].columns(len(names)):].contiguous()
given = Examples(lambda: ((text,) for text in train[0]), targets, (), full[:0], "label")
model = LinearNgrams(LinearConfig(scaling="tfidf", strength=10), Vocabularies(0, len(names)))
fitting = timed(lambda: model.estimate(given))[1]
outputs, predicting = timed(lambda: model.logits([(text,) for text in test[0]]).argmax(1).tolist())
answers = [names[at] for at in outputs]
"""
RESULT = """
right = sum(a == b for a, b in zip(answers, test[1]))
print(json.dumps([fitting, predicting / len(test[0]), 100 * right / len(test[0])]))
"""
LATENCY = """
import statistics, torch, heed
torch.set_num_threads(1)
predictor = heed.load(sys.argv[3])
texts = [text for text in test[0] if len(text) <= 200][:300]
predictor.predict(texts[:20])
times, processor = [], []
for text in texts:
    begin = time.perf_counter()
    processor.append(1000 * timed(lambda: predictor.predict([text]))[1])
    times.append(1000 * (time.perf_counter() - begin))
print(json.dumps([len(times), statistics.median(times), statistics.median(processor)]))
"""
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def measured(python: str, code: str, *arguments: str) -> list[float]:
    """The numbers that a program prints at the end."""
    command = [python, "-c", TABLES + code, *arguments]
    done = subprocess.run(command, capture_output=True, check=True, text=True, env={**os.environ, **ONE_THREAD})
    numbers: list[float] = json.loads(done.stdout.splitlines()[-1])
    return numbers


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--train", required=True, help="training table (CSV with the columns label and text)")
    parser.add_argument("--test", required=True, help="test table")
    parser.add_argument("--scikit", help="the Python that has scikit-learn")
    parser.add_argument("--fasttext", help="the Python that has fasttext")
    parser.add_argument("--run", nargs="*", default=[], help="runs whose latency is measured")
    parser.add_argument("--turns", type=int, default=3)
    arguments = parser.parse_args()
    tables = arguments.train, arguments.test
    peers = {"scikit-learn": (arguments.scikit, SCIKIT), "fastText": (arguments.fasttext, FASTTEXT)}
    programs = {name: each for name, each in {"heed": (sys.executable, HEED), **peers}.items() if each[0]}
    results: dict[str, list[list[float]]] = {name: [] for name in programs}
    for _ in range(arguments.turns):
        for name, (python, code) in programs.items():
            results[name].append(measured(python, code + RESULT, *tables))
    for title, place, unit in (("training", 0, "s"), ("prediction of a text", 1, "s"), ("accuracy", 2, "%")):
        print(f"{title} ({unit + ' of processor time' if unit == 's' else unit})")
        for name, of_program in results.items():
            line = f"  {name:12} {statistics.median(each[place] for each in of_program):.4g}"
            if name != "heed" and unit == "s":
                ratios = [other[place] / own[place] for own, other in zip(results["heed"], of_program, strict=True)]
                line += f", {statistics.median(ratios):.2f} times heed's ({min(ratios):.2f}-{max(ratios):.2f})"
            print(line)
    for run in arguments.run:
        number, wall, processor = measured(sys.executable, LATENCY, *tables, run)
        print(
            f"{run}: {number:.0f} texts one at a time, p50 {wall:.2f} ms of wall time, {processor:.2f} ms of processor"
        )


if __name__ == "__main__":
    main()
