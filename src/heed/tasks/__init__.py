"""Registry of tasks: what a model can be trained for. A task is one folder and one key.

`TASKS` maps the name in a recipe to a `Task` class, or to the import path of one ("module:Class"), which is imported on
first use. No other package depends on a particular task: all use the `Task` and its `Predictor`.
"""

from __future__ import annotations

from importlib import import_module

from heed.core.errors import UsageError
from heed.tasks.task import Task

TASKS: dict[str, str | type[Task]] = {
    "translation": "heed.tasks.translation.task:TranslationTask",
    "language-model": "heed.tasks.language_model.task:LanguageModelTask",
}


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
