"""Limits on requests, and the middleware that limits their bodies."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from heed.serve.errors import ApiError, error_response

OTHER_CONNECTIONS = 512
"""Connections beyond one for each request in progress."""


@dataclass(frozen=True)
class Limits:
    """Sizes and times that requests may not exceed."""

    body_bytes: int = 1 << 20
    """Size of a request's body."""
    characters: int = 10_000
    """Characters of all texts of a request. A file is limited by its body alone."""
    texts: int = 128
    """Texts to translate in one request."""
    sentence_tokens: int = 1024
    """Tokens of a sentence or prompt."""
    beam_size: int = 16
    nbest: int = 10
    """Alternatives, continuations or candidates."""
    max_tokens: int = 1024
    """Tokens of a generated text."""
    logprobs: int = 5
    """Alternatives reported for each token."""
    queue: int = 256
    """Requests in progress, and sentences waiting to be searched."""
    queue_seconds: float = 10.0
    """Time that the sentences of a request wait until the first is started; then it is refused."""
    seconds: float = 60.0
    """Time of a request."""
    file_seconds: float = 600.0
    """Time of a request with a file."""
    drain_seconds: float = 20.0
    """Time for admitted requests to finish after SIGTERM. The process ends within ten more."""
    header_seconds: float = 20.0
    """Time for the headers of a request to arrive, from the connection or the last answer."""
    body_seconds: float = 20.0
    """Time for a body to arrive."""
    write_seconds: float = 30.0
    """Time for a client to read 64 KiB of an answer, or the rest of it."""

    @property
    def connections(self) -> int:
        """Connections: those of all requests in progress, and of clients that send or read one or pause."""
        return self.queue + OTHER_CONNECTIONS

    def require_text(self, text: str) -> None:
        """Raise ApiError for a text that is too long."""
        if len(text) > self.characters:
            raise ApiError(
                400, f"Invalid request: request ({len(text)}) exceeds text limit ({self.characters})", "text"
            )

    def require_texts(self, texts: Sequence[str]) -> None:
        """Raise ApiError for too many texts, or texts that together are too long."""
        if len(texts) > self.texts:
            raise ApiError(400, f"Invalid request: request ({len(texts)}) exceeds batch limit ({self.texts})", "text")
        self.require_text("".join(texts))


class BodyLimit:
    """Middleware that reads whole bodies and refuses those that are too large or too slow.

    It counts bytes and does not trust Content-Length.
    """

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self.app = app
        self.limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        try:
            body = await asyncio.wait_for(self._body(Request(scope, receive)), self.limits.body_seconds)
        except ClientDisconnect:
            return
        except TimeoutError:
            await _refuse(scope, receive, send, ApiError(408, "The body of the request did not arrive in time."))
            return
        except ApiError as error:
            await _refuse(scope, receive, send, error)
            return
        is_sent = False

        async def replay() -> Message:
            nonlocal is_sent
            if is_sent:
                return await receive()
            is_sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self.app(scope, replay, send)

    async def _body(self, request: Request) -> bytes:
        parts, size = [], 0
        async for part in request.stream():
            parts.append(part)
            size += len(part)
            if size > self.limits.body_bytes:
                raise ApiError(413, f"The body is larger than the limit of {self.limits.body_bytes:,} bytes.")
        return b"".join(parts)


async def _refuse(scope: Scope, receive: Receive, send: Send, error: ApiError) -> None:
    close = {"connection": "close"}  # the rest of the body is not read
    await error_response(error, scope["path"], close)(scope, receive, send)
