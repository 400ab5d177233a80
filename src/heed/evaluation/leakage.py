"""Does a test set stand in what a run was trained on, or chosen by?

Lines are compared by their hashes after the run's own normalisation. A line counts as trained on when either of its
sides is in the training data: a source that was learned by heart and a sentence that was written often are both no
test of translating.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heed.data.line_hashes import LineHashes
from heed.run import Run
from heed.tasks.prepare import LINES_SEEN, VALID, Row, read_valid

MIN_CHARACTERS = 20
"""Shorter lines of a monolingual text recur in any text, and are not compared."""

_NAMES = {"pair": "as pairs", "src": "by their source", "tgt": "by their reference"}


@dataclass(frozen=True)
class Leakage:
    """How many lines of a test set a run has met."""

    num_lines: int
    in_training: Mapping[str, int]
    """Lines whose source, reference (`src`, `tgt`) or both together (`pair`) are in the training data."""
    in_validation: int
    """Lines of which a side is in the validation data."""
    lines: tuple[int, ...]
    """The lines of which a side is in the training data, counted from 1."""
    num_compared: int
    """Lines that are long enough to be compared."""

    def render(self, name: str, counted: str = "line") -> str:
        """The same in words; `counted` is what the rows of the test set are."""
        if not self.num_compared:
            return f"not checked, as {counted}s of fewer than {MIN_CHARACTERS} characters recur in any text"
        whole = self.num_compared == self.num_lines
        long = "" if whole else f" of {MIN_CHARACTERS} characters or more"
        told = f"no test {counted}{long} stands in the training data of {name}"
        if self.lines:
            percent = 100 * len(self.lines) / self.num_compared
            share = f"{len(self.lines):,} of {self.num_compared:,} test {counted}s{long} ({percent:.1f} %)"
            kinds = [f"{self.in_training[kind]:,} {text}" for kind, text in _NAMES.items() if kind in self.in_training]
            told = f"{share} stand in the training data of {name}" + f": {', '.join(kinds)}" * (len(kinds) > 1)
        return told + f"; {self.in_validation:,} in its validation data" * (self.in_validation > 0)


def check_leakage(run: Run, rows: Sequence[Row]) -> Leakage | None:
    """Which test lines, (source, reference) or (line,), the run has met; None where it has no fingerprint."""
    known = LineHashes.open(run.folder / LINES_SEEN)
    if known is None:
        return None
    normalise = run.recipe.data.normaliser.apply
    rows = [tuple(normalise(side) for side in row) for row in rows]
    compared = np.array([len(row) > 1 or len(row[0]) >= MIN_CHARACTERS for row in rows], dtype=bool)
    found = {kind: which & compared for kind, which in known.found(rows).items()}
    valid = LineHashes.of(read_valid(run.folder)) if (run.folder / VALID).exists() else LineHashes({})
    return Leakage(
        num_lines=len(rows),
        in_training={kind: int(which.sum()) for kind, which in found.items()},
        in_validation=int((_any(valid.found(rows), len(rows)) & compared).sum()),
        lines=tuple((np.flatnonzero(_any(found, len(rows))) + 1).tolist()),
        num_compared=int(compared.sum()),
    )


def _any(found: Mapping[str, NDArray[np.bool_]], num_rows: int) -> NDArray[np.bool_]:
    return np.logical_or.reduce(list(found.values())) if found else np.zeros(num_rows, dtype=bool)
