"""Leakage: test lines that are in a run's training or validation data.

Lines are compared by their hashes after the run's own normalisation. A line counts as trained on if either of its sides
is in the training data: neither a memorised source nor a sentence that was often generated tests translation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heed.data.line_hashes import LineHashes
from heed.data.validation import VALID, Row, read_valid
from heed.run import Run
from heed.tasks.prepare import LINES_SEEN

MIN_CHARACTERS = 20
"""Shorter lines of a monolingual text recur in any text, so they are not compared."""

_NAMES = {"pair": "as pairs", "src": "by their source", "tgt": "by their reference"}


@dataclass(frozen=True)
class Leakage:
    """Numbers of test lines that are in the data of a run."""

    num_lines: int
    in_training: Mapping[str, int]
    """Lines whose source (`src`), reference (`tgt`) or pair of both (`pair`) is in the training data."""
    in_validation: int
    """Lines with a side in the validation data."""
    lines: tuple[int, ...]
    """The lines with a side in the training data, counted from 1."""
    num_compared: int
    """Lines long enough to be compared."""

    def render(self, name: str, unit: str = "line") -> str:
        """A sentence; `unit` names a row of the test set."""
        if not self.num_compared:
            return f"not checked, as {unit}s of fewer than {MIN_CHARACTERS} characters recur in any text"
        whole = self.num_compared == self.num_lines
        long = "" if whole else f" of {MIN_CHARACTERS} characters or more"
        text = f"no test {unit}{long} is in the training data of {name}"
        if self.lines:
            percent = 100 * len(self.lines) / self.num_compared
            share = f"{len(self.lines):,} of {self.num_compared:,} test {unit}s{long} ({percent:.1f} %)"
            kinds = [f"{self.in_training[kind]:,} {how}" for kind, how in _NAMES.items() if kind in self.in_training]
            text = f"{share} are in the training data of {name}" + f": {', '.join(kinds)}" * (len(kinds) > 1)
        return text + f"; {self.in_validation:,} in its validation data" * (self.in_validation > 0)


def check_leakage(
    run: Run, rows: Sequence[Row], valid_rows: Sequence[Row] | None = None, kinds: Sequence[str] = tuple(_NAMES),
    are_normalised: bool = False,
) -> Leakage | None:  # fmt: skip
    """Look up test rows, (source, reference) or (line,), in the run's data; None if it has no fingerprints.

    `valid_rows`: the validation data in the same form; None: as it is in the run folder.
    `kinds`: what counts as repeated; references that are labels, which recur in any data, do not.
    `are_normalised`: whether all these rows are normalised already, such as texts that were joined after that.
    """
    fingerprints = LineHashes.open(run.files, LINES_SEEN)
    if fingerprints is None:
        return None
    if valid_rows is None:
        valid_rows = [row[:2] for row in read_valid(run.folder)] if run.files.has(VALID) else []
    if not are_normalised:
        normalise = run.recipe.data.normaliser.apply
        rows, valid_rows = ([tuple(map(normalise, row)) for row in each] for each in (rows, valid_rows))
    compared = np.array([len(row) > 1 or len(row[0]) >= MIN_CHARACTERS for row in rows], dtype=bool)
    in_training = {kind: which & compared for kind, which in fingerprints.found(rows).items() if kind in kinds}
    valid = LineHashes.of(valid_rows)
    in_valid = {kind: which for kind, which in valid.found(rows).items() if kind in kinds}
    return Leakage(
        num_lines=len(rows),
        in_training={kind: int(which.sum()) for kind, which in in_training.items()},
        in_validation=int((_any(in_valid, len(rows)) & compared).sum()),
        lines=tuple((np.flatnonzero(_any(in_training, len(rows))) + 1).tolist()),
        num_compared=int(compared.sum()),
    )


def _any(seen: Mapping[str, NDArray[np.bool_]], num_rows: int) -> NDArray[np.bool_]:
    return np.logical_or.reduce(list(seen.values())) if seen else np.zeros(num_rows, dtype=bool)
