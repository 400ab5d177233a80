"""The FastAPI application: routes, middleware and error handlers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from heed.core.environment import library_versions
from heed.core.errors import HeedError
from heed.serve.apis import heed, libretranslate, openai, operations
from heed.serve.apis.schema import without_422
from heed.serve.engine.job import ClientLeftError
from heed.serve.errors import ApiError, BadRequestError, NotFoundError, body_of, status_of
from heed.serve.limits import BodyLimit
from heed.serve.service import Service
from heed.serve.telemetry import CLIENT_CLOSED, Observed

WATCH_EVERY = 0.25
"""Seconds between two checks that the worker is alive."""


def make_app(service: Service, cors_origins: Sequence[str] = ()) -> FastAPI:
    """The application. The worker runs as long as it does."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service.worker.start()
        watch = asyncio.create_task(_watch(service))
        yield
        watch.cancel()
        with suppress(asyncio.CancelledError):
            await watch
        await asyncio.to_thread(service.worker.stop)
        service.jobs.close()

    app = FastAPI(title="heed", version=library_versions()["heed"], lifespan=lifespan, docs_url=None, redoc_url=None)
    for routes in (libretranslate.routes, openai.routes, heed.routes, operations.routes):
        app.include_router(routes(service))
    _handle_errors(app, service)
    if cors_origins:
        app.add_middleware(
            CORSMiddleware, allow_origins=list(cors_origins), allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type"], allow_credentials=False,
        )  # fmt: skip
    app.add_middleware(BodyLimit, limits=service.limits)
    app.add_middleware(Observed, metrics=service.metrics, log=service.log)
    describe = app.openapi
    app.openapi = lambda: without_422(describe())  # type: ignore[method-assign]
    return app


async def _watch(service: Service) -> None:
    """Restart the worker when it has died."""
    while True:
        await asyncio.sleep(WATCH_EVERY)
        service.worker.revive()


def _handle_errors(app: FastAPI, service: Service) -> None:
    """Answer every error in the form of the API that was called."""

    def answer(request: Request, error: ApiError, more: dict[str, str] | None = None) -> Response:
        path = request.url.path
        return JSONResponse(body_of(error, path), status_of(error, path), headers={**error.headers, **(more or {})})

    async def failed(request: Request, error: Exception) -> Response:
        return answer(request, service.reported(error, "request_failed"))

    async def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return answer(request, _first_invalid(error))

    async def http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        known = NotFoundError("There is no such route.") if error.status_code == 404 else ApiError(str(error.detail))
        known.status = error.status_code
        return answer(request, known, dict(error.headers or {}))

    async def left(request: Request, error: Exception) -> Response:
        return Response(status_code=CLIENT_CLOSED)  # never sent

    app.add_exception_handler(ApiError, failed)
    app.add_exception_handler(HeedError, failed)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, http_error)
    app.add_exception_handler(ClientLeftError, left)
    app.add_exception_handler(Exception, failed)


def _first_invalid(error: RequestValidationError) -> BadRequestError:
    """The first invalid field, without its value."""
    first = error.errors()[0]
    place = [str(part) for part in first["loc"] if part != "body"]
    param = place[0] if place else None
    if first["type"] in ("json_invalid", "missing") and param is None:
        return BadRequestError("Invalid JSON format")
    return BadRequestError(f"{'.'.join(place[:2]) or 'body'}: {first['msg']}", param)
