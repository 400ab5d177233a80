"""Phrase-based runs to phrase tables of Moses, and runs with a table of Moses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from heed.core.errors import UsageError
from heed.core.files import storage_errors
from heed.run import Run, with_other_weights
from heed.statistical.phrases.moses import WordForms, read_table, table_lines
from heed.text.archives import open_text_output
from heed.text.readers import read_text


def export_moses(run: Run, path: Path) -> int:
    """Write the phrase table of a run; returns the number of pairs.

    Raises UsageError for another kind of model, and StorageError.
    """
    model = _model_of(run)
    num_pairs = 0
    with storage_errors("write the phrase table", path=path), open_text_output(path) as file:
        for line in table_lines(model.translator.table, _forms(run, model)):
            file.write(line + "\n")
            num_pairs += 1
    return num_pairs


def import_moses(path: Path, run: Run, out: Path) -> tuple[int, int]:
    """A copy of a run with the phrase table of a file; returns its number of pairs, and that of pairs left out.

    The language models, the forms of words and the weights stay. Raises UsageError, MissingInputError, DataError and
    StorageError.
    """
    model = _model_of(run)
    table, num_unknown = read_table(read_text(path), _forms(run, model), path.name)
    model.hold(replace(model.translator, table=table))
    with with_other_weights(run, out, model.state_dict(), {"counted": "true", "table": path.name}):
        pass
    return len(table), num_unknown


def _model_of(run: Run) -> Any:
    """The model. Raises UsageError if it has no phrase table."""
    model: Any = run.model
    if not hasattr(getattr(model, "translator", None), "table"):
        raise UsageError(f"{run.folder}: a {run.recipe.model.kind} model has no phrase table.")
    return model


def _forms(run: Run, model: Any) -> WordForms:
    texts = run.tokenizers["tgt"].texts()
    return WordForms(texts, model.translator.language.log_probs_of[: len(texts)])
