"""n-gram runs to ARPA files, as KenLM and SRILM use them, and back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch

from heed.core.errors import UsageError
from heed.core.progress import warn
from heed.export.imported_run import write_run
from heed.models.ngram import NgramConfig
from heed.recipe import recipe_type, task_of
from heed.run import Run
from heed.statistical.arpa import read_arpa, write_arpa
from heed.statistical.backoff import BackoffModel
from heed.text.tokenizers import TokenizerConfig
from heed.text.tokenizers.symbols import Word
from heed.text.vocabulary import SPECIAL_PIECES, Vocabulary
from heed.training.config import TrainingConfig


def export_arpa(run: Run, path: Path) -> list[int]:
    """Write a run's n-grams; returns the number of each length.

    Raises UsageError for another kind of model, DataError for pieces with white space, and StorageError.
    """
    config = run.recipe.model
    if config.kind not in ("ngram", "bigram"):
        raise UsageError(f"{run.folder}: the model is of kind {config.kind}; only ngram and bigram fit an ARPA file.")
    if getattr(config, "cache_share", 0):
        warn(f"{run.folder}: the cache of recent words is left out, since an ARPA file contains only n-grams.")
    ids = run.vocabularies
    arrays = {name: tensor.numpy() for name, tensor in run.model.state_dict().items()}
    model = BackoffModel.from_arrays(arrays, ids.tgt_size, ids.bos_id, ids.eos_id)
    return write_arpa(path, model, run.tokenizers["tgt"].vocabulary.pieces)


def import_arpa(path: Path, out: Path) -> list[int]:
    """Make a run from an ARPA file, to score, generate and compress; returns the number of n-grams of each length.

    Raises MissingInputError, DataError and StorageError.
    """
    model, vocabulary = read_arpa(path)
    if not np.isfinite(model.log_probs_of[Vocabulary.unk_id]):
        warn(f"{path} has no probability for <unk>: unknown words get probability 0.")
    tokenizer = Word(vocabulary.pieces[len(SPECIAL_PIECES) :])
    recipe = recipe_type(task_of("ngram"))(
        task=task_of("ngram"),
        tokenizer=TokenizerConfig(kind="word", vocab_size=len(vocabulary), min_frequency=1),
        model=NgramConfig(order=model.order),
        training=TrainingConfig(stop_metric="perplexity"),
    )
    tensors = {name: torch.from_numpy(array) for name, array in model.arrays().items()}
    write_run(out, recipe, {"tgt": tokenizer}, tensors, {"counted": "true"})
    return model.num_ngrams
