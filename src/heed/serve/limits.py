"""Limits: sizes and times that requests may not exceed, and the middleware that limits their bodies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from heed.serve.errors import CLOSE, ApiError, error_response

OTHER_CONNECTIONS = 512
"""Connections beyond one for each request in progress."""
DISCARDED_BYTES = 64 << 20
"""What is read of a body that has been refused."""
USUAL_CHARACTERS = 10_000
CHARACTER_BYTES = 24
"""Twelve for a character that is escaped in JSON or in a form, in each of the two texts of a suggestion."""


@dataclass(frozen=True)
class Limits:
    """Sizes and times that requests may not exceed."""

    characters: int = USUAL_CHARACTERS
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
    def body_bytes(self) -> int:
        """Size of a request's body: 1 MiB, and more if more characters are allowed than usual."""
        return (1 << 20) + CHARACTER_BYTES * max(0, self.characters - USUAL_CHARACTERS)

    @property
    def connections(self) -> int:
        """Connections: those of all requests in progress, and of clients that send or read one or pause."""
        return self.queue + OTHER_CONNECTIONS

    def require_text(self, text: str, field: str = "text") -> None:
        """Raise ApiError for a text that is too long. `field`: that of the request."""
        if len(text) > self.characters:
            raise ApiError(400, f"Invalid request: request ({len(text)}) exceeds text limit ({self.characters})", field)

    def require_texts(self, texts: Sequence[str], field: str = "text") -> None:
        """Raise ApiError for too many texts, or texts that together are too long. `field`: that of the request."""
        if len(texts) > self.texts:
            raise ApiError(400, f"Invalid request: request ({len(texts)}) exceeds batch limit ({self.texts})", field)
        self.require_text("".join(texts), field)


class BodyLimit:
    """Middleware that reads whole bodies and refuses those that are too large or too slow.

    It counts bytes, and trusts Content-Length only where that is too large.

    Many clients send the whole body before they read an answer, which is lost if the connection is closed with unread
    bytes. So the rest of a body that is too large is read and discarded first, within limits of time and size.
    """

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self.app = app
        self.limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        parts = Request(scope, receive).stream()
        try:
            self._require_size(int(Headers(scope=scope).get("content-length", 0)))
            body = await asyncio.wait_for(self._body(parts), self.limits.body_seconds)
        except ClientDisconnect:
            return
        except TimeoutError:
            error = ApiError(408, "The body of the request did not arrive in time.")
            await error_response(error, scope["path"], CLOSE)(scope, receive, send)
            return
        except ApiError as error:
            refusal = error_response(error, scope["path"], CLOSE)
            await refusal(scope, receive, self._ending_after(parts, send))
            return
        is_sent = False

        async def replay() -> Message:
            nonlocal is_sent
            if is_sent:
                return await receive()
            is_sent = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self.app(scope, replay, send)

    async def _body(self, parts: AsyncIterator[bytes]) -> bytes:
        read, size = [], 0
        async for part in parts:
            read.append(part)
            size += len(part)
            self._require_size(size)
        return b"".join(read)

    def _require_size(self, size: int) -> None:
        if size > self.limits.body_bytes:
            raise ApiError(413, f"The body is larger than the limit of {self.limits.body_bytes:,} bytes.")

    def _ending_after(self, parts: AsyncIterator[bytes], send: Send) -> Send:
        """Sends an answer of one message, whose end follows when the rest of the body has been discarded."""

        async def send_and_discard(message: Message) -> None:
            if message["type"] != "http.response.body":
                await send(message)
                return
            await send({**message, "more_body": True})
            with suppress(TimeoutError, ClientDisconnect):
                await asyncio.wait_for(_discard(parts), self.limits.body_seconds)
            await send({"type": "http.response.body"})

        return send_and_discard


async def _discard(parts: AsyncIterator[bytes]) -> None:
    """Read up to DISCARDED_BYTES."""
    size = 0
    async for part in parts:
        size += len(part)
        if size > DISCARDED_BYTES:
            return
