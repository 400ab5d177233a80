"""How much may a client ask for, and for how long may it keep the server? The limit on bodies comes first."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from heed.serve.errors import ApiError, BadRequestError, SlowBodyError, TooLargeError, body_of


@dataclass(frozen=True)
class Limits:
    """What is refused, and how long is waited."""

    body_bytes: int = 1 << 20
    """Of a request."""
    characters: int = 10_000
    """Of the texts of a request; a file may have as many as its body holds."""
    texts: int = 128
    """In one request: texts to translate, or prompts."""
    sentence_tokens: int = 1024
    """Of a sentence, or of a prompt."""
    beam_size: int = 16
    nbest: int = 10
    """Alternatives, continuations, candidates."""
    max_tokens: int = 1024
    """That a language model is asked to go on with."""
    logprobs: int = 5
    """Likeliest tokens that are told for each place."""
    queue: int = 256
    """Requests at work at once, and sentences that wait for their turn."""
    queue_seconds: float = 10.0
    """A request none of whose sentences gets a turn in this time is refused."""
    seconds: float = 60.0
    """Of a whole request."""
    file_seconds: float = 600.0
    """Of a file."""
    drain_seconds: float = 30.0
    """After SIGTERM, for what has been admitted."""
    body_seconds: float = 20.0
    """For a body to arrive."""

    def require_text(self, text: str) -> None:
        """Raise BadRequestError for a text that is too long."""
        if len(text) > self.characters:
            raise BadRequestError(
                f"Invalid request: request ({len(text)}) exceeds text limit ({self.characters})", "text"
            )

    def require_texts(self, count: int) -> None:
        """Raise BadRequestError for too many texts."""
        if count > self.texts:
            raise BadRequestError(f"Invalid request: request ({count}) exceeds batch limit ({self.texts})", "text")


class BodyLimit:
    """Takes a body in whole before anything else is done, and refuses one that is too large or too slow.

    Bytes are counted, whatever Content-Length says.
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
            body = await asyncio.wait_for(self._body(receive), self.limits.body_seconds)
        except (TooLargeError, TimeoutError) as error:
            known = error if isinstance(error, ApiError) else SlowBodyError("The body of the request did not arrive.")
            await _refuse(send, scope["path"], known)
            return
        if body is None:  # the client has left
            return
        given = False

        async def replay() -> Message:
            nonlocal given
            if given:
                return await receive()
            given = True
            return {"type": "http.request", "body": body, "more_body": False}

        await self.app(scope, replay, send)

    async def _body(self, receive: Receive) -> bytes | None:
        parts, size, more = [], 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > self.limits.body_bytes:
                raise TooLargeError(f"The body is larger than {self.limits.body_bytes:,} bytes.")
            more = message.get("more_body", False)
        return b"".join(parts)


async def _refuse(send: Send, path: str, error: ApiError) -> None:
    body = json.dumps(body_of(error, path)).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers.append((b"connection", b"close"))  # what is left of the body is not read
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
