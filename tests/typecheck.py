"""Checks of shapes and types while tests run.

Pytest's option `--jaxtyping-packages` (see pyproject.toml) wraps every function of the packages that it
names in `checked`: each call then shows that its tensors have the shapes and types that the signature says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Annotated, Any, Self, get_args

from beartype import BeartypeConf, FrozenDict, beartype
from beartype.vale import Is

# Not `Any` or `object`: beartype replaces a hint inside a union only by one that it has to check.
_ANYTHING = Annotated[object, Is[lambda value: True]]


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, checked by beartype at every call; one made inside a function is left as it is.

    Those are made anew at each call, and so would be their checks, which takes far longer than the call.
    Left to mypy: `Self`, which beartype knows only where it decorates a whole class, and protocols, which
    nobody may test for at run time.
    """
    if "<locals>" in function.__qualname__:
        return function
    hints = [part for hint in function.__annotations__.values() for part in _parts(hint)]
    unchecked = {hint: _ANYTHING for hint in hints if hint is Self or getattr(hint, "_is_protocol", False)}
    return beartype(function, conf=BeartypeConf(hint_overrides=FrozenDict(unchecked)))


def _parts(hint: Any) -> Iterator[Any]:
    """A type and all types inside its brackets or unions."""
    yield hint
    for part in get_args(hint):
        yield from _parts(part)
