"""Members from outside heed: tasks, models, attentions and metrics that other people write.

A member is a class that knows its own key. From Python it is passed to `heed.train(..., members=[...])` and
`heed.load(..., members=[...])`; an installed package names its members as entry points of the group "heed.members". A
run folder records what it needs (`members` in recipe.toml) and never brings code.
"""

from __future__ import annotations

from functools import cache
from importlib.metadata import entry_points
from typing import Any

from heed.core.errors import UsageError
from heed.models import MODELS
from heed.tasks import TASKS
from heed.tasks.task import Task

GROUP = "heed.members"

_added: dict[str, str] = {}
"""Where each member from outside heed was defined, by its key."""


def register(*members: Any) -> None:
    """Add members to heed's registries. Raises UsageError for a key that another member has."""
    for member in members:
        registry, key = _place_of(member)
        if registry.get(key, member) is not member:
            raise UsageError(f"{key!r} is already the name of {registry[key]}: give {member} another one.")
        registry[key] = member
        _added[key] = origin(member)


def _place_of(member: Any) -> tuple[dict[str, Any], str]:
    """The registry that a member belongs to, and its key there."""
    if isinstance(member, type) and issubclass(member, Task):
        return TASKS, member.name
    if hasattr(member, "Config"):
        return MODELS, member.Config.model_fields["kind"].default
    raise UsageError(f"{member!r} is not a task, a model, an attention or a metric.")


def origin(member: Any) -> str:
    """Where a member is defined: `package.module:Name`."""
    owner = member if isinstance(member, type) else type(member)
    return f"{owner.__module__}:{owner.__qualname__}"


@cache
def register_installed() -> None:
    """Register the members of installed packages, once per process."""
    for entry in entry_points(group=GROUP):
        register(entry.load())
