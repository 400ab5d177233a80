"""How are answers written down in OpenAPI?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BeforeValidator

Answers = dict[int | str, dict[str, Any]]


def _as_whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


Whole = Annotated[int, BeforeValidator(_as_whole)]
"""A whole number, which JSON may write as 1.0."""

_REASONS = {
    400: "The request is wrong, and the answer says how.",
    401: "A key is needed, or the key is wrong.",
    403: "The key is wrong, or this server does not do this.",
    404: "There is no such thing.",
    413: "The body is too large.",
    429: "This client has asked too often.",
    500: "The server failed at this request.",
    503: "There is no room now; Retry-After says when to come again.",
    504: "It took too long.",
}


def objects(properties: Mapping[str, Any], required: Sequence[str] = ()) -> dict[str, Any]:
    """The schema of an object."""
    return {"type": "object", "properties": dict(properties), "required": list(required)}


def json_answer(description: str, schema: Mapping[str, Any], status: int = 200) -> Answers:
    """One answer in JSON."""
    return {status: {"description": description, "content": {"application/json": {"schema": dict(schema)}}}}


def error_answers(schema: Mapping[str, Any], *statuses: int) -> Answers:
    """The errors of a route, all of one schema."""
    found: Answers = {}
    for status in statuses:
        found |= json_answer(_REASONS[status], schema, status)
        if status in (429, 503):
            found[status]["headers"] = {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds."}}
    return found


def answers(*parts: Answers) -> Answers:
    """All answers of a route."""
    return {status: answer for part in parts for status, answer in part.items()}
