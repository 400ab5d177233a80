"""Several trained translators of one vocabulary put into one: by their probabilities, or as the mean of branches.

    python benchmarks/one_model.py tokens runs/seed-1 runs/seed-2 --out runs/one --updates 3324 -- \\
        --training.lr=0.002 --training.warmup_steps=200
    python benchmarks/one_model.py branches runs/seed-1 --out runs/branches --updates 2216 -- --training.lr=0.0012

- `tokens`: a student that begins with the first run's weights and learns, at each token, the mean of the runs'
  distributions (token-level distillation, Kim & Rush 2016, section 3.1), `--weight` times, and the pairs.
- `branches`: two trainings with other seeds go on from the run's weights, and their weights are averaged (Wortsman et
  al. 2022, "Model soups").

`--part src=F,tgt=F` trains on the translations of `heed distill`, too. After `--` come keys that change the first
run's recipe. Finished trainings are not repeated. Compare the runs with `heed evaluate`; `heed distill` makes a student
of whole translations.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from variants import split_keys

import heed
from heed.core.run_files import RECIPE
from heed.nn.device import set_threads
from heed.run import Run, with_other_weights
from heed.tasks import generation
from heed.tasks.prepare import vocabulary_digests
from heed.training.weights import mean_of

SEEDS = (11, 12)
"""Of the branches."""


def train(run: Path, folder: Path, keys: dict[str, Any]) -> None:
    """Train from the weights of a run, with its recipe and changes, unless it is done."""
    if not (folder / "report.md").is_file():
        heed.train(run / RECIPE, folder, keys, init=run, device="cpu", overwrite=True)


class TokenDistillation:
    """A loss in place of `chain_rule_loss`: the cross-entropy to the teachers' mean distribution, and to the truth."""

    def __init__(self, teachers: Sequence[Path], weight: float) -> None:
        if len({str(vocabulary_digests(Run(folder).tokenizers)) for folder in teachers}) > 1:
            sys.exit("error: the runs have different vocabularies.")
        self.teachers = [Run(folder).model.to(torch.bfloat16).requires_grad_(False).eval() for folder in teachers]
        self.weight = weight
        self.plain = generation.chain_rule_loss

    def __call__(
        self, model: Any, batch: Any, smoothing: Any, dropout_keys: Any, carried: Any = None, truth: float = 1.0
    ) -> generation.Loss:
        """The loss of a batch; without dropout, of the truth alone."""
        assert smoothing.kind == "uniform" and truth == 1 and carried is None
        if dropout_keys is None:
            return self.plain(model, batch, smoothing, dropout_keys, carried, truth)
        mask, expected = batch.tgt_mask, batch.tgt_out[batch.tgt_mask][:, None]
        features, _ = model.advance(batch.tgt_in, model.start(batch.source, 1, dropout_keys=dropout_keys))
        log_probs = model.head.log_probs(features[mask])
        with torch.no_grad():
            believed = torch.zeros_like(log_probs)
            for teacher in self.teachers:
                theirs, _ = teacher.advance(batch.tgt_in, teacher.start(batch.source, 1))
                believed += teacher.head.log_probs(theirs[mask]).exp() / len(self.teachers)
        nll = -log_probs.gather(1, expected).sum()
        of_truth = (1 - smoothing.epsilon) * nll - smoothing.epsilon * log_probs.mean(-1).sum()
        of_teachers = -(believed * log_probs).sum()
        return generation.Loss((1 - self.weight) * of_truth + self.weight * of_teachers, nll.detach())


def main() -> None:
    """Train a student, or branches and their mean."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("method", choices=("tokens", "branches"))
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    parser.add_argument("--out", type=Path, required=True, help="the student, or the mean of the branches")
    parser.add_argument("--updates", type=int, required=True)
    parser.add_argument("--weight", type=float, default=0.7, help="of the teachers in the loss of a token")
    parser.add_argument("--part", default="", metavar="src=F,tgt=F", help="more training data")
    words, keys = split_keys(sys.argv[1:])
    given = parser.parse_args(words)
    keys |= {"training.max_steps": given.updates, "training.max_minutes": 0, "training.patience": 0}
    first = given.runs[0]
    if given.part:
        part = {side: str(Path(path).absolute()) for side, _, path in (w.partition("=") for w in given.part.split(","))}
        old = [each.model_dump(exclude_defaults=True) for each in Run(first).recipe.data.parts]
        keys["data.parts"] = [*old, {**part, "by_model": True}]
    set_threads(1)
    if given.method == "tokens":
        generation.chain_rule_loss = TokenDistillation(given.runs, given.weight)
        train(first, given.out, keys)
        return
    if len(given.runs) > 1:
        sys.exit("error: branches are of one run.")
    branches = [given.out.with_name(f"{given.out.name}-{seed}") for seed in SEEDS]
    for seed, branch in zip(SEEDS, branches, strict=True):
        train(first, branch, {**keys, "seed": seed})
    if (given.out / RECIPE).exists():
        return
    mean = mean_of([Run(branch).weights() for branch in branches])
    with with_other_weights(Run(first), given.out, mean, {"averaged": ", ".join(map(str, branches))}):
        pass


if __name__ == "__main__":
    main()
