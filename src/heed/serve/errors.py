"""Errors that are sent to clients, and how each API writes them.

LibreTranslate: `{"error": "text"}`. OpenAI: `{"error": {"message", "type", "param", "code"}}`. heed's own: `{"error":
{"message", "code"}}`. The path of the request decides.
"""

from __future__ import annotations

from typing import Any


class ApiError(Exception):
    """The server failed to handle a request. Subclasses are more specific."""

    status = 500
    code = "server_error"

    def __init__(self, message: str, param: str | None = None, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        """The invalid parameter."""
        self.retry_after = retry_after
        """Seconds after which the client may retry."""

    @property
    def headers(self) -> dict[str, str]:
        """HTTP headers of the answer."""
        return {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}


class BadRequestError(ApiError):
    """The request is invalid."""

    status, code = 400, "bad_request"


class MissingKeyError(ApiError):
    """The server requires a key, and there is none."""

    status, code = 401, "unauthorized"


class WrongKeyError(ApiError):
    """The key is not accepted."""

    status, code = 403, "unauthorized"


class DisabledError(ApiError):
    """The route is disabled."""

    status, code = 403, "disabled"


class NotFoundError(ApiError):
    """There is no such model or route."""

    status, code = 404, "not_found"


class SlowBodyError(ApiError):
    """The body of the request did not arrive in time."""

    status, code = 408, "timeout"


class TooLargeError(ApiError):
    """The body is too large."""

    status, code = 413, "too_large"


class RateLimitError(ApiError):
    """The client has sent too many requests."""

    status, code = 429, "rate_limited"


class OverloadError(ApiError):
    """The server is busy."""

    status, code = 503, "overloaded"


class LateError(ApiError):
    """The request took too long."""

    status, code = 504, "timeout"


_OPENAI_CODES = {
    "unauthorized": "invalid_api_key",
    "rate_limited": "rate_limit_exceeded",
    "model_not_found": "model_not_found",
    "overloaded": "overloaded",
}


class ModelNotFoundError(NotFoundError):
    """There is no such model."""

    code = "model_not_found"


def is_openai(path: str) -> bool:
    """Whether a path belongs to OpenAI's API."""
    return path == "/v1" or path.startswith("/v1/")


def is_own(path: str) -> bool:
    """Whether a path belongs to heed's own API."""
    return path == "/api" or path.startswith("/api/")


def body_of(error: ApiError, path: str) -> dict[str, Any]:
    """The JSON body of an error, in the form of the API of this path."""
    if is_openai(path):
        kind = "server_error" if error.status >= 500 else "invalid_request_error"
        code = _OPENAI_CODES.get(error.code)
        return {"error": {"message": error.message, "type": kind, "param": error.param, "code": code}}
    if is_own(path):
        code = "not_found" if error.code == "model_not_found" else error.code
        return {"error": {"message": error.message, "code": code}}
    return {"error": error.message}


def status_of(error: ApiError, path: str) -> int:
    """The HTTP status. For a wrong key OpenAI sends 401, and for a missing one LibreTranslate sends 400."""
    if error.code == "unauthorized":
        return 401 if is_openai(path) or is_own(path) else (400 if error.status == 401 else 403)
    return error.status
