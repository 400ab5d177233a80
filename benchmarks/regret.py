"""Regret of online logistic regression: proper learners against Bayesian averaging, as a table and a picture.

Two sources of examples in the plane: one on which each proper learner pays the root of the number of examples
(`opposed`), and one from a logistic model of large norm (`well_specified`). Regret is the loss more than the best
weights of the ball in hindsight, averaged over seeds and divided by the number of examples. The slopes are fitted over
the last two decades.

    python benchmarks/regret.py --out docs/pictures/regret.png
"""

from __future__ import annotations

import argparse

import numpy as np
from numpy.typing import NDArray

from heed.statistical.online_logistic import (
    Quadrature,
    Source,
    counts_of,
    gradient_losses,
    kakade_ng_bound,
    leader_losses,
    losses,
    opposed,
    well_specified,
)

Floats = NDArray[np.float64]
RADIUS = 100.0
LEARNERS = ("maximum likelihood", "MAP", "online gradient", "Bayesian average")


def points_of(radius: float, wide: float, step: float) -> Floats:
    """Weights of the ball within `wide` of the vertical axis and above -`wide`."""
    across, up = np.arange(-wide, wide + step / 2, step), np.arange(-wide, radius + step / 2, step)
    points = np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2)
    return points[(points**2).sum(axis=1) <= radius**2]


def regrets(source: Source, lengths: list[int], seed: int) -> Floats:
    """The regret of each learner after each number of examples: [4, lengths]."""
    points, quadrature = points_of(RADIUS, 40.0, 1.0), Quadrature.gaussian(2, RADIUS, 801, reach=4)
    sequence = source.draw(max(lengths), seed)
    each = [
        leader_losses(points, source.kinds, sequence),
        leader_losses(points, source.kinds, sequence, penalty=1 / RADIUS**2),
        gradient_losses(source.kinds, sequence, RADIUS),
    ]
    counts, table = counts_of(sequence, len(source.kinds)), losses(points, source.kinds)
    best = np.array([(counts[n] @ table).min() for n in lengths])
    of_bayes = np.array([quadrature.cumulative_loss(source.kinds, counts[n]) for n in lengths])
    return np.array([*([each_loss[:n].sum() for n in lengths] for each_loss in each), of_bayes]) - best


def slope(lengths: list[int], values: Floats) -> float:
    """The slope on log axes over the last two decades; NaN where a value is not positive."""
    last = np.array(lengths) >= max(lengths) / 100
    if (values[last] <= 0).any():
        return float("nan")
    return float(np.polyfit(np.log(np.array(lengths)[last]), np.log(values[last]), 1)[0])


def draw(path: str, lengths: list[int], found: dict[str, Floats], bound: Floats) -> None:
    """The picture of both sources."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
    number = np.array(lengths, dtype=float)
    for axis, (title, values) in zip(axes, found.items(), strict=True):
        for name, curve, style in zip(LEARNERS, values, ("o-", "s--", "^-", "D-"), strict=True):
            shown = np.where(curve > 0, curve, np.nan) / number
            label = name + (" (negative: not shown)" if not (curve > 0).any() else "")
            axis.loglog(number, shown, style, markersize=4, label=label)
        axis.loglog(number, bound / number, "k-", linewidth=1, label="bound of Kakade & Ng")
        axis.loglog(number, 2 * number**-0.5, ":", color="grey", label="slope -1/2")
        axis.set_title(title)
        axis.set_xlabel("examples")
        axis.legend(fontsize=8, loc="lower left")
    axes[0].set_ylabel("regret per example (nats)")
    figure.savefig(path, dpi=110)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", help="the picture (PNG or SVG)")
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--log-length", type=int, default=15, help="examples: 2 to the power of this")
    arguments = parser.parse_args()
    lengths = [2**power for power in range(5, arguments.log_length + 1)]
    sources = {
        "opposed examples": opposed(RADIUS),
        "a logistic model of norm 20": well_specified(np.array([12.0, 16.0])),
    }
    found = {}
    for title, source in sources.items():
        values = np.mean([regrets(source, lengths, seed) for seed in range(arguments.seeds)], axis=0)
        found[title] = values
        print(f"\n{title}: regret after {', '.join(f'{n:,}' for n in lengths[::5])} examples, slope per example")
        for name, curve in zip(LEARNERS, values, strict=True):
            numbers = "  ".join(f"{value:9.2f}" for value in curve[::5])
            print(f"  {name:20} {numbers}  {slope(lengths, curve / np.array(lengths)):6.2f}")
    bound = np.array([kakade_ng_bound(np.array([0.0, RADIUS]), n, RADIUS) for n in lengths])
    numbers = "  ".join(f"{value:9.2f}" for value in bound[::5])
    print(f"  {'bound of Kakade & Ng':20} {numbers}  {slope(lengths, bound / np.array(lengths)):6.2f}")
    if arguments.out:
        draw(arguments.out, lengths, found, bound)


if __name__ == "__main__":
    main()
