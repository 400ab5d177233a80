"""Is the server alive, is it ready, what has it counted, and what can be asked of it? And its page."""

from __future__ import annotations

import html
import mimetypes
from functools import partial
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse
from prometheus_client import CONTENT_TYPE_LATEST

from heed.inspect import PAGE as VIEWS
from heed.serve.apis.openapi import Answers, answers, error_answers, json_answer, objects
from heed.serve.errors import NotFoundError
from heed.serve.service import Service, bearer_key

PAGE = Path(__file__).parent.parent / "page"
CONTENT_SECURITY_POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; object-src 'none'; base-uri 'none'; "
    "frame-ancestors 'none'; form-action 'none'"
)
_TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".woff2": "font/woff2"}

_ERROR = objects({"error": {"type": "string"}}, required=["error"])
_STATUS = objects({"status": {"type": "string"}, "error": {"type": "string"}}, required=["status"])


class Operations:
    """The routes of one server that are about itself."""

    def __init__(self, service: Service) -> None:
        self.service = service
        folders = (VIEWS, PAGE)
        self._files = {path.name: path for folder in folders if folder.is_dir() for path in sorted(folder.iterdir())}

    async def health(self, request: Request) -> Response:
        """GET /health"""
        self.service.metrics.heartbeat.set(self.service.worker.heartbeat_age)
        return _told(self.service.worker.trouble)

    async def ready(self, request: Request) -> Response:
        """GET /ready"""
        jobs = self.service.jobs
        return _told("the server is shutting down" if jobs.is_draining else self.service.worker.trouble)

    async def metrics(self, request: Request) -> Response:
        """GET /metrics"""
        self.service.keys.check(bearer_key(request))
        self.service.metrics.heartbeat.set(self.service.worker.heartbeat_age)
        return Response(self.service.metrics.render(), media_type=CONTENT_TYPE_LATEST)

    async def spec(self, request: Request) -> Response:
        """GET /spec"""
        return JSONResponse(request.app.openapi())

    async def docs(self, request: Request) -> Response:
        """GET /docs: a list of what can be asked."""
        rows = "".join(
            f"<tr><td><code>{html.escape(method.upper())} {html.escape(path)}</code><td>{html.escape(said['summary'])}"
            for path, methods in request.app.openapi()["paths"].items()
            for method, said in methods.items()
        )
        title = "What this server can be asked"
        text = (
            f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title><h1>{title}</h1>'
            f'<table>{rows}</table><p>In full, as OpenAPI: <a href="openapi.json">openapi.json</a></html>'
        )
        return HTMLResponse(text, headers={"Content-Security-Policy": CONTENT_SECURITY_POLICY})

    async def index(self, request: Request) -> Response:
        """GET /"""
        return self._file("index.html")

    async def page(self, request: Request, name: str) -> Response:
        """GET /page/NAME"""
        return self._file(name)

    def _file(self, name: str) -> Response:
        """One of the files that were there at the start; no path is ever made from what a client says."""
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


def _told(trouble: str | None) -> Response:
    if trouble is None:
        return JSONResponse({"status": "ok"})
    return JSONResponse({"status": "unavailable", "error": trouble}, 503, headers={"Retry-After": "2"})


def _one(description: str, kind: str) -> Answers:
    return {200: {"description": description, "content": {kind: {}}}}


def routes(service: Service) -> APIRouter:
    """What is asked of the server about itself."""
    api, router = Operations(service), APIRouter(tags=["Operation"])
    get = partial(router.add_api_route, methods=["GET"], response_model=None)
    broken = error_answers(_ERROR, 413, 500)
    for path, endpoint, summary in (
        ("/health", api.health, "Is it alive, its worker included?"),
        ("/ready", api.ready, "Does it take work?"),
    ):
        told = answers(json_answer("Yes.", _STATUS), error_answers(_STATUS, 503), broken)
        get(path, endpoint, summary=summary, responses=told)
    metrics: dict[str, Any] = {
        "summary": "Prometheus metrics.",
        "responses": answers(_one("Counts.", "text/plain"), error_answers(_ERROR, 400, 403), broken),
    }
    get("/metrics", api.metrics, **metrics)
    get("/spec", api.spec, summary="This description.", responses=answers(json_answer("OpenAPI.", {}), broken))
    get("/docs", api.docs, summary="A list of all this.", responses=answers(_one("A page.", "text/html"), broken))
    missing = error_answers(_ERROR, 404)
    get("/", api.index, summary="The page.", responses=answers(_one("A page.", "text/html"), missing, broken))
    files = answers({200: {"description": "A file.", "content": {"*/*": {}}}}, missing, broken)
    get("/page/{name}", api.page, summary="Its files.", responses=files)
    return router
