"""Labels of a classifier: their names and numbers, stored in the run folder as `labels.json`."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from heed.core.errors import DataError, MissingInputError
from heed.core.json_text import parse_json
from heed.core.own_files import LARGE
from heed.core.run_files import RESTORE, RunFiles
from heed.metrics.classification import labels_of
from heed.nn.links import LINKS, Link
from heed.text.doctor.tables import is_number

LABELS = "labels.json"
THRESHOLD = 0.5
"""Probability from which a label is among several ones."""


@dataclass(frozen=True)
class Labels:
    """The labels of a run. A row's labels are text: a label, a JSON list of labels, or a number."""

    kind: str
    """"label", "labels" or "number"."""
    names: tuple[str, ...] = ()
    """In the order of their numbers; empty for numbers."""
    counts: tuple[int, ...] = ()
    """How often each occurs in training."""
    mean: float = 0.0
    """Of the training numbers."""
    scale: float = 1.0
    """Their standard deviation."""
    columns: tuple[str, ...] = ()
    """Headings of the columns of texts and labels, if the training table has any."""

    @staticmethod
    def of(kind: str, rows: Iterable[Sequence[str]], columns: Sequence[str]) -> Labels:
        """From the labels of each training row, the most frequent label first.

        Raises DataError if numbers are to be predicted and a label is none, and for fewer than two labels to choose
        from.
        """
        counts = Counter(label for labels in rows for label in labels)
        if kind == "number":
            if others := [label for label in counts if not is_number(label)]:
                raise DataError(
                    f"data.answer asks for numbers, but {len(others):,} of the labels are not numbers, such as "
                    f'{others[0]!r:.80}. Remove their rows, or set data.answer to "label".'
                )
            values = np.repeat(np.array(list(map(float, counts))), list(counts.values()))
            return Labels(kind, mean=float(values.mean()), scale=float(values.std()) or 1.0, columns=tuple(columns))
        if kind == "label" and len(counts) < 2:
            raise DataError(
                f"all rows of the training data have the same label{''.join(f': {label!r:.80}' for label in counts)}. "
                "A classifier needs two labels or more."
            )
        ranked = sorted(counts, key=lambda label: (-counts[label], label))
        return Labels(kind, tuple(ranked), tuple(counts[label] for label in ranked), columns=tuple(columns))

    def __len__(self) -> int:
        """Number of outputs."""
        return max(1, len(self.names))

    @property
    def link(self) -> Link:
        """The link from outputs to answers."""
        return LINKS[self.kind]

    @cached_property
    def numbers(self) -> dict[str, int]:
        """The number of each label."""
        return {name: number for number, name in enumerate(self.names)}

    def written(self, labels: Sequence[str]) -> str:
        """The labels of a row as text."""
        return json.dumps(list(labels), ensure_ascii=False) if self.kind == "labels" else labels[0]

    def known(self, labels: Sequence[str]) -> bool:
        """Whether a row with these labels can be learned."""
        return all(is_number(label) if self.kind == "number" else label in self.numbers for label in labels)

    def ids(self, text: str) -> list[int]:
        """The labels of a row as integers for a token store; a number as the bits of a float32."""
        if self.kind == "number":
            return [int(np.float32((float(text) - self.mean) / self.scale).view(np.uint32))]
        return [self.numbers[label] for label in (labels_of(text) if self.kind == "labels" else (text,))]

    def targets(self, ids: Sequence[Sequence[int]]) -> Tensor:
        """Targets [N, K] of `Link.full_loss`, from the integers of each row."""
        if self.kind == "number":
            values = np.array([row[0] for row in ids], dtype=np.uint32).view(np.float32)
            return torch.from_numpy(values.copy())[:, None]
        targets = torch.zeros(len(ids), len(self))
        places = [(row, int(number)) for row, numbers in enumerate(ids) for number in numbers]
        if places:
            targets[tuple(torch.tensor(places).T)] = 1
        return targets

    def answer(self, probabilities: Sequence[float]) -> str:
        """The best answer from the outputs of `Link.probabilities`."""
        if self.kind == "number":
            value = probabilities[0] * self.scale + self.mean
            return np.format_float_positional(value, precision=6, fractional=False, trim="-")
        if self.kind == "labels":
            pairs = zip(self.names, probabilities, strict=True)
            return json.dumps([name for name, p in pairs if p > THRESHOLD], ensure_ascii=False)
        return self.names[int(np.argmax(probabilities))]

    def write(self, files: RunFiles) -> None:
        """Write the labels into a run folder."""
        with files.write(LABELS, "w") as file:
            json.dump(asdict(self), file, ensure_ascii=False, indent=1)

    @staticmethod
    def read(files: RunFiles) -> Labels:
        """The labels of a run folder. Raises MissingInputError or DataError."""
        try:
            fields: dict[str, Any] = parse_json(files.read(LABELS, LARGE))
            lists = {name: tuple(fields.pop(name)) for name in ("names", "counts", "columns")}
            labels = Labels(**{**fields, **lists})
            if labels.kind not in LINKS or not math.isfinite(labels.mean + labels.scale):
                raise ValueError(f"kind {labels.kind!r}")
            return labels
        except MissingInputError:
            raise
        except (ValueError, TypeError, LookupError) as error:
            raise DataError(f"{files.folder / LABELS} is damaged ({error}). {RESTORE}") from error
