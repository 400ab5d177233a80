"""FastAPI application of the server: routes, middleware and error handlers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from heed.core.environment import library_versions
from heed.core.errors import HeedError
from heed.serve.apis import embeddings, heed, libretranslate, openai, operations
from heed.serve.apis.schema import described
from heed.serve.bodies import first_invalid
from heed.serve.engine.admission import Admissions
from heed.serve.engine.job import ClientLeftError
from heed.serve.errors import ApiError, error_response
from heed.serve.gate import Gate, Hosts, Origins
from heed.serve.limits import BodyLimit
from heed.serve.service import Service
from heed.serve.telemetry import CLIENT_CLOSED, Observed

WATCH_EVERY = 0.25
"""Seconds between two checks that the worker is alive."""


def make_app(service: Service, cors_origins: Sequence[str] = (), hosts: Hosts | None = None) -> FastAPI:
    """The application. It starts the worker, and stops it when it shuts down."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service.worker.start()
        if service.catalogue.directions:
            service.documents.start()
        watch = asyncio.create_task(_watch(service))
        yield
        watch.cancel()
        with suppress(asyncio.CancelledError):
            await watch
        service.jobs.close()
        service.documents.close()
        await asyncio.to_thread(service.worker.stop)

    app = FastAPI(
        title="heed", version=library_versions()["heed"], lifespan=lifespan, docs_url=None, redoc_url=None,
        redirect_slashes=False,
    )  # fmt: skip
    for routes in (libretranslate.routes, openai.routes, embeddings.routes, heed.routes, operations.routes):
        app.include_router(routes(service))
    _handle_errors(app, service)
    app.add_middleware(Admissions, jobs=service.jobs)
    app.add_middleware(BodyLimit, limits=service.limits)
    app.add_middleware(Gate, hosts=hosts or Hosts(), origins=Origins(cors_origins, service.public_url))
    app.add_middleware(Failures, service=service)
    if cors_origins:  # around those three, so that a page can read why they refuse it, and that the server failed
        app.add_middleware(
            CORSMiddleware, allow_origins=list(cors_origins), allow_methods=["GET", "POST"],
            allow_headers=["*"], allow_credentials=False, expose_headers=["Retry-After"],
        )  # fmt: skip
    app.add_middleware(Observed, metrics=service.metrics, log=service.log)
    app.add_middleware(HeadAsGet)
    describe = app.openapi
    app.openapi = lambda: described(describe())  # type: ignore[method-assign]
    return app


class Failures:
    """Middleware that answers an unexpected error. FastAPI would do it around all middleware, without their headers."""

    def __init__(self, app: ASGIApp, service: Service) -> None:
        self.app = app
        self.service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        has_begun = False

        async def watched(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self.app(scope, receive, watched)
        except Exception as error:
            if has_begun:
                raise
            await error_response(self.service.reported(error, "request_failed"), scope["path"])(scope, receive, send)


class HeadAsGet:
    """Middleware that answers HEAD as GET. uvicorn sends the headers alone."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        is_head = scope["type"] == "http" and scope["method"] == "HEAD"
        await self.app({**scope, "method": "GET"} if is_head else scope, receive, send)


async def _watch(service: Service) -> None:
    """Restart the worker whenever it has died."""
    while True:
        await asyncio.sleep(WATCH_EVERY)
        service.worker.revive()


def _handle_errors(app: FastAPI, service: Service) -> None:
    """Answer every error in the form of the API that was called."""

    async def failed(request: Request, error: Exception) -> Response:
        return error_response(service.reported(error, "request_failed"), request.url.path)

    async def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return error_response(first_invalid(error.errors()), request.url.path)

    async def http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        message = "There is no such route." if error.status_code == 404 else str(error.detail)
        return error_response(ApiError(error.status_code, message), request.url.path, error.headers)

    async def left(request: Request, error: Exception) -> Response:
        return Response(status_code=CLIENT_CLOSED)  # nobody receives it

    app.add_exception_handler(ApiError, failed)
    app.add_exception_handler(HeedError, failed)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, http_error)
    app.add_exception_handler(ClientLeftError, left)
    app.add_exception_handler(Exception, failed)
