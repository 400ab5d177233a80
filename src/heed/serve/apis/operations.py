"""Operation of the server: health, readiness, metrics, the OpenAPI description, and the files of its web page."""

from __future__ import annotations

import html
import mimetypes
from functools import partial
from pathlib import Path
from typing import Literal

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST

from heed.inspect import PAGE as VIEWS
from heed.serve.apis.schema import Answer, PlainError, content, errors
from heed.serve.errors import ApiError
from heed.serve.service import Service, bearer_key

PAGE = Path(__file__).parent.parent / "page"
CONTENT_SECURITY_POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; object-src 'none'; base-uri 'none'; "
    "frame-ancestors 'none'; form-action 'none'"
)
_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-cache",
}
_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".woff2": "font/woff2"}


class Status(Answer):
    """Whether the server works, and if not, why."""

    status: Literal["ok", "unavailable"]
    error: str | None = None


class Operations:
    """The routes of one server."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self._files = {path.name: path for folder in (VIEWS, PAGE) for path in sorted(folder.iterdir())}

    async def health(self) -> Response:
        """Whether the server and its worker are alive."""
        return _status(self.service.worker.trouble)

    async def ready(self) -> Response:
        """Whether the server accepts requests."""
        is_draining = self.service.jobs.is_draining
        return _status("the server is shutting down" if is_draining else self.service.worker.trouble)

    async def metrics(self, request: Request) -> Response:
        """Prometheus metrics."""
        self.service.admit(request, bearer_key(request))
        self.service.metrics.heartbeat.set(self.service.worker.heartbeat_age)
        return Response(self.service.metrics.render(), media_type=CONTENT_TYPE_LATEST)

    async def spec(self, request: Request) -> Response:
        """This description, as OpenAPI."""
        return JSONResponse(request.app.openapi())

    async def docs(self, request: Request) -> Response:
        """List of all routes."""
        rows = "".join(
            f"<tr><td><code>{html.escape(f'{method.upper()} {path}')}</code><td>{html.escape(operation['description'])}"
            for path, methods in request.app.openapi()["paths"].items()
            for method, operation in methods.items()
        )
        title = "Routes of this server"
        text = (
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><h1>{title}</h1>'
            f'<table>{rows}</table><p>Full description, as OpenAPI: <a href="openapi.json">openapi.json</a></html>'
        )
        return HTMLResponse(text, headers={"Content-Security-Policy": CONTENT_SECURITY_POLICY})

    async def index(self) -> Response:
        """The web page."""
        return await self.page("index.html")

    async def page(self, name: str) -> Response:
        """A file of the web page."""
        path = self._files.get(name)  # a file that existed at the start: no path is built from a request
        if path is None:
            raise ApiError(404, "This file does not exist.")
        kind = _TYPES.get(path.suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
        return Response(path.read_bytes(), media_type=kind, headers=_HEADERS)


def _status(trouble: str | None) -> Response:
    if trouble is None:
        return JSONResponse({"status": "ok"})
    return JSONResponse({"status": "unavailable", "error": trouble}, 503, headers={"Retry-After": "2"})


def routes(service: Service) -> APIRouter:
    """Operation of one server, and its web page."""
    api, router = Operations(service), APIRouter(tags=["Operation"])
    get = partial(router.add_api_route, methods=["GET"])
    described = {**errors(PlainError), **errors(Status, 503)}
    get("/health", api.health, response_model=Status, responses=described)
    get("/ready", api.ready, response_model=Status, responses=described)
    for path, endpoint, media_type, statuses in (
        ("/metrics", api.metrics, "text/plain", (401, 429)),
        ("/spec", api.spec, "application/json", ()),
        ("/docs", api.docs, "text/html", ()),
        ("/", api.index, "text/html", (404,)),
        ("/page/{name}", api.page, "*/*", (404,)),
    ):
        described = {**content(endpoint.__doc__ or "", media_type), **errors(PlainError, *statuses)}
        get(path, endpoint, response_model=None, responses=described)
    return router
