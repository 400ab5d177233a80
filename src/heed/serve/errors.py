"""Errors that are sent to clients, in the form of the API that was called.

LibreTranslate: `{"error": "text"}`. OpenAI: `{"error": {"message", "type", "param", "code"}}`. heed's own: `{"error":
{"message", "code"}}`. The path of the request decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi.responses import JSONResponse

MODEL_NOT_FOUND = "model_not_found"
CLOSE = {"connection": "close"}
"""Header of an answer to a request whose body is not read to its end."""
_CODES = {
    400: "bad_request", 401: "unauthorized", 403: "disabled", 404: "not_found", 408: "timeout", 413: "too_large",
    421: "wrong_host", 429: "rate_limited", 503: "overloaded", 504: "timeout",
}  # fmt: skip
_OPENAI_CODES = {
    "unauthorized": "invalid_api_key",
    "rate_limited": "rate_limit_exceeded",
    MODEL_NOT_FOUND: MODEL_NOT_FOUND,
    "overloaded": "overloaded",
}


class ApiError(Exception):
    """A request that failed, with the HTTP status and the message for the client."""

    def __init__(
        self, status: int, message: str, param: str | None = None, code: str = "", retry_after: int | None = None
    ) -> None:
        """`param`: the invalid parameter. `code`: by default that of the status. `retry_after`: seconds to wait."""
        super().__init__(message)
        self.status = status
        self.message = message
        self.param = param
        self.code = code or _CODES.get(status, "server_error" if status >= 500 else "bad_request")
        self.headers = {} if retry_after is None else {"Retry-After": str(retry_after)}


def _api_of(path: str) -> str:
    """`v1` for OpenAI's API, `api` for heed's own, anything else for the others."""
    return path.removeprefix("/").partition("/")[0]


def body_of(error: ApiError, path: str) -> dict[str, Any]:
    """The JSON body of an error, in the form of the API of this path."""
    if _api_of(path) == "v1":
        kind = "server_error" if error.status >= 500 else "invalid_request_error"
        code = _OPENAI_CODES.get(error.code)
        return {"error": {"message": error.message, "type": kind, "param": error.param, "code": code}}
    if _api_of(path) == "api":
        code = "not_found" if error.code == MODEL_NOT_FOUND else error.code
        return {"error": {"message": error.message, "code": code}}
    return {"error": error.message}


def error_response(error: ApiError, path: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """The response to a failed request.

    OpenAI's and heed's own API and the metrics answer a missing or wrong key with 401, LibreTranslate a missing one
    with 400.
    """
    status = error.status
    if error.code == "unauthorized":
        status = 401 if _api_of(path) in ("v1", "api", "metrics") else 400 if status == 401 else 403
    return JSONResponse(body_of(error, path), status, headers={**error.headers, **(headers or {})})
