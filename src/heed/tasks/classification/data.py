"""The `[data]` and `[head]` tables of a classifier's recipe."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from heed.core.config import Config
from heed.nn.pooling import Pooling
from heed.tasks.data import DataConfig
from heed.text.readers.labelled import LabelledTable

Answer = Literal["auto", "label", "labels", "number"]


class TableData(DataConfig):
    """A table of texts and labels. Paths are relative to `dir`."""

    path_keys = ("table", "valid_table")

    table: str = ""
    """Training table: .csv, .tsv, .jsonl or .parquet."""
    valid_table: str = ""
    """Validation table; empty: rows are held out of the training table."""
    text_column: list[int | str] = Field(default=[], max_length=2)
    """Columns of the texts, by number (from 1) or heading: one, or two of pairs; empty: chosen."""
    label_column: int | str | None = None
    """Column of the labels, by number (from 1) or heading; empty: chosen."""
    label_separator: str = ""
    """What separates several labels in a cell; empty: a cell is one label, unless it is a JSON list."""
    answer: Answer = "auto"
    """What is predicted: one "label", several "labels" at once, or a "number" ("auto": by the labels)."""

    def labelled(self, path: str) -> LabelledTable:
        """A table with this one's columns."""
        return LabelledTable(self.resolve(path), tuple(self.text_column), self.label_column, self.label_separator)


class HeadConfig(Config):
    """Head of the neural reader, and the linear model that it is combined with."""

    pooling: Pooling = "max"
    """How the features of all positions become one vector: mean, max, attention, cls (the first position) or concat
    (the last one, max and mean, as in ULMFiT)."""
    dropout: float = Field(default=0.5, ge=0, lt=1)
    """Dropout of that vector."""
    linear: bool = True
    """Also fit a linear model over n-grams, and answer with whatever is best on validation data: the linear model, the
    neural reader, or both together."""
