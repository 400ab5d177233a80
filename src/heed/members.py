"""Registration of external members: tasks, models, attentions, tokenizers and metrics from outside heed.

A member is a class that declares its own key. It is passed to `heed.train(..., members=[...])` and
`heed.load(..., members=[...])`, or declared as an entry point of the group "heed.members" by an installed package.
A run folder records the members that it needs (`members` in recipe.toml) and contains no code.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from heed.core.errors import UsageError
from heed.metrics import METRICS
from heed.metrics.metric import Metric
from heed.models import MODELS
from heed.models.model import Model
from heed.nn.attention import ATTENTION, Attention
from heed.tasks import TASKS
from heed.tasks.task import Task
from heed.text.tokenizers import TOKENIZERS, Tokenizer

GROUP = "heed.members"

_added: dict[str, str] = {}
"""Origin (`package.module:Name`) of each external member, by its key."""


def register(*members: Any) -> None:
    """Add members to heed's registries; registering a member again has no effect.

    Raises UsageError for an object that is not a member, and for a key of another member.
    """
    for member in members:
        registry, key = _registry_of(member)
        if registry.setdefault(key, member) is not member:
            raise UsageError(f"{key!r} is already the name of {registry[key]}: give {member} another name.")
        _added[key] = f"{member.__module__}:{member.__qualname__}"


def _registry_of(member: Any) -> tuple[dict[str, Any], str]:
    """The registry of a member, and its key."""
    if isinstance(member, type) and issubclass(member, Model):
        return MODELS, member.Config.model_fields["kind"].default
    registries: list[tuple[type, dict[str, Any]]] = [
        (Task, TASKS), (Attention, ATTENTION), (Tokenizer, TOKENIZERS), (Metric, METRICS),
    ]  # fmt: skip
    for base, registry in registries:
        if isinstance(member, type) and issubclass(member, base):
            return registry, str(getattr(member, "name", "")) or member.__name__.lower()
    raise UsageError(f"{member!r} is not a class of a task, a model, an attention, a tokenizer or a metric.")


@cache
def register_installed() -> None:
    """Register the members of installed packages, once per process."""
    for entry in entry_points(group=GROUP):
        register(entry.load())


def needed(keys: Iterable[str]) -> tuple[str, ...] | None:
    """Origins of the external members among these keys; None if there are none."""
    return tuple(_added[key] for key in keys if key in _added) or None


def require_registered(members: object, where: str) -> None:
    """Raise UsageError if a recipe needs external members that are not registered."""
    required = [str(member) for member in members] if isinstance(members, list | tuple) else []
    if missing := [member for member in required if member not in _added.values()]:
        packages = ", ".join(dict.fromkeys(member.partition(".")[0].partition(":")[0] for member in missing))
        raise UsageError(
            f"{where} needs {', '.join(missing)}, which is not part of heed. Install the package {packages}, or pass "
            "the class from Python: heed.load(RUN, members=[...])."
        )
