"""Limits, keys and rates: requests that are refused while other clients are served."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlencode

import pytest
from serving import REQUEST, SENTENCE, Held, Live, Runs, connected, held, rest_of, serving, until
from toy import WORDS

from heed.serve import limits
from heed.serve.auth import RateLimiter
from heed.serve.limits import Limits
from heed.tasks.predictor import Predictor

JSON = {"Content-Type": "application/json"}
LONG = " ".join([SENTENCE] * 20)
"""A text that takes many steps."""


def chunks(size: int) -> Iterator[bytes]:
    """A body of unknown length."""
    for _ in range(0, size, 4096):
        yield b"x" * 4096


@pytest.mark.parametrize("body", [b"x" * (2 << 20), "chunked"], ids=["with its length", "in chunks"])
@pytest.mark.parametrize("path", ["/translate", "/v1/completions", "/api/translate", "/translate_file"])
def test_a_body_that_is_too_large_is_refused(live: Live, path: str, body: bytes | str) -> None:
    answer = live.ask("POST", path, chunks(2 << 20) if isinstance(body, str) else body, JSON)
    assert answer.status == 413
    assert "1,048,576" in json.dumps(answer.json)


def test_a_client_that_asks_first_is_refused_by_the_length_of_its_body(live: Live) -> None:
    head = "POST /translate HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 2000000\r\n\r\n"
    with connected(live, head.encode()) as client:
        assert client.recv(4096).startswith(b"HTTP/1.1 413 ")


def test_the_rest_of_a_refused_body_is_read_for_a_bounded_time_and_size(
    loaded: list[Predictor], monkeypatch: pytest.MonkeyPatch
) -> None:
    head = f"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: {1 << 30}\r\n\r\n".encode()
    with serving(loaded[:1], Limits(body_seconds=0.5)) as live, connected(live, head) as client:
        assert rest_of(client).startswith(b"HTTP/1.1 413 ")
    monkeypatch.setattr(limits, "DISCARDED_BYTES", 1 << 20)
    with serving(loaded[:1]) as live, connected(live, head) as client:
        assert client.recv(4096).startswith(b"HTTP/1.1 413 ")
        with pytest.raises(ConnectionError):
            for _ in range(1 << 14):
                client.sendall(b"x" * (1 << 16))


@pytest.mark.parametrize("characters", [1, 10_000, 50_000])
def test_a_body_may_have_as_many_characters_as_its_texts_however_they_are_escaped(characters: int) -> None:
    assert Limits(characters=characters).body_bytes >= Limits().body_bytes == 1 << 20
    suggestion = {"q": "\U0001f600" * characters, "s": "\U0001f600" * characters, "source": "en", "target": "de"}
    for body in (json.dumps(suggestion), urlencode(suggestion)):
        assert len(body) <= Limits(characters=characters).body_bytes


def test_a_body_that_does_not_arrive_is_refused(loaded: list[Predictor]) -> None:
    with serving(loaded[:1], Limits(body_seconds=0.5)) as live:
        with socket.create_connection(("127.0.0.1", live.port)) as slow:
            slow.sendall(b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
            assert slow.recv(4096).startswith(b"HTTP/1.1 408 ")
        assert live.post("/translate", REQUEST).status == 200


def test_idle_connections_do_not_block_other_clients(live: Live) -> None:
    idle = [socket.create_connection(("127.0.0.1", live.port)) for _ in range(100)]
    try:
        for each in idle:
            each.sendall(b"POST /translate HTTP/1.1\r\nHost: localhost\r\nX-")
        assert live.post("/translate", REQUEST).status == 200
    finally:
        for each in idle:
            each.close()


def test_a_full_server_refuses_requests_with_retry_after(runs: Runs) -> None:
    loaded, model = held(runs.translator)
    limits = Limits(queue=4, queue_seconds=60.0)
    with serving([loaded], limits) as live, ThreadPoolExecutor(24) as pool, model.shut():
        asked = [pool.submit(live.post, "/translate", {**REQUEST, "q": f"ba ce {n}"}) for n in range(24)]
        until(lambda: sum(each.done() for each in asked) == 20)
        model.open()
        answers = [each.result() for each in asked]
        assert sorted(answer.status for answer in answers) == [200] * 4 + [503] * 20
        assert all(answer.headers["retry-after"] == "2" for answer in answers if answer.status == 503)
        assert live.post("/translate", REQUEST).status == 200


def test_a_request_that_waits_too_long_is_refused(runs: Runs) -> None:
    loaded, model = held(runs.translator)
    with serving([loaded]) as live, ThreadPoolExecutor(8) as pool, model.shut():
        live.service.worker._scheduler.max_rows = 1
        first = pool.submit(live.post, "/translate", REQUEST)
        until(lambda: model.is_held)
        live.service.jobs._limits = Limits(queue_seconds=0.1)
        asked = [pool.submit(live.post, "/translate", {**REQUEST, "q": f"ba ce {n}"}) for n in range(7)]
        answers = [each.result() for each in asked]
        assert [answer.status for answer in answers] == [503] * 7
        assert all("retry-after" in answer.headers for answer in answers)
        model.open()
        assert first.result().status == 200
        until(lambda: live.service.worker._scheduler.is_idle)


def steps_of(live: Live, model: Held, text: str) -> int:
    """Number of steps of a translation."""
    steps = model.num_steps
    assert live.post("/translate", {**REQUEST, "q": text}).status == 200
    return model.num_steps - steps


def test_a_request_that_takes_too_long_is_cancelled(runs: Runs) -> None:
    loaded, model = held(runs.translator)
    with serving([loaded]) as live:
        whole = steps_of(live, model, LONG)
        live.service.jobs._limits = Limits(seconds=0.3)
        steps = model.num_steps
        with model.shut():
            for path, body in (("/translate", {**REQUEST, "q": LONG}), ("/api/translate", {"text": LONG})):
                assert live.post(path, body).status == 504
            until(lambda: live.service.jobs.num_admitted == 0)
        until(lambda: live.service.worker._scheduler.is_idle)
        assert model.num_steps - steps < whole / 2
        live.service.jobs._limits = Limits()
        assert live.post("/translate", REQUEST).status == 200


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_disconnects_cancels_its_work(runs: Runs, stream: bool) -> None:
    loaded, model = held(runs.translator)
    with serving([loaded]) as live:
        whole = steps_of(live, model, LONG)
        steps = model.num_steps
        with model.shut():
            connection = http.client.HTTPConnection("127.0.0.1", live.port)
            body = {"text": "\n".join(f"{word} {LONG}" for word in WORDS), "stream": stream}
            connection.request("POST", "/api/translate", json.dumps(body), JSON)
            until(lambda: model.is_held)
            connection.close()
            until(lambda: live.service.jobs.num_admitted == 0)
        until(lambda: live.service.worker._scheduler.is_idle)
        assert model.num_steps - steps < whole / 2


def test_answers_do_not_depend_on_other_clients(live: Live, loaded: list[Predictor]) -> None:
    words = ("ba", "ce", "di", "fo", "gu", "ha", "ji", "ko")
    texts = [f"{a} {b}" for a in words for b in words]
    expected = loaded[0].translate(texts)
    with ThreadPoolExecutor(16) as pool:
        asked = [pool.submit(live.post, "/translate", {**REQUEST, "q": text}) for text in texts]
        assert [each.result().json["translatedText"] for each in asked] == expected


def test_a_missing_or_wrong_key_is_refused_in_the_form_of_each_api(loaded: list[Predictor]) -> None:
    with serving(loaded, keys=["right"]) as live:
        missing, wrong, right = (
            live.post("/translate", {**REQUEST, **k}) for k in ({}, {"api_key": "no"}, {"api_key": "right"})
        )
        assert (missing.status, missing.json["error"]) == (400, "Please contact the server operator to get an API key")
        assert (wrong.status, wrong.json["error"]) == (403, "Invalid API key")
        assert right.status == 200
        body: dict[str, Any] = {"model": "lm", "prompt": "the"}
        for head in ({}, {"Authorization": "Bearer no"}, {"Authorization": "Basic right"}):
            answer = live.post("/v1/completions", body, **head)
            assert (answer.status, answer.json["error"]["code"]) == (401, "invalid_api_key")
            assert live.post("/api/translate", {"text": "ba"}, **head).status == 401
        head = {"Authorization": "Bearer right"}
        assert live.post("/v1/completions", body, **head).status == 200
        assert live.post("/api/translate", {"text": "ba"}, **head).status == 200
        assert live.get("/frontend/settings").json["keyRequired"]


def test_a_client_with_too_many_requests_is_refused(loaded: list[Predictor]) -> None:
    with serving(loaded[:1], per_minute=3) as live:
        live.service.rates._clock = lambda: 0.0  # so that no machine is too slow
        answers = [live.post("/detect", {"q": SENTENCE}) for _ in range(5)]
        assert [answer.status for answer in answers] == [200, 200, 200, 429, 429]
        assert answers[-1].json == {"error": "Slowdown: 3 per 1 minute"}
        assert 1 <= int(answers[-1].headers["retry-after"]) <= 21
        assert live.post("/api/detect", {"text": SENTENCE}).json["error"]["code"] == "rate_limited"


def test_the_rate_of_each_client_recovers() -> None:
    now = [0.0]
    limiter = RateLimiter(2, clock=lambda: now[0])

    def allowed(client: str) -> bool:
        try:
            limiter.check(client)
        except Exception:
            return False
        return True

    assert [allowed("a"), allowed("a"), allowed("a"), allowed("b")] == [True, True, False, True]
    now[0] = 31.0
    assert [allowed("a"), allowed("a")] == [True, False]


def test_only_named_origins_are_allowed(loaded: list[Predictor]) -> None:
    ask = {"Origin": "https://page.example", "Access-Control-Request-Method": "POST"}
    with serving(loaded[:1]) as live:
        assert "access-control-allow-origin" not in live.ask("GET", "/languages", None, ask).headers
    with serving(loaded[:1], cors=["https://page.example"]) as live:
        headers = live.ask("OPTIONS", "/translate", None, ask).headers
        assert headers["access-control-allow-origin"] == "https://page.example"
        assert "access-control-allow-credentials" not in headers
        other = live.ask("GET", "/languages", None, {"Origin": "https://other.example"})
        assert "access-control-allow-origin" not in other.headers


def test_a_page_of_a_named_origin_may_send_any_header(loaded: list[Predictor]) -> None:
    """As OpenAI's client does, which says in headers of its own where it runs."""
    names = "authorization,content-type,x-stainless-lang,x-stainless-retry-count"
    ask = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": names}
    with serving(loaded[:1], cors=["https://page.example"]) as live:
        named, other = (
            live.ask("OPTIONS", "/v1/completions", None, {**ask, "Origin": f"https://{host}.example"})
            for host in ("page", "other")
        )
    assert (named.status, named.headers["access-control-allow-headers"]) == (200, names)
    assert other.status == 400
    assert "access-control-allow-origin" not in other.headers


def test_a_page_of_a_named_origin_can_read_why_it_is_refused(loaded: list[Predictor]) -> None:
    origin = {"Origin": "https://page.example"}
    with serving(loaded[:1], cors=[origin["Origin"]]) as live:
        refused = [
            live.ask("POST", "/translate", b"x" * (2 << 20), {**JSON, **origin}),
            live.ask("GET", "/languages", None, {**origin, "Host": "other.example"}),
            live.ask("GET", "/languages?api_key=1", None, origin),
        ]
        assert [answer.status for answer in refused] == [413, 421, 400]
        for answer in refused:
            assert answer.headers["access-control-allow-origin"] == origin["Origin"]
            assert answer.headers["access-control-expose-headers"] == "Retry-After"


def test_a_page_of_a_named_origin_can_read_that_the_server_failed(
    loaded: list[Predictor], monkeypatch: pytest.MonkeyPatch
) -> None:
    origin = {"Origin": "https://page.example"}
    with serving(loaded[:1], cors=[origin["Origin"]]) as live:
        monkeypatch.setattr(live.service.detector, "detect", lambda _: 1 // 0)
        answer = live.post("/detect", {"q": SENTENCE}, **origin)
    assert (answer.status, answer.json) == (500, {"error": "The server failed to handle this request."})
    assert answer.headers["access-control-allow-origin"] == origin["Origin"]
    assert live.service.metrics.requests.labels("/detect", "500")._value.get() == 1
    assert live.log.getvalue().count('"kind": "ZeroDivisionError"') == 1


def test_too_large_requests_are_refused_before_any_search(runs: Runs) -> None:
    loaded, model = held(runs.translator)
    with serving([loaded]) as live, model.shut():  # a search would wait
        for body in ({**REQUEST, "q": ["x"] * 129}, {**REQUEST, "q": "x" * 20_000}, {**REQUEST, "alternatives": 10**6}):
            assert live.post("/translate", body).status == 400


def test_wrong_methods_and_routes_are_refused_in_the_form_of_each_api(live: Live) -> None:
    assert live.get("/translate").status == 405
    assert live.get("/translate").headers["allow"] == "POST"
    assert live.get("/nothing").json == {"error": "There is no such route."}
    assert live.get("/api/nothing").json["error"]["code"] == "not_found"
    assert live.get("/v1/nothing").json["error"]["type"] == "invalid_request_error"


def test_a_source_with_too_many_tokens_is_refused_by_every_route(runs: Runs) -> None:
    loaded, model = held(runs.translator)
    with serving([loaded], Limits(sentence_tokens=12)) as live:
        before = model.num_steps
        for path, fields in (("inspect", {}), ("inspect", {"target": "kan"}), ("next", {}), ("score", {"text": "kan"})):
            answer = live.post(f"/api/{path}", {"source": LONG, **fields})
            assert answer.status == 400, path
            assert answer.json["error"]["message"].startswith("The source has "), path
            assert answer.json["error"]["message"].endswith(" tokens; the limit is 12."), path
            assert live.post(f"/api/{path}", {"source": "ba", **fields}).status == 200, path
        long = live.post("/api/score", {"source": "ba", "text": LONG}).json["error"]["message"]
        assert long.startswith("The text has ")
        assert model.num_steps > before
