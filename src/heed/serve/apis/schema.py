"""Types of requests and answers that the APIs share, and parts of their OpenAPI description."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Annotated, Any

from fastapi.responses import StreamingResponse
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict

from heed.serve.bodies import JSON
from heed.serve.engine.probabilities import finite

Responses = dict[int | str, dict[str, Any]]

_REASONS = {
    400: "The request is invalid; the message says why.",
    401: "The API key is missing or wrong.",
    403: "The API key is wrong, this server has the route disabled, or a page of another origin posts to it.",
    404: "Not found.",
    408: "The body did not arrive in time.",
    413: "The body is too large.",
    421: "The Host header does not name this server.",
    429: "Too many requests from this client.",
    500: "The server failed to handle the request.",
    503: "The server is busy; retry after the number of seconds in Retry-After.",
    504: "The request took too long.",
}
_RETRY_AFTER = {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds."}}


def _as_whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


WHOLE = BeforeValidator(_as_whole)
"""After the limits of an `int`: JSON may write 1 as 1.0."""
LogProb = Annotated[float, AfterValidator(finite)]
"""A log-probability in nats; -1e9 for minus infinity, which JSON lacks."""


class Answer(BaseModel):
    """A JSON object that the server sends."""

    model_config = ConfigDict(protected_namespaces=(), use_attribute_docstrings=True, from_attributes=True)


class PlainError(Answer):
    """An error of LibreTranslate's API and of the routes about the server itself."""

    error: str


def event_stream(events: AsyncIterator[str]) -> StreamingResponse:
    """Server-sent events, which no proxy keeps back: nginx would collect them by default."""
    headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
    return StreamingResponse(events, media_type="text/event-stream", headers=headers)


def errors(model: type[BaseModel], *statuses: int) -> Responses:
    """The documented errors of a route. Every route may answer 400, 408, 413, 421 and 500."""
    return {
        status: {
            "model": model,
            "description": _REASONS[status],
            **({"headers": _RETRY_AFTER} if status in (429, 503) else {}),
        }
        for status in sorted({*statuses, 400, 408, 413, 421, 500})
    }


def content(description: str, *media_types: str) -> Responses:
    """A successful answer that is not JSON, or not only JSON."""
    return {200: {"description": description, "content": {media_type: {} for media_type in media_types}}}


def request_body(kind: type[BaseModel], kinds: Sequence[str] = (JSON,), **changes: dict[str, Any]) -> dict[str, Any]:
    """The request body of an operation in OpenAPI. `kinds`: media types. `changes`: of the schemas of fields."""
    schema = kind.model_json_schema(ref_template="#/components/schemas/{model}")
    for field, change in changes.items():
        schema["properties"][field].update(change)
    return {"requestBody": {"required": True, "content": {media_type: {"schema": schema} for media_type in kinds}}}


def described(description: Mapping[str, Any]) -> dict[str, Any]:
    """FastAPI's description without the status 422, as invalid requests are answered with 400.

    The models inside those of request bodies are described with the others.
    """
    for operations in description["paths"].values():
        for operation in operations.values():
            operation["responses"].pop("422", None)
            for body in operation.get("requestBody", {}).get("content", {}).values():
                description["components"]["schemas"].update(body["schema"].pop("$defs", {}))
    return dict(description)
