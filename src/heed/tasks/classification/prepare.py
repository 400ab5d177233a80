"""Preparation of a classifier: held-out rows, labels, tokenizer, token store, and the linear model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from heed.core.errors import DataError
from heed.core.run_files import RunFiles
from heed.data.store import write_store
from heed.data.validation import Row, write_valid
from heed.models.linear import Examples
from heed.tasks import prepare
from heed.tasks.classification.labels import Labels
from heed.tasks.classification.reading import Encoding
from heed.tasks.classification.rows import LabelledTexts, TableRows, held_out, split, training_rows
from heed.text.doctor.findings import Diagnosis
from heed.text.readers.columns import listed
from heed.text.readers.labelled import open_labelled
from heed.text.tokenizers import Tokenizer

SIDES = ("src",)
UNKNOWN = "validation rows with a label that is not in training"


def answer_kind(answer: str, diagnosis: Diagnosis) -> str:
    """The kind of answer: as given, or as the labels suggest."""
    if answer != "auto":
        return answer
    return next((kind for kind in ("labels", "number") if diagnosis.statistics.get(f"kind_{kind}")), "label")


def held_rows(recipe: Any, kind: str) -> NDArray[np.bool_] | None:
    """Which rows of the training table are held out; None with a validation table."""
    data = recipe.data
    if data.valid_table:
        return None
    return held_out(TableRows(data, data.table), data.num_held_out, recipe.seed, kind)


def prepare_classifier(
    recipe: Any, folder: Path, diagnosis: Diagnosis, reuse: Mapping[str, Tokenizer] | None, quiet: bool
) -> prepare.Corpus:
    """Write everything that the training reads into the run folder."""
    data, files = recipe.data, RunFiles(folder)
    kind = answer_kind(data.answer, diagnosis)
    held = held_rows(recipe, kind)
    all_rows = TableRows(data, data.table)
    heading = open_labelled(data.labelled(data.table), data.errors)
    labels = Labels.of(kind, (labels for _, labels in training_rows(all_rows, held)), _columns(heading))
    labels.write(files)
    dropped: Counter[str] = Counter()
    valid = list(_valid_rows(recipe, labels, held, dropped))
    if not valid and dropped[UNKNOWN]:
        raise DataError(
            f"{data.valid_table or data.table}: none of the labels of its {dropped[UNKNOWN]:,} validation rows is in "
            f"the training data, which has {listed(labels.names)}. Write labels in the same way in both."
        )
    write_valid(folder, valid)

    def train() -> Iterator[LabelledTexts]:
        return training_rows(all_rows, held)

    texts = lambda: ((text,) for texts, _ in train() for text in texts)  # noqa: E731
    tokenizers = reuse or prepare.train_tokenizers(
        recipe.tokenizer, SIDES, texts, diagnosis.num_pairs, folder, quiet=quiet
    )
    seen = prepare.SeenRows(folder)
    tokenizer = tokenizers["src"]
    label_size = 1 << 32 if kind == "number" else max(1 << 16, len(labels) + 1)
    rows = _encoded(train(), tokenizer, labels, Encoding.of(recipe), seen, dropped)
    fingerprint: dict[str, Any] = {"files": {}, **prepare.vocabulary_digests(dict(tokenizers))}
    sizes = (len(tokenizer.vocabulary), label_size)
    store = write_store(folder / "data" / "train", (*SIDES, "label"), rows, sizes, fingerprint)
    return prepare.finish(data, "table", seen, len(store), len(valid), dropped, prepare.fingerprints(data, "table"))


def _columns(table: Any) -> tuple[str, ...]:
    """Headings of the columns of texts and labels; empty for a table without a heading."""
    if table.heading is None:
        return ()
    return tuple(table.heading[at] for at in (*table.choice.texts, table.choice.label))


def _valid_rows(recipe: Any, labels: Labels, held: NDArray[np.bool_] | None, dropped: Counter[str]) -> Iterator[Row]:
    data = recipe.data
    rows: Iterable[LabelledTexts]
    if held is None:
        rows = TableRows(data, data.valid_table)
    else:
        rows = (row for row, is_held in zip(TableRows(data, data.table), held, strict=True) if is_held)
    number = 0
    for texts, of_row in rows:
        if not labels.known(of_row):
            dropped[UNKNOWN] += 1
        elif number < data.max_valid:
            number += 1
            yield (*texts, labels.written(of_row))


def _encoded(
    rows: Iterable[LabelledTexts], tokenizer: Tokenizer, labels: Labels, encoding: Encoding, seen: prepare.SeenRows,
    dropped: Counter[str],
) -> Iterator[tuple[list[int], list[int]]]:  # fmt: skip
    for chunk in prepare.chunks(rows):
        ids = encoding.encode([texts for texts, _ in chunk], tokenizer)
        for (texts, of_row), row in zip(chunk, ids, strict=True):
            seen.add(("\t".join(texts),))
            yield row, labels.ids(labels.written(of_row))


def examples(recipe: Any, labels: Labels, valid: list[Row]) -> Examples:
    """The training and validation texts for the linear model, read from the table again."""
    held = held_rows(recipe, labels.kind)
    rows = TableRows(recipe.data, recipe.data.table)
    written = (labels.written(of_row) for _, of_row in training_rows(rows, held))
    full = torch.cat([targets_of(labels, []), *(targets_of(labels, chunk) for chunk in prepare.chunks(written))])
    columns = labels.link.columns(len(labels))
    return Examples(
        lambda: (texts for texts, _ in training_rows(rows, held)), full[:, -columns:].contiguous(),
        [split(row)[0] for row in valid], targets_of(labels, [row[-1] for row in valid]), labels.kind,
        held_out=not recipe.data.valid_table,
    )  # fmt: skip


def targets_of(labels: Labels, rows: list[str]) -> torch.Tensor:
    """Targets [N, K] from the labels of each row, as text."""
    return labels.targets([labels.ids(text) for text in rows])
