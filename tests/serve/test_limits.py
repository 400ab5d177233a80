"""Limits, keys and rates: what is refused, and that other clients are still served."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from serving import ASK, SENTENCE, Held, Live, Runs, held, serving, until
from toy import WORDS

from heed.serve.auth import RateLimiter
from heed.serve.limits import Limits
from heed.tasks.predictor import Predictor

JSON = {"Content-Type": "application/json"}
LONG = " ".join([SENTENCE] * 20)
"""Takes many steps."""


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


def test_a_body_that_does_not_come_is_not_waited_for(loaded: list[Predictor]) -> None:
    with serving(loaded[:1], Limits(body_seconds=1.0)) as live:
        with socket.create_connection(("127.0.0.1", live.port)) as slow:
            slow.sendall(b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
            assert slow.recv(4096).startswith(b"HTTP/1.1 408 ")
        assert live.post("/translate", ASK).status == 200


def test_clients_that_say_nothing_keep_nobody_out(live: Live) -> None:
    idle = [socket.create_connection(("127.0.0.1", live.port)) for _ in range(100)]
    try:
        for each in idle:
            each.sendall(b"POST /translate HTTP/1.1\r\nHost: x\r\nX-")
        assert live.post("/translate", ASK).status == 200
    finally:
        for each in idle:
            each.close()


def test_a_full_server_says_when_to_come_again_and_nobody_hangs(runs: Runs) -> None:
    loaded, model = held(runs.translator)
    limits = Limits(queue=4, queue_seconds=60.0)
    with serving([loaded], limits) as live, ThreadPoolExecutor(24) as pool, model.shut():
        asked = [pool.submit(live.post, "/translate", {**ASK, "q": f"ba ce {n}"}) for n in range(24)]
        until(lambda: sum(each.done() for each in asked) == 20)
        model.open()
        answers = [each.result() for each in asked]
        assert sorted(answer.status for answer in answers) == [200] * 4 + [503] * 20
        assert all(answer.headers["retry-after"] == "2" for answer in answers if answer.status == 503)
        assert live.post("/translate", ASK).status == 200


def test_who_gets_no_turn_in_time_is_told(runs: Runs) -> None:
    loaded, model = held(runs.translator)
    with serving([loaded]) as live, ThreadPoolExecutor(8) as pool, model.shut():
        live.service.worker._scheduler.max_rows = 1
        first = pool.submit(live.post, "/translate", ASK)
        until(lambda: model.is_held)
        live.service.jobs._limits = Limits(queue_seconds=0.1)
        asked = [pool.submit(live.post, "/translate", {**ASK, "q": f"ba ce {n}"}) for n in range(7)]
        answers = [each.result() for each in asked]
        assert [answer.status for answer in answers] == [503] * 7
        assert all("retry-after" in answer.headers for answer in answers)
        model.open()
        assert first.result().status == 200
        until(lambda: live.service.worker._scheduler.is_idle)


def steps_of(live: Live, model: Held, text: str) -> int:
    """That a whole translation takes."""
    steps = model.num_steps
    assert live.post("/translate", {**ASK, "q": text}).status == 200
    return model.num_steps - steps


def test_a_request_that_takes_too_long_ends_and_gives_its_rows_back(runs: Runs) -> None:
    loaded, model = held(runs.translator)
    with serving([loaded]) as live:
        whole = steps_of(live, model, LONG)
        live.service.jobs._limits = Limits(seconds=0.3)
        steps = model.num_steps
        with model.shut():
            for path, said in (("/translate", {**ASK, "q": LONG}), ("/api/translate", {"text": LONG})):
                assert live.post(path, said).status == 504
            until(lambda: live.service.jobs.num_admitted == 0)
        until(lambda: live.service.worker._scheduler.is_idle)
        assert model.num_steps - steps < whole / 2
        live.service.jobs._limits = Limits()
        assert live.post("/translate", ASK).status == 200


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_leaves_frees_its_work(runs: Runs, stream: bool) -> None:
    loaded, model = held(runs.translator)
    with serving([loaded]) as live:
        whole = steps_of(live, model, LONG)
        steps = model.num_steps
        with model.shut():
            connection = http.client.HTTPConnection("127.0.0.1", live.port)
            said = {"text": "\n".join(f"{word} {LONG}" for word in WORDS), "stream": stream}
            connection.request("POST", "/api/translate", json.dumps(said), JSON)
            until(lambda: model.is_held)
            connection.close()
            until(lambda: live.service.jobs.num_admitted == 0)
        until(lambda: live.service.worker._scheduler.is_idle)
        assert model.num_steps - steps < whole / 2


def test_answers_do_not_depend_on_who_else_asks(live: Live, loaded: list[Predictor]) -> None:
    words = ("ba", "ce", "di", "fo", "gu", "ha", "ji", "ko")
    texts = [f"{a} {b}" for a in words for b in words]
    expected = loaded[0].translate(texts)
    with ThreadPoolExecutor(16) as pool:
        asked = [pool.submit(live.post, "/translate", {**ASK, "q": text}) for text in texts]
        assert [each.result().json["translatedText"] for each in asked] == expected


def test_keys_are_asked_for_in_the_words_of_each_api(loaded: list[Predictor]) -> None:
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


def test_who_asks_too_often_waits(loaded: list[Predictor]) -> None:
    with serving(loaded[:1], per_minute=3) as live:
        live.service.rates._clock = lambda: 0.0  # which no machine is too slow for
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


def test_other_origins_are_not_let_in_unless_they_are_named(loaded: list[Predictor]) -> None:
    ask = {"Origin": "https://page.example", "Access-Control-Request-Method": "POST"}
    with serving(loaded[:1]) as live:
        assert "access-control-allow-origin" not in live.ask("GET", "/languages", None, ask).headers
    with serving(loaded[:1], cors=["https://page.example"]) as live:
        headers = live.ask("OPTIONS", "/translate", None, ask).headers
        assert headers["access-control-allow-origin"] == "https://page.example"
        assert "access-control-allow-credentials" not in headers
        other = live.ask("GET", "/languages", None, {"Origin": "https://other.example"})
        assert "access-control-allow-origin" not in other.headers


def test_what_is_too_much_is_refused_before_anything_is_searched(runs: Runs) -> None:
    loaded, model = held(runs.translator)
    with serving([loaded]) as live, model.shut():  # where a search would wait
        for said in ({**ASK, "q": ["x"] * 129}, {**ASK, "q": "x" * 20_000}, {**ASK, "alternatives": 10**6}):
            assert live.post("/translate", said).status == 400


def test_wrong_methods_and_addresses_are_told_in_each_apis_form(live: Live) -> None:
    assert live.get("/translate").status == 405
    assert live.get("/translate").headers["allow"] == "POST"
    assert live.get("/nothing").json == {"error": "There is no such route."}
    assert live.get("/api/nothing").json["error"]["code"] == "not_found"
    assert live.get("/v1/nothing").json["error"]["type"] == "invalid_request_error"
