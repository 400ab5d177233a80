"""Schedule-Free AdamW (Defazio et al. 2024) against heed's Adam, schedule and moving average, at equal updates.

    python benchmarks/schedule_free.py --out runs/schedule-free --updates 2400 --rates 4e-3,8e-3 -- \\
        --task=translation --data.src=train.en.gz --data.tgt=train.de.gz --data.valid_src=val.en.gz ...

After `--` come recipe keys that all runs share, or one recipe file and keys. Finished runs are not trained again. The
table has greedy BLEU on validation data after each validation.

The gradient is taken at y = (1 - β) z + β x with β = 0.9; z moves along it as by Adam without momentum, and x is the
mean of the z, weighted by the squared rates. The rate is constant after the warm-up, and x is validated.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from experiments import markdown
from torch import Tensor
from variants import greedy, value_of

import heed
from heed.nn.device import set_threads
from heed.training import optimizers, trainer
from heed.training.weights import MovingAverage


class ScheduleFree(torch.optim.Optimizer):
    """Schedule-Free AdamW without weight decay. The weights are y; z and x are in the state."""

    newest: ScheduleFree
    """The optimiser of the training that runs, for `MeanIterate`."""

    def __init__(self, groups: Any, lr: float, betas: tuple[float, float], eps: float, **others: Any) -> None:
        super().__init__(groups, {"lr": lr})
        self.beta, (_, self.decay), self.eps = 0.9, betas, eps
        self.num_updates, self.squared_rates = 0, 0.0
        ScheduleFree.newest = self

    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Make one update."""
        self.num_updates += 1
        rate = self.param_groups[0]["lr"]
        self.squared_rates += rate**2
        share = rate**2 / self.squared_rates
        for weight in (weight for group in self.param_groups for weight in group["params"]):
            state = self.state[weight]
            if not state:
                state.update(z=weight.clone(), x=weight.clone(), exp_avg_sq=torch.zeros_like(weight))
            squares = state["exp_avg_sq"].mul_(self.decay).addcmul_(weight.grad, weight.grad, value=1 - self.decay)
            length = (squares / (1 - self.decay**self.num_updates)).sqrt_().add_(self.eps)
            state["z"].addcdiv_(weight.grad, length, value=-rate)
            state["x"].lerp_(state["z"], share)
            weight.copy_(torch.lerp(state["z"], state["x"], self.beta))


class MeanIterate(MovingAverage):
    """The weights x, in place of a moving average."""

    @torch.no_grad()
    def update(self, weights: Mapping[str, Tensor]) -> None:
        """Copy x."""
        self.num_updates += 1
        for name, tensor in self.tensors.items():
            tensor.copy_(ScheduleFree.newest.state[weights[name]]["x"])


def run(recipe: Path | None, keys: dict[str, object], folder: Path) -> None:
    """Train, unless it is done."""
    if (folder / "report.md").is_file():
        return
    if recipe is None:
        heed.train(keys, folder, device="cpu", overwrite=True)
    else:
        heed.train(recipe, folder, keys, device="cpu", overwrite=True)


def main() -> None:
    """Train and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("runs/schedule-free"), help="folder of the runs")
    parser.add_argument("--updates", type=int, required=True, help="updates of each run")
    parser.add_argument("--rates", default="4e-3", help="comma-separated rates of Schedule-Free (default 4e-3)")
    parser.add_argument("words", nargs="+", metavar="-- KEYS", help="a recipe file, and recipe keys")
    given = parser.parse_args()
    recipe = next((Path(word) for word in given.words if not word.startswith("--")), None)
    pairs = [word.removeprefix("--").partition("=") for word in given.words if word.startswith("--")]
    keys = {name: value_of(value) for name, _, value in pairs}
    keys |= {"training.max_steps": given.updates, "training.max_minutes": 0, "training.patience": 0}
    set_threads(1)
    scores = {}
    print("Adam …", file=sys.stderr, flush=True)
    run(recipe, {**keys, "training.optimizer": "adam"}, given.out / "adam")
    scores["Adam"] = greedy(given.out / "adam")
    optimizers.OPTIMIZERS["adam"] = ScheduleFree
    trainer.running_average = lambda config, weights: MeanIterate(weights, decay=0.0)
    for rate in given.rates.split(","):
        print(f"Schedule-Free, {rate} …", file=sys.stderr, flush=True)
        changes = {"training.optimizer": "adam", "training.schedule": "constant", "training.lr": float(rate)}
        run(recipe, {**keys, **changes}, given.out / rate)
        scores[f"Schedule-Free, {rate}"] = greedy(given.out / rate)
    steps = sorted({step for of_one in scores.values() for step in of_one})
    rows = [[name, *(f"{own[step]:.1f}" if step in own else "" for step in steps)] for name, own in scores.items()]
    print(markdown(["optimiser", *(f"{step:,}" for step in steps)], rows))


if __name__ == "__main__":
    main()
