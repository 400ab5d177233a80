"""Registry of tasks: what a model can be trained for. A task is one folder and one key.

`TASKS` maps the name that a recipe uses to a `Task` class, or to the place of one ("module:Class"), which is imported
when it is first needed. Nothing outside this package names a task: other code asks a task, or its `Predictor`, what it
can do.
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
        raise UsageError(f"there is no task {name!r}. The tasks are {', '.join(TASKS)}.")
    place = TASKS[name]
    if not isinstance(place, str):
        return place
    module, _, attribute = place.partition(":")
    member: type[Task] = getattr(import_module(module), attribute)
    return member
