"""Calibration of confidences: the probability that a translation is good, learned from validation data.

The validation sources are translated with the user's options, each output is labelled as good or bad (see
`heed.inference.output_checks`), and a logistic regression learns to predict the label. Printed and plotted figures are
cross-validated. The same data selected the weights of the run, so confidences on other text may be slightly too high.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from heed.core.errors import DataError
from heed.core.files import sha256_file, storage_errors
from heed.core.run_files import WEIGHTS, RunFiles
from heed.data.validation import read_valid
from heed.decoding.hypothesis import Hypothesis
from heed.decoding.options import SearchOptions
from heed.inference.output_checks import FEATURES, Confidence, features, is_defective
from heed.metrics import sentence_scores
from heed.metrics.calibration import (
    Bin,
    LogisticRegression,
    area_under_curve,
    cross_validated,
    expected_calibration_error,
    reliability,
)
from heed.run import Run

PICTURE = "reliability.png"


@dataclass(frozen=True)
class Calibration:
    """Learned confidences, and how well calibrated they are."""

    confidence: Confidence
    bins: Sequence[Bin]
    """Cross-validated."""
    auc: float
    """Probability that a good output has a higher confidence than a bad one."""

    def to_json(self) -> dict[str, Any]:
        """All figures as JSON values."""
        bins = [{"count": b.count, "confidence": b.probability, "share_good": b.share} for b in self.bins]
        return {**self.confidence.model_dump(), "auc": self.auc, "reliability": bins}

    def render(self) -> str:
        """A table as text."""
        learned = self.confidence
        lines = [
            f"confidence from {learned.num_sentences:,} validation sentences, beam {learned.beam_size}: "
            f"a translation is good if its sentence chrF2 is {learned.good_chrf:.1f} or more",
            f"expected calibration error {learned.calibration_error:.3f}, area under the curve {self.auc:.3f} "
            "(both by 5-fold cross-validation)",
            "  confidence   good   sentences",
        ]
        lines += [f"  {b.probability:10.2f}   {b.share:4.2f}   {b.count:9,}" for b in self.bins]
        weights = zip(FEATURES, learned.weights, strict=True)
        return "\n".join([*lines, "weights: " + ", ".join(f"{name} {weight:+.2f}" for name, weight in weights)])


def calibrate(run: Run, options: SearchOptions) -> Calibration:
    """Learn the confidence of a run from its validation data; write `confidence.json` and the plot into its folder.

    Raises DataError for too few sentences, if the validation data is missing, or if the weights change meanwhile.
    """
    weights = sha256_file(run.files.path(WEIGHTS))
    pairs = read_valid(run.folder)
    run = run.predictor.of_validation()
    run.predictor.confidence = None  # will be replaced, and may be damaged
    hypotheses = run.predictor.translator.translate([pair[0] for pair in pairs], options)
    if not options.guard:  # its flags are a feature even if it is off
        flags = run.predictor.translator.flags([pair[0] for pair in pairs], hypotheses)
        hypotheses = [replace(h, flags=flags_of_one) for h, flags_of_one in zip(hypotheses, flags, strict=True)]
    scored = [(h, pair[-1]) for h, pair in zip(hypotheses, pairs, strict=True) if h.token_log_probs]
    calibration = learn([h for h, _ in scored], [reference for _, reference in scored], options.beam_size)
    if sha256_file(run.files.path(WEIGHTS)) != weights:
        raise DataError(f"{run.folder} got other weights while its confidence was learned. Wait until they are final.")
    with storage_errors("write the confidence", path=run.folder):
        calibration.confidence.write(run.folder)
        draw(run.folder / PICTURE, calibration)
    return calibration


def learn(hypotheses: Sequence[Hypothesis], references: Sequence[str], beam_size: int) -> Calibration:
    """Learn the confidence from translations and their references."""
    scores = np.array(sentence_scores("chrf", [h.text for h in hypotheses], references))
    median = float(np.median(scores))
    good = scores >= median
    x = np.array([features(h) for h in hypotheses])
    out_of_fold = cross_validated(x, good)
    defective = np.array([is_defective(h) for h in hypotheses])
    limit = (1 + int(good[defective].sum())) / (10 + int(defective.sum()))
    out_of_fold[defective] = np.minimum(out_of_fold[defective], limit)
    bins = reliability(out_of_fold, good)
    fitted = LogisticRegression.fit(x, good)
    mean, scale, weights = (tuple(values.tolist()) for values in (fitted.mean, fitted.scale, fitted.weights))
    confidence = Confidence(
        mean=mean, scale=scale, weights=weights, bias=fitted.bias, amiss_good=limit, good_chrf=median,
        num_sentences=len(scores), beam_size=beam_size, calibration_error=expected_calibration_error(bins),
    )  # fmt: skip
    return Calibration(confidence, bins, area_under_curve(out_of_fold, good))


def draw(path: Path, calibration: Calibration) -> bool:
    """Plot the reliability diagram, confidences against shares of good outputs; return False without matplotlib."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        return False
    figure = Figure(figsize=(4.8, 4.8), layout="constrained")
    axes = figure.subplots()
    axes.plot([0, 1], [0, 1], color="#8a8a8a", linestyle=":", label="perfectly calibrated")
    bins = calibration.bins
    axes.plot([b.probability for b in bins], [b.share for b in bins], color="#33658a", marker="o", label="measured")
    for b in bins:
        axes.annotate(f"{b.count}", (b.probability, b.share), textcoords="offset points", xytext=(6, -10), fontsize=8)
    axes.set(xlabel="confidence", ylabel="share of good translations", xlim=(0, 1), ylim=(0, 1), aspect="equal")
    axes.set_title(f"validation, cross-validated: ECE {calibration.confidence.calibration_error:.3f}")
    axes.grid(alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False, loc="upper left")
    FigureCanvasAgg(figure)
    with RunFiles(path.parent).write_page(path.name) as file:
        figure.savefig(file, dpi=120, format="png")
    return True
