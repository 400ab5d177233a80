"""How do the parts become one application?"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from heed.core.environment import library_versions
from heed.core.errors import HeedError
from heed.serve.apis import heed, libretranslate, openai, operations
from heed.serve.auth import ApiKeys, RateLimiter
from heed.serve.engine.catalogue import Catalogue
from heed.serve.engine.jobs import ClientLeftError, Jobs
from heed.serve.engine.worker import Worker
from heed.serve.errors import ApiError, BadRequestError, NotFoundError, body_of, status_of
from heed.serve.limits import BodyLimit, Limits
from heed.serve.logs import Log
from heed.serve.metrics import Metrics
from heed.serve.observing import CLIENT_CLOSED, Observed
from heed.serve.service import Service

WATCH_EVERY = 0.25
"""Seconds between two looks whether the worker lives."""


def make_service(
    catalogue: Catalogue, limits: Limits | None = None, keys: ApiKeys | None = None, per_minute: int = 0,
    log: Log | None = None,
) -> Service:  # fmt: skip
    """The parts of a server; nothing runs yet."""
    limits, log, metrics = limits or Limits(), log or Log(), Metrics()

    def warm_up() -> None:
        for model in catalogue.models.values():
            model.warm_up()

    worker = Worker(warm_up, metrics, log)
    jobs = Jobs(worker, limits, metrics, log)
    return Service(
        catalogue, catalogue.detector(), worker, jobs, limits, keys or ApiKeys(), RateLimiter(per_minute), metrics, log
    )


def make_app(service: Service, cors_origins: Sequence[str] = ()) -> FastAPI:
    """The application; while it runs, so does the worker."""

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
    app.openapi = _described(app)  # type: ignore[method-assign]
    return app


async def _watch(service: Service) -> None:
    """Start the worker again when it has died."""
    while True:
        await asyncio.sleep(WATCH_EVERY)
        service.worker.revive()


def _described(app: FastAPI) -> Callable[[], dict[str, Any]]:
    """FastAPI's description, without the answer 422, which is never given, and with what the limit on bodies says."""
    describe = app.openapi

    def openapi() -> dict[str, Any]:
        found = describe()
        for methods in found["paths"].values():
            for said in methods.values():
                said["responses"].pop("422", None)
                said["responses"]["408"] = {**said["responses"]["413"], "description": "The body did not arrive."}
        return found

    return openapi


def _handle_errors(app: FastAPI, service: Service) -> None:
    """Every error in the form of the API that was called."""

    def answer(request: Request, error: ApiError, more: dict[str, str] | None = None) -> Response:
        path = request.url.path
        return JSONResponse(body_of(error, path), status_of(error, path), headers={**error.headers, **(more or {})})

    async def api_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, ApiError)
        return answer(request, error)

    async def heed_error(request: Request, error: Exception) -> Response:
        return answer(request, BadRequestError(str(error)))

    async def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return answer(request, _first_mistake(error))

    async def http_error(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        known = NotFoundError("There is no such address.") if error.status_code == 404 else ApiError(str(error.detail))
        known.status = error.status_code
        return answer(request, known, dict(error.headers or {}))

    async def left(request: Request, error: Exception) -> Response:
        return Response(status_code=CLIENT_CLOSED)  # nobody reads it

    async def failed(request: Request, error: Exception) -> Response:
        service.log.error("request_failed", error)
        return answer(request, ApiError("The server failed at this request."))

    app.add_exception_handler(ApiError, api_error)
    app.add_exception_handler(HeedError, heed_error)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, http_error)
    app.add_exception_handler(ClientLeftError, left)
    app.add_exception_handler(Exception, failed)


def _first_mistake(error: RequestValidationError) -> BadRequestError:
    """The first field that is wrong, without what was said in it."""
    first = error.errors()[0]
    place = [str(part) for part in first["loc"] if part != "body"]
    param = place[0] if place else None
    if first["type"] in ("json_invalid", "missing") and param is None:
        return BadRequestError("Invalid JSON format")
    what = str(first["msg"])
    return BadRequestError(f"{'.'.join(place[:2]) or 'the body'}: {what}", param)
