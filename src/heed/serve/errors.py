"""Which errors does a client get, and how does each API write them?

LibreTranslate: `{"error": "text"}`. OpenAI: `{"error": {"message", "type", "param", "code"}}`. heed's own: `{"error":
{"message", "code"}}`. The path tells which API was called.
"""

from __future__ import annotations

from typing import Any


class ApiError(Exception):
    """The server failed at this request; a subclass says what else can be the matter."""

    status = 500
    code = "server_error"

    def __init__(self, message: str, param: str | None = None, retry_after: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        """The parameter that is wrong."""
        self.retry_after = retry_after
        """Seconds after which to come again."""

    @property
    def headers(self) -> dict[str, str]:
        """What the answer's head says of it."""
        return {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}


class BadRequestError(ApiError):
    """The request asks for what cannot be."""

    status, code = 400, "bad_request"


class MissingKeyError(ApiError):
    """The server asks for a key, and there is none."""

    status, code = 401, "unauthorized"


class WrongKeyError(ApiError):
    """The key is none of the server's."""

    status, code = 403, "unauthorized"


class DisabledError(ApiError):
    """The server does not do this."""

    status, code = 403, "disabled"


class NotFoundError(ApiError):
    """There is no such model or address."""

    status, code = 404, "not_found"


class SlowBodyError(ApiError):
    """The body of the request did not arrive in time."""

    status, code = 408, "timeout"


class TooLargeError(ApiError):
    """The body is larger than the server takes."""

    status, code = 413, "too_large"


class RateLimitError(ApiError):
    """This client has asked too often."""

    status, code = 429, "rate_limited"


class OverloadError(ApiError):
    """The server has no room for this request now."""

    status, code = 503, "overloaded"


class LateError(ApiError):
    """The request took longer than it may."""

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
    """Whether a path is one of OpenAI's API."""
    return path == "/v1" or path.startswith("/v1/")


def is_own(path: str) -> bool:
    """Whether a path is one of heed's own API."""
    return path == "/api" or path.startswith("/api/")


def body_of(error: ApiError, path: str) -> dict[str, Any]:
    """The error as the API of this path writes it."""
    if is_openai(path):
        kind = "server_error" if error.status >= 500 else "invalid_request_error"
        code = _OPENAI_CODES.get(error.code)
        return {"error": {"message": error.message, "type": kind, "param": error.param, "code": code}}
    if is_own(path):
        code = "not_found" if error.code == "model_not_found" else error.code
        return {"error": {"message": error.message, "code": code}}
    return {"error": error.message}


def status_of(error: ApiError, path: str) -> int:
    """OpenAI has 401 for a wrong key; LibreTranslate has 400 for a missing one; both as their clients know them."""
    if error.code == "unauthorized":
        return 401 if is_openai(path) or is_own(path) else (400 if error.status == 401 else 403)
    return error.status
