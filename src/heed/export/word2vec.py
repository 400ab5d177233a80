"""Word vectors to the text format of word2vec, which gensim and fastText read and write too, and back.

The first line has the number of words and of features, each other line a word and its vector.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from heed.core.errors import DataError, UsageError
from heed.core.files import storage_errors
from heed.core.progress import warn
from heed.export.imported_run import write_run
from heed.models.word_vectors import SkipGramConfig
from heed.recipe import recipe_type, task_of
from heed.run import Run
from heed.text.archives import open_bytes, open_text_output
from heed.text.readers import read_text
from heed.text.readers.corpus import counted
from heed.text.tokenizers import TokenizerConfig
from heed.text.tokenizers.symbols import Word
from heed.text.vocabulary import SPECIAL_PIECES
from heed.training.config import TrainingConfig

_START = 1 << 12
"""Bytes of a file that show whether its numbers are written as text."""


def export_word2vec(run: Run, path: Path) -> int:
    """Write the vectors of a run's vocabulary; returns the number of words. Raises UsageError, StorageError."""
    if not hasattr(run.blank_model, "windows"):
        raise UsageError(f"{run.folder} has no word vectors: it is a {run.recipe.task} run.")
    hood = run.predictor
    with storage_errors("write the vectors", path=path), open_text_output(path) as file:
        file.write(f"{len(hood.words)} {hood.vectors.shape[1]}\n")
        for word, vector in zip(hood.words, hood.vectors.tolist(), strict=True):
            file.write(f"{word} {' '.join(format(value, '.9g') for value in vector)}\n")
    return len(hood.words)


def is_word2vec(path: Path) -> bool:
    """Whether the first line of a file has two numbers, as that of word vectors has."""
    fields = next(iter(read_text(path, "replace")), "").split()
    return len(fields) == 2 and all(field.isdecimal() for field in fields)


def import_word2vec(path: Path, out: Path) -> int:
    """Make a run of word vectors from a file; returns the number of words.

    Its output rows are 0, as in a new model. Raises MissingInputError, DataError and StorageError.
    """
    words, vectors = _read(path)
    tokenizer = Word(words)
    recipe = recipe_type(task_of("skip_gram"))(
        task=task_of("skip_gram"),
        tokenizer=TokenizerConfig(kind="word", vocab_size=len(tokenizer.vocabulary), min_frequency=1),
        model=SkipGramConfig(d_model=vectors.shape[1]),
        training=TrainingConfig(stop_metric="negative_sampling", optimizer="sgd", reduction="sum"),
    )
    inputs = torch.from_numpy(np.concatenate([np.zeros((len(SPECIAL_PIECES), vectors.shape[1]), np.float32), vectors]))
    tensors = {"inputs": inputs, "outputs": torch.zeros_like(inputs)}
    write_run(out, recipe, {"tgt": tokenizer}, tensors)
    return len(words)


def _read(path: Path) -> tuple[list[str], NDArray[np.float32]]:
    """The words and their vectors [V, D], without special pieces and repetitions: the first vector of a word."""
    with open_bytes(path) as file:
        if b"\0" in file.read(_START):
            raise DataError(
                f"{path} is in the binary format of word2vec. Write it as text with gensim: "
                "KeyedVectors.load_word2vec_format(FILE, binary=True).save_word2vec_format(TEXT)."
            )
    lines = read_text(path)
    try:
        number, size = map(int, next(iter(lines), "").split())
    except ValueError as error:
        raise DataError(f"{path}, line 1: expected the number of words and of dimensions.") from error
    table: dict[str, NDArray[np.float32]] = {}
    num_rows = 0
    for word, vector in _rows(path, lines, size):
        num_rows += 1
        table.setdefault(word, vector)
    if num_rows != number:
        raise DataError(f"{path}: the header announces {number:,} words, but there are {num_rows:,}.")
    if num_repeated := num_rows - len(table):
        warn(f"{path}: left out: {counted(num_repeated, 'row')} of words that have a vector already.")
    words = [word for word in table if word not in SPECIAL_PIECES]
    if not words:
        raise DataError(f"{path} has no words; its first line announces {number:,}.")
    return words, np.stack([table[word] for word in words])


def _rows(path: Path, lines: Iterator[str], size: int) -> Iterator[tuple[str, NDArray[np.float32]]]:
    for line_number, line in enumerate(lines, start=2):
        word, *numbers = line.rstrip(" ").split(" ")
        try:
            vector = np.array(numbers, dtype=np.float32)
        except ValueError:
            vector = np.empty(0, dtype=np.float32)
        if not word or len(vector) != size or not np.isfinite(vector).all():
            raise DataError(f"{path}, line {line_number}: expected a word and {size} numbers, got {line!r:.60}.")
        yield word, vector
