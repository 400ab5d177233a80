"""Does the server refuse what is too much, quickly, and go on serving others?"""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from serving import ASK, SENTENCE, Live, Runs, serving, slowed, until

from heed.api import Loaded
from heed.serve.keys import RateLimiter
from heed.serve.limits import Limits

JSON = {"Content-Type": "application/json"}


def chunks(size: int) -> Iterator[bytes]:
    """A body whose length is not said."""
    for _ in range(0, size, 4096):
        yield b"x" * 4096


@pytest.mark.parametrize("body", [b"x" * (2 << 20), "chunked"], ids=["with its length", "in chunks"])
@pytest.mark.parametrize("path", ["/translate", "/v1/completions", "/api/translate", "/translate_file"])
def test_a_body_that_is_too_large_is_refused(live: Live, path: str, body: bytes | str) -> None:
    try:
        answer = live.ask("POST", path, chunks(2 << 20) if isinstance(body, str) else body, JSON)
    except (ConnectionError, http.client.HTTPException):  # it was told while the body was still being sent
        return
    assert answer.status == 413
    assert "1,048,576" in json.dumps(answer.json)


def test_a_body_that_does_not_come_is_not_waited_for(loaded: list[Loaded]) -> None:
    with serving(loaded[:1], Limits(body_seconds=0.2)) as live:
        with socket.create_connection(("127.0.0.1", live.port)) as slow:
            slow.sendall(b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
            assert slow.recv(4096).startswith(b"HTTP/1.1 408 ")
        assert live.post("/translate", ASK).status == 200


def test_clients_that_say_nothing_keep_nobody_out(live: Live) -> None:
    idle = [socket.create_connection(("127.0.0.1", live.port)) for _ in range(100)]
    try:
        for each in idle:
            each.sendall(b"POST /translate HTTP/1.1\r\nHost: x\r\nX-")
        begin = time.monotonic()
        assert live.post("/translate", ASK).status == 200
        assert time.monotonic() - begin < 10
    finally:
        for each in idle:
            each.close()


def test_a_full_server_says_when_to_come_again_and_nobody_hangs(runs: Runs) -> None:
    loaded, model = slowed(runs.translator)
    with serving([loaded], Limits(queue=4)) as live, ThreadPoolExecutor(24) as pool:
        model.seconds = 0.01
        asked = [pool.submit(live.post, "/translate", {**ASK, "q": f"ba ce {n}"}) for n in range(24)]
        answers = [each.result(timeout=60) for each in asked]
        assert {answer.status for answer in answers} == {200, 503}
        assert all(answer.headers["retry-after"] == "2" for answer in answers if answer.status == 503)
        assert live.post("/translate", ASK).status == 200


def test_who_gets_no_turn_in_time_is_told(runs: Runs) -> None:
    loaded, model = slowed(runs.translator)
    with serving([loaded], Limits(queue_seconds=0.3)) as live, ThreadPoolExecutor(8) as pool:
        live.service.worker._scheduler.max_rows = 1
        model.seconds = 0.05
        asked = [pool.submit(live.post, "/translate", {**ASK, "q": f"ba ce {n}"}) for n in range(8)]
        answers = [each.result(timeout=60) for each in asked]
        assert {answer.status for answer in answers} == {200, 503}
        assert all("retry-after" in answer.headers for answer in answers if answer.status == 503)
        until(lambda: live.service.worker._scheduler.is_idle)


def test_a_request_that_takes_too_long_ends_and_gives_its_rows_back(runs: Runs) -> None:
    loaded, model = slowed(runs.translator)
    with serving([loaded], Limits(seconds=0.3)) as live:
        model.seconds = 0.1
        for path, said in (("/translate", ASK), ("/api/translate", {"text": SENTENCE})):
            assert live.post(path, said).status == 504
        until(lambda: live.service.worker._scheduler.is_idle)
        until(lambda: live.service.jobs.num_admitted == 0)
        model.seconds = 0.0
        assert live.post("/translate", ASK).status == 200


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_leaves_frees_its_work(runs: Runs, stream: bool) -> None:
    loaded, model = slowed(runs.translator)
    with serving([loaded]) as live:
        model.seconds = 0.05
        connection = http.client.HTTPConnection("127.0.0.1", live.port)
        said = {"text": ". ".join([SENTENCE] * 40 + ["Fo"] * 40), "stream": stream}
        connection.request("POST", "/api/translate", json.dumps(said), JSON)
        until(lambda: live.service.worker._scheduler.num_rows > 0)
        connection.close()
        until(lambda: live.service.worker._scheduler.is_idle, 5)
        until(lambda: live.service.jobs.num_admitted == 0)


def test_answers_do_not_depend_on_who_else_asks(live: Live, loaded: list[Loaded]) -> None:
    words = ("ba", "ce", "di", "fo", "gu", "ha", "ji", "ko")
    texts = [f"{a} {b}" for a in words for b in words]
    expected = loaded[0].translate(texts)
    with ThreadPoolExecutor(16) as pool:
        asked = [pool.submit(live.post, "/translate", {**ASK, "q": text}) for text in texts]
        assert [each.result().json["translatedText"] for each in asked] == expected


def test_keys_are_asked_for_in_the_words_of_each_api(loaded: list[Loaded]) -> None:
    with serving(loaded, keys=["right"]) as live:
        missing, wrong, right = (
            live.post("/translate", {**ASK, **k}) for k in ({}, {"api_key": "no"}, {"api_key": "right"})
        )
        assert (missing.status, missing.json["error"]) == (400, "Please contact the server operator to get an API key")
        assert (wrong.status, wrong.json["error"]) == (403, "Invalid API key")
        assert right.status == 200
        said: dict[str, Any] = {"model": "lm", "prompt": "the"}
        for head in ({}, {"Authorization": "Bearer no"}, {"Authorization": "Basic right"}):
            answer = live.post("/v1/completions", said, **head)
            assert (answer.status, answer.json["error"]["code"]) == (401, "invalid_api_key")
            assert live.post("/api/translate", {"text": "ba"}, **head).status == 401
        head = {"Authorization": "Bearer right"}
        assert live.post("/v1/completions", said, **head).status == 200
        assert live.post("/api/translate", {"text": "ba"}, **head).status == 200
        assert live.get("/frontend/settings").json["keyRequired"]


def test_who_asks_too_often_waits(loaded: list[Loaded]) -> None:
    with serving(loaded[:1], per_minute=3) as live:
        answers = [live.post("/detect", {"q": SENTENCE}) for _ in range(5)]
        assert [answer.status for answer in answers] == [200, 200, 200, 429, 429]
        assert answers[-1].json == {"error": "Slowdown: 3 per 1 minute"}
        assert 1 <= int(answers[-1].headers["retry-after"]) <= 21
        assert live.post("/api/detect", {"text": SENTENCE}).json["error"]["code"] == "rate_limited"


def test_a_rate_fills_up_again_for_each_client() -> None:
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


def test_other_origins_are_not_let_in_unless_they_are_named(loaded: list[Loaded]) -> None:
    ask = {"Origin": "https://page.example", "Access-Control-Request-Method": "POST"}
    with serving(loaded[:1]) as live:
        assert "access-control-allow-origin" not in live.ask("GET", "/languages", None, ask).headers
    with serving(loaded[:1], cors=["https://page.example"]) as live:
        headers = live.ask("OPTIONS", "/translate", None, ask).headers
        assert headers["access-control-allow-origin"] == "https://page.example"
        assert "access-control-allow-credentials" not in headers
        other = live.ask("GET", "/languages", None, {"Origin": "https://other.example"})
        assert "access-control-allow-origin" not in other.headers


def test_refusals_are_quick(live: Live) -> None:
    for said in ({**ASK, "q": ["x"] * 129}, {**ASK, "q": "x" * 20_000}, {**ASK, "alternatives": 10**6}):
        begin = time.monotonic()
        assert live.post("/translate", said).status == 400
        assert time.monotonic() - begin < 5  # a machine may be busy; alone it is a few milliseconds


def test_wrong_methods_and_addresses_are_told_in_each_apis_form(live: Live) -> None:
    assert live.get("/translate").status == 405
    assert live.get("/translate").headers["allow"] == "POST"
    assert live.get("/nothing").json == {"error": "There is no such address."}
    assert live.get("/api/nothing").json["error"]["code"] == "not_found"
    assert live.get("/v1/nothing").json["error"]["type"] == "invalid_request_error"
