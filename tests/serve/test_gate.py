"""Requests that are refused by their first line and headers."""

from __future__ import annotations

from pathlib import Path

import pytest
from serving import REQUEST, Live, connected, rest_of, serving
from starlette.datastructures import Headers

from heed.core.errors import UsageError
from heed.serve.auth import ApiKeys
from heed.serve.errors import ApiError
from heed.serve.gate import Hosts, Origins, public_url, web_origin
from heed.tasks.predictor import Predictor


def is_allowed(hosts: Hosts, host: str) -> bool:
    """Whether a header Host is accepted."""
    try:
        hosts.require(host)
    except ApiError as error:
        assert error.status == 421
        assert "--allowed-host" in error.message
        return False
    return True


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost", "LocalHost:1", "[::1]:8000", "localhost.:80"])
def test_a_local_server_has_local_names(host: str) -> None:
    assert is_allowed(Hosts(), host)


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", "localhost.evil.example", "", "10.0.0.1", "*"],
)
def test_a_local_server_has_no_other_names(host: str) -> None:
    assert not is_allowed(Hosts(), host)


def test_a_public_server_has_addresses_its_own_name_and_the_allowed_ones() -> None:
    hosts = Hosts("0.0.0.0", ["Translate.example"])
    assert is_allowed(hosts, "192.168.1.5:8000")
    assert is_allowed(hosts, "[2001:db8::1]")
    assert is_allowed(hosts, "translate.example")
    assert not is_allowed(hosts, "evil.example")
    assert is_allowed(Hosts("box.lan"), "box.lan:8000")
    assert is_allowed(Hosts("0.0.0.0", ["*"]), "evil.example")


@pytest.mark.parametrize("allowed", ["Translate.example:8000", "translate.example.", "translate.example"])
def test_an_allowed_name_may_have_a_port_and_a_final_dot(allowed: str) -> None:
    assert is_allowed(Hosts(allowed=[allowed]), "translate.example")
    assert is_allowed(Hosts(allowed=["2001:db8::1"]), "[2001:db8::1]:80")


@pytest.mark.parametrize(
    "allowed", ["https://translate.example", "translate.example/", "*.example", "", "über.example"]
)
def test_an_allowed_name_that_no_request_can_have_is_refused(allowed: str) -> None:
    with pytest.raises(UsageError, match="--allowed-host"):
        Hosts(allowed=[allowed])


@pytest.mark.parametrize(
    ("url", "own", "host"),
    [
        ("https://Translate.example", "https://Translate.example/", "translate.example"),
        ("https://translate.example:8443/heed//", "https://translate.example:8443/heed/", "translate.example"),
        ("http://[2001:db8::1]", "http://[2001:db8::1]/", "2001:db8::1"),
    ],
)
def test_the_host_of_the_url_that_clients_use_is_allowed(url: str, own: str, host: str) -> None:
    assert public_url(url) == (own, host)
    assert is_allowed(Hosts(allowed=[host]), url.split("/")[2])


@pytest.mark.parametrize("origin", ["https://Page.example", "http://localhost:3000", "moz-extension://a-b", "*"])
def test_an_origin_is_as_browsers_send_it(origin: str) -> None:
    assert web_origin(origin) == origin.lower()


@pytest.mark.parametrize(
    "origin",
    ["page.example", "https://page.example/", "https://page.example/app", "https://*.example", "https://", "", "null",
     "https://page.example:443", "http://page.example:80", "https://über.example"],
)  # fmt: skip
def test_an_origin_that_no_browser_sends_is_refused(origin: str) -> None:
    with pytest.raises(UsageError, match="--cors-origin"):
        web_origin(origin)


@pytest.mark.parametrize(
    "url",
    ["translate.example", "//translate.example", "https://", "ftp://translate.example", "https://a.example/?key=1",
     "https://a.example/#a", "https://a.example/?", "https://a.example/#",
     "https://me:1@a.example", "https://a.example:x", "https://[::1", "", "https://über.example"],
)  # fmt: skip
def test_a_url_that_no_link_can_begin_with_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="--public-url"):
        public_url(url)


def may_post(origins: Origins, origin: str | None, site: str | None = None, host: str = "127.0.0.1:8000") -> bool:
    """Whether a request with these headers is accepted."""
    given = {"Host": host, "Origin": origin, "Sec-Fetch-Site": site}
    try:
        origins.require(Headers({name: value for name, value in given.items() if value is not None}))
    except ApiError as error:
        assert (error.status, error.code) == (403, "wrong_origin")
        assert "--cors-origin" in error.message
        return False
    return True


@pytest.mark.parametrize(
    ("origin", "site"),
    [(None, None), ("http://127.0.0.1:8000", None), ("http://127.0.0.1:8000", "same-origin"), (None, "none"),
     ("moz-extension://a-b", "none")],
)  # fmt: skip
def test_programs_and_the_servers_own_pages_may_post(origin: str | None, site: str | None) -> None:
    assert may_post(Origins(), origin, site)


@pytest.mark.parametrize(
    ("origin", "site"),
    [("https://evil.example", "cross-site"), ("https://evil.example", None), ("http://127.0.0.1:3000", "same-site"),
     ("http://127.0.0.1", None), ("http://127.0.0.1:8000.evil.example", None), ("null", "cross-site"), ("null", None),
     (None, "cross-site"), ("http://127.0.0.1:8000", "cross-site")],
)  # fmt: skip
def test_pages_of_other_origins_may_not_post(origin: str | None, site: str | None) -> None:
    assert not may_post(Origins(), origin, site)
    assert not may_post(Origins(["https://page.example"], "https://translate.example/heed/"), origin, site)
    assert may_post(Origins(["*"]), origin, site)


def test_pages_of_allowed_origins_may_post() -> None:
    origins = Origins(["https://page.example"], "https://Translate.example:443/heed/")
    for origin in ("https://page.example", "https://translate.example"):
        assert may_post(origins, origin, "cross-site")
        assert may_post(origins, origin)
        assert not may_post(origins, f"{origin}:8000")


def test_a_page_behind_a_proxy_with_tls_is_the_servers_own() -> None:
    """The proxy passes the name on, or the browser says that the page posts to its own origin."""
    for host in ("translate.example", "Translate.example:443"):
        assert may_post(Origins(), "https://translate.example", host=host)
    assert not may_post(Origins(), "https://translate.example", host="127.0.0.1:8000")
    assert may_post(Origins(), "https://translate.example", "same-origin", "127.0.0.1:8000")


def test_no_page_of_another_origin_can_post_to_any_route(live: Live) -> None:
    for path in ("/suggest?q=a&s=b&source=en&target=de", "/translate", "/api/translate", "/v1/completions"):
        answer = live.ask("POST", path, b"", {"Origin": "https://evil.example"})
        assert answer.status == 403
        assert "'https://evil.example'" in str(answer.json["error"])
    assert live.post("/translate", REQUEST, Origin=live.url.rstrip("/")).status == 200
    assert live.get("/languages", Origin="https://evil.example").status == 200


def test_a_request_by_another_name_is_refused_in_the_form_of_each_api(live: Live) -> None:
    for path in ("/api/models", "/v1/models", "/languages", "/"):
        answer = live.get(path, Host="evil.example")
        assert answer.status == 421
        assert "evil.example" in str(answer.json["error"])
    assert live.get("/api/models", Host="evil.example").json["error"]["code"] == "wrong_host"
    assert live.get("/api/models", Host=f"localhost:{live.port}").status == 200


def test_nothing_redirects_to_the_name_in_a_request(live: Live) -> None:
    for path in ("/languages/", "/api/models/", "/v1/models/"):
        answer = live.get(path)
        assert answer.status == 404
        assert "location" not in answer.headers


@pytest.mark.parametrize(
    ("version", "lengths"),
    [
        ("1.1", "Content-Length: 5\r\nTransfer-Encoding: chunked"),
        ("1.1", "Transfer-Encoding: chunked\r\nContent-Length: 0"),
        ("1.0", "Transfer-Encoding: chunked"),
    ],
)
def test_a_body_with_two_lengths_ends_the_connection(live: Live, version: str, lengths: str) -> None:
    first = f"POST /translate HTTP/{version}\r\nHost: localhost\r\n{lengths}\r\n\r\n0\r\n\r\n"
    with connected(live, f"{first}GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()) as client:
        received = rest_of(client)
    assert received.startswith(b"HTTP/1.1 400 ")
    assert received.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize("query", ["api_key=k", "q=a&api%5Fkey=k", "api_key"])
def test_a_key_in_the_url_is_refused_with_the_place_where_it_belongs(live: Live, query: str) -> None:
    for path in ("/translate", "/api/detect"):
        answer = live.post(f"{path}?{query}", REQUEST)
        assert answer.status == 400
        assert "Authorization: Bearer" in str(answer.json["error"])


def test_a_url_with_many_fields_is_refused(live: Live) -> None:
    assert live.post("/translate?" + "&".join(["a=b"] * 101), REQUEST).status == 400


def test_the_header_with_the_key_works_for_all_apis(loaded: list[Predictor]) -> None:
    with serving(loaded[:1], keys=["right"]) as live:
        assert live.post("/translate", REQUEST, Authorization="Bearer right").status == 200
        assert live.post("/translate", REQUEST, Authorization="Bearer wrong").status == 403
        assert live.post("/translate", {**REQUEST, "api_key": "right"}).status == 200


def test_keys_are_the_lines_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    path.write_bytes("\ufefffirst\r\n\r\n # a comment\r\n second \r\n".encode())
    keys = ApiKeys.read(path)
    assert [keys.accept(key) for key in ("first", "second", "# a comment", "")] == [True, True, False, False]
    path.write_text("schlüssel\n", encoding="utf-8")
    with pytest.raises(UsageError, match="other than ASCII"):
        ApiKeys.read(path)


def test_wrong_keys_count_against_the_rate_of_their_client(loaded: list[Predictor]) -> None:
    with serving(loaded[:1], keys=["right"], per_minute=3) as live:
        live.service.rates._clock = lambda: 0.0
        guesses = [live.post("/translate", {**REQUEST, "api_key": f"guess {n}"}).status for n in range(5)]
        assert guesses == [403, 403, 403, 429, 429]
        bearers = [live.get("/api/models", Authorization=f"Bearer {n}").status for n in range(2)]
        assert [*bearers, live.get("/metrics").status] == [429, 429, 429]
        assert live.post("/translate", {**REQUEST, "api_key": "right"}).status == 200, (
            "whoever has a key is known by it"
        )


def test_bodies_that_cannot_be_read_count_against_the_rate(loaded: list[Predictor]) -> None:
    with serving(loaded[:1], keys=["right"], per_minute=3) as live:
        live.service.rates._clock = lambda: 0.0
        answers = [live.post(path, b"{") for path in ("/translate", "/detect", "/suggest", "/translate")]
        assert [answer.status for answer in answers] == [400, 400, 400, 429]
        assert answers[0].json["error"] == "Invalid JSON format"
        assert live.post("/translate", b"{", Authorization="Bearer right").status == 400
