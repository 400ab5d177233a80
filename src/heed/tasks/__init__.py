"""Registry of tasks: what a model can be trained for. A task is one folder and one key.

`TASKS` maps the name in a recipe to a `Task` class, or to the import path of one ("module:Class"), which is imported on
first use. No other package depends on a particular task: all use the `Task` and its `Predictor`.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heed.core.errors import UsageError

if TYPE_CHECKING:
    from heed.tasks.task import Task

TASKS: dict[str, str | type[Task]] = {
    "translation": "heed.tasks.translation.task:TranslationTask",
    "language-model": "heed.tasks.language_model.task:LanguageModelTask",
    "masked-language-model": "heed.tasks.masked_language_model.task:MaskedLanguageModelTask",
    "tagging": "heed.tasks.tagging.task:TaggingTask",
    "word-vectors": "heed.tasks.word_vectors.task:WordVectorTask",
    "classification": "heed.tasks.classification.task:ClassificationTask",
    "span": "heed.tasks.span.task:SpanTask",
    "captioning": "heed.tasks.captioning.task:CaptioningTask",
}

TASK_OF_DATA = {
    "src": "translation", "tgt": "translation", "pairs": "translation", "text": "language-model", "conll": "tagging",
    "table": "classification", "captions": "captioning",
}  # fmt: skip
"""The task that a key of `[data]` suggests where the recipe names none."""


def task_type(name: str) -> type[Task]:
    """Return the task class of this name. Raises UsageError for an unknown one."""
    if name not in TASKS:
        raise UsageError(f"unknown task {name!r}; the tasks are {', '.join(TASKS)}.")
    task = TASKS[name]
    if not isinstance(task, str):
        return task
    module, _, attribute = task.partition(":")
    imported: type[Task] = getattr(import_module(module), attribute)
    return imported


WITHOUT_PYTORCH = {
    "translate": (
        "heed.tasks.translation.converted:open_converted", "heed.tasks.translation.deriving_run:open_deriving",
    ),
    "generate": ("heed.tasks.language_model.converted:open_converted",),
}  # fmt: skip
"""What opens runs with an ability without PyTorch: those whose model was converted, and those whose model counts."""


def open_without_pytorch(
    ability: str, folder: Path, tag: str | None, precision: str, engine: str, num_workers: int
) -> Any:
    """Return a run that is ready for this use without PyTorch, or None if it must be opened in full.

    The other arguments are those of `heed.load`.
    """
    for place in WITHOUT_PYTORCH[ability]:
        if (opened := _imported(place)(folder, tag, precision, engine, num_workers)) is not None:
            return opened
    return None


def _imported(place: str) -> Any:
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)
