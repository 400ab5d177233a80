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
from heed.serve.errors import NotFoundError
from heed.serve.service import Service, bearer_key

PAGE = Path(__file__).parent.parent / "page"
CONTENT_SECURITY_POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; object-src 'none'; base-uri 'none'; "
    "frame-ancestors 'none'; form-action 'none'"
)
_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".woff2": "font/woff2"}


class Status(Answer):
    """Whether the server works, and if not, why."""

    status: Literal["ok", "unavailable"]
    error: str | None = None


class Operations:
    """The routes of one server."""

    def __init__(self, service: Service) -> None:
        self.service = service
        folders = (VIEWS, PAGE)
        self._files = {path.name: path for folder in folders if folder.is_dir() for path in sorted(folder.iterdir())}

    async def health(self, request: Request) -> Response:
        """GET /health"""
        self.service.metrics.heartbeat.set(self.service.worker.heartbeat_age)
        return _status(self.service.worker.trouble)

    async def ready(self, request: Request) -> Response:
        """GET /ready"""
        jobs = self.service.jobs
        return _status("the server is shutting down" if jobs.is_draining else self.service.worker.trouble)

    async def metrics(self, request: Request) -> Response:
        """GET /metrics"""
        self.service.keys.check(bearer_key(request))
        self.service.metrics.heartbeat.set(self.service.worker.heartbeat_age)
        return Response(self.service.metrics.render(), media_type=CONTENT_TYPE_LATEST)

    async def spec(self, request: Request) -> Response:
        """GET /spec"""
        return JSONResponse(request.app.openapi())

    async def docs(self, request: Request) -> Response:
        """GET /docs: a list of all routes."""
        rows = "".join(
            f"<tr><td><code>{html.escape(f'{method.upper()} {path}')}</code><td>{html.escape(operation['summary'])}"
            for path, methods in request.app.openapi()["paths"].items()
            for method, operation in methods.items()
        )
        title = "Routes of this server"
        text = (
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><h1>{title}</h1>'
            f'<table>{rows}</table><p>Full description, as OpenAPI: <a href="openapi.json">openapi.json</a></html>'
        )
        return HTMLResponse(text, headers={"Content-Security-Policy": CONTENT_SECURITY_POLICY})

    async def index(self, request: Request) -> Response:
        """GET /"""
        return self._file("index.html")

    async def page(self, request: Request, name: str) -> Response:
        """GET /page/NAME"""
        return self._file(name)

    def _file(self, name: str) -> Response:
        """A file that existed at the start. No path is ever built from a request."""
        path = self._files.get(name)
        if path is None:
            raise NotFoundError("There is no such file.")
        kind = _TYPES.get(path.suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
        head = {
            "Content-Security-Policy": CONTENT_SECURITY_POLICY,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cache-Control": "no-cache",
        }
        return Response(path.read_bytes(), media_type=kind, headers=head)


def _status(trouble: str | None) -> Response:
    if trouble is None:
        return JSONResponse({"status": "ok"})
    return JSONResponse({"status": "unavailable", "error": trouble}, 503, headers={"Retry-After": "2"})


def routes(service: Service) -> APIRouter:
    """Operation of one server, and its web page."""
    api, router = Operations(service), APIRouter(tags=["Operation"])
    get = partial(router.add_api_route, methods=["GET"])
    for path, endpoint, summary in (
        ("/health", api.health, "Whether the server and its worker are alive."),
        ("/ready", api.ready, "Whether the server accepts requests."),
    ):
        described = {**errors(PlainError), **errors(Status, 503)}
        get(path, endpoint, summary=summary, response_model=Status, responses=described)
    files = errors(PlainError, 404)
    for path, page, summary, media_type, failures in (
        ("/metrics", api.metrics, "Prometheus metrics.", "text/plain", errors(PlainError, 400, 403)),
        ("/spec", api.spec, "This description, as OpenAPI.", "application/json", errors(PlainError)),
        ("/docs", api.docs, "List of all routes.", "text/html", errors(PlainError)),
        ("/", api.index, "The web page.", "text/html", files),
        ("/page/{name}", api.page, "Files of the web page.", "*/*", files),
    ):
        described = {**content(summary, media_type), **failures}
        get(path, page, summary=summary, response_model=None, responses=described)
    return router
