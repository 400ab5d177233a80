"""The gate: middleware that refuses requests by their first line and headers, before anything is read or routed."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable
from urllib.parse import parse_qsl, urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from heed.core.errors import UsageError
from heed.serve.errors import CLOSE, ApiError, error_response

LOCAL_HOSTS = ("127.0.0.1", "::1", "localhost")
ANY_HOST = "*"
MAX_QUERY_FIELDS = 100
_USUAL_PORTS = {"http": ":80", "https": ":443"}
"""Ports that browsers leave out."""


class Hosts:
    """The names by which clients may call a server.

    A web page of anyone can point a name of its own at this machine (DNS rebinding), and then read the answers as if
    they were its own. Such a request has that name in its header Host. An address in that header cannot be redirected.
    """

    def __init__(self, bound_to: str = LOCAL_HOSTS[0], allowed: Iterable[str] = ()) -> None:
        """`bound_to`: the address that the server listens on. `allowed`: further names; `*` for all.

        Raises UsageError for one that no header can have.
        """
        own = () if bound_to in LOCAL_HOSTS else (socket.gethostname(), socket.getfqdn())
        self._names = {name.lower() for name in (*LOCAL_HOSTS, bound_to, *own, *map(_allowed, allowed))}
        self._is_open = ANY_HOST in self._names
        self._is_local = bound_to in LOCAL_HOSTS

    def require(self, host: str) -> None:
        """Raise ApiError for a header Host with another name."""
        name = _name_of(host)
        if self._is_open or name in self._names or (_is_address(name) and not self._is_local):
            return
        raise ApiError(
            421, f"This server does not answer to the host name {name[:80]!r}. Call it by the address that it listens "
            f"on, or start it with --allowed-host {name[:80]}."
        )  # fmt: skip


def _name_of(host: str) -> str:
    """The name or address in a header Host, without the port."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower().removesuffix(".")


def _allowed(host: str) -> str:
    """The name that a user allows, as `_name_of` returns it. Raises UsageError for a URL or a pattern."""
    _require_ascii("--allowed-host", host)
    name = host.lower() if host == ANY_HOST or _is_address(host) else _name_of(host)
    if not name or "/" in host or (ANY_HOST in name and name != ANY_HOST):
        raise UsageError(
            f"--allowed-host {host}: name a host, such as translate.example.org, without https:// and a path, or "
            f"{ANY_HOST} for all hosts."
        )
    return name


def public_url(url: str) -> tuple[str, str]:
    """A URL by which clients reach the server, with a slash at its end, and its host.

    Raises UsageError for anything but a scheme, a host and perhaps a path.
    """
    try:
        parts = urlsplit(url)
        extras = set(url) & set("?#") or parts.username is not None
        is_whole = parts.scheme in ("http", "https") and parts.hostname and not extras and parts.port != 0
    except ValueError:
        is_whole = False
    if not is_whole:
        raise UsageError(f"--public-url {url}: give the URL that clients call, such as https://translate.example.org.")
    _require_ascii("--public-url", parts.netloc)
    return f"{url.rstrip('/')}/", parts.hostname or ""


def web_origin(origin: str) -> str:
    """An origin whose pages may call the server, as browsers write it; `*` for all.

    Raises UsageError for what no browser sends, such as a URL with a path or with the port that its scheme has anyway,
    and for `null`, which the pages of many origins send.
    """
    _require_ascii("--cors-origin", origin)
    scheme, has_scheme, host = origin.lower().partition("://")
    is_usual = scheme in _USUAL_PORTS and host.endswith(_USUAL_PORTS[scheme])
    is_origin = has_scheme and scheme and host and not is_usual and not set(host) & set("/?#@* ")
    if origin != ANY_HOST and not is_origin:
        raise UsageError(
            f"--cors-origin {origin}: give an origin as browsers send it, with its scheme and without a path or a "
            f"usual port, such as https://page.example.org, or {ANY_HOST} for all."
        )
    return origin.lower()


def _require_ascii(flag: str, value: str) -> None:
    """Raise UsageError for an international domain name, which browsers send in another form."""
    if not value.isascii():
        raise UsageError(f"{flag} {value}: give the name as browsers send it, which begins with xn-- (Punycode).")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class Origins:
    """The web origins whose pages may post to a server: its own, and allowed ones.

    Browsers let the pages of any origin post forms, and only keep the answer from them. They say which page sends a
    request in the headers Origin and Sec-Fetch-Site, which no page can change; most other programs send neither.
    """

    def __init__(self, allowed: Iterable[str] = (), public_url: str = "") -> None:
        """`allowed`: as `web_origin` returns them. `public_url`: as `public_url` does; empty if there is none."""
        self._allowed = {*allowed, *filter(None, [_origin_of(public_url)])}

    def require(self, headers: Headers) -> None:
        """Raise ApiError for a request that a page of another origin sends."""
        origin, site = headers.get("origin", "").lower(), headers.get("sec-fetch-site", "")
        # Where the browser says that the page is the server's own, a proxy may have changed the header Host.
        if {ANY_HOST, origin} & self._allowed or site in ("same-origin", "none"):
            return
        if not site and (not origin or _is_of_host(origin, headers.get("host", "").lower())):
            return
        raise ApiError(
            403, f"This server accepts no requests from pages of the origin {(origin or 'null')[:80]!r}. Start it with "
            "--cors-origin and the origin of the page or, if the page is the server's own behind a proxy, with "
            "--public-url.", code="wrong_origin",
        )  # fmt: skip


def _origin_of(url: str) -> str:
    """The origin of the pages below a URL, as browsers send it; empty for an empty URL."""
    scheme, separator, rest = url.lower().partition("://")
    return scheme + separator + rest.partition("/")[0].removesuffix(_USUAL_PORTS.get(scheme, ""))


def _is_of_host(origin: str, host: str) -> bool:
    """Whether an origin is that of a header Host. A proxy with TLS changes the scheme, which is not compared."""
    scheme, _, name = origin.partition("://")
    return name != "" and name == host.removesuffix(_USUAL_PORTS.get(scheme, ""))


class Gate:
    """The middleware."""

    def __init__(self, app: ASGIApp, hosts: Hosts, origins: Origins) -> None:
        self.app = app
        self.hosts = hosts
        self.origins = origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] == "http":
            try:
                self._check(scope)
            except ApiError as error:
                # The body is not read, and its length may be in doubt.
                await error_response(error, scope["path"], CLOSE)(scope, receive, send)
                return
        await self.app(scope, receive, send)

    def _check(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        if "transfer-encoding" in headers and ("content-length" in headers or scope["http_version"] == "1.0"):
            raise ApiError(400, "The length of the body is given in two ways: send only one of Content-Length and "
                "Transfer-Encoding, the latter with HTTP/1.1.")  # fmt: skip
        if "host" in headers:  # HTTP/1.0 does not need it, and no web page can leave it out
            self.hosts.require(headers["host"])
        if scope["method"] == "POST":
            self.origins.require(headers)
        if scope["query_string"]:
            self._check_query(scope["query_string"])

    def _check_query(self, query: bytes) -> None:
        try:
            fields = parse_qsl(query, keep_blank_values=True, max_num_fields=MAX_QUERY_FIELDS)
        except ValueError as error:
            raise ApiError(400, f"The URL has more than {MAX_QUERY_FIELDS} fields.") from error
        if any(name == b"api_key" for name, _ in fields):
            raise ApiError(400, "The URL contains an API key, and URLs end up in logs. Send it in the header "
                "Authorization: Bearer KEY, or in the field api_key of the body; and replace this key.")  # fmt: skip
