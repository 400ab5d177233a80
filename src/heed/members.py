"""Members from outside heed: tasks, models, attentions, tokenizers and metrics that other people write.

A member is a class that knows its own key. From Python it is passed to `heed.train(..., members=[...])` and
`heed.load(..., members=[...])`; an installed package names its members as entry points of the group "heed.members". A
run folder records what it needs (`members` in recipe.toml) and never brings code.
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
"""Where each member from outside heed is defined, by its key."""


def register(*members: Any) -> None:
    """Add members to heed's registries; adding one again changes nothing.

    Raises UsageError for something that is not a member, and for a key that another member has.
    """
    for member in members:
        registry, key = _place_of(member)
        if registry.setdefault(key, member) is not member:
            raise UsageError(f"{key!r} is already the name of {registry[key]}: give {member} another name.")
        _added[key] = origin(member)


def _place_of(member: Any) -> tuple[dict[str, Any], str]:
    """The registry that a member belongs to, and its key there."""
    if isinstance(member, type) and issubclass(member, Model):
        return MODELS, member.Config.model_fields["kind"].default
    registries: list[tuple[type, dict[str, Any]]] = [
        (Task, TASKS), (Attention, ATTENTION), (Tokenizer, TOKENIZERS), (Metric, METRICS),
    ]  # fmt: skip
    for base, registry in registries:
        if isinstance(member, type) and issubclass(member, base):
            return registry, str(getattr(member, "name", "")) or member.__name__.lower()
    raise UsageError(f"{member!r} is not a class of a task, a model, an attention, a tokenizer or a metric.")


def origin(member: type) -> str:
    """Where a member is defined: `package.module:Name`."""
    return f"{member.__module__}:{member.__qualname__}"


@cache
def register_installed() -> None:
    """Register the members of installed packages, once per process."""
    for entry in entry_points(group=GROUP):
        register(entry.load())


def needed(keys: Iterable[str]) -> tuple[str, ...] | None:
    """Where the members from outside heed among these keys are defined; None if there are none."""
    return tuple(_added[key] for key in keys if key in _added) or None


def require_registered(members: object, where: str) -> None:
    """Raise UsageError where a recipe needs members from outside heed that are not registered."""
    wanted = [str(member) for member in members] if isinstance(members, list | tuple) else []
    if missing := [member for member in wanted if member not in _added.values()]:
        packages = ", ".join(dict.fromkeys(member.partition(".")[0].partition(":")[0] for member in missing))
        raise UsageError(
            f"{where} needs {', '.join(missing)}, which heed does not bring. Install the package {packages}, or pass "
            "the class from Python: heed.load(RUN, members=[...])."
        )
