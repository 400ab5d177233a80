"""Operation: health, metrics, restarts of the worker, and shutdown."""

from __future__ import annotations

import asyncio
import ctypes
import json
import signal
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from serving import ASK, Answer, Live, Runs, held, serving, until

from heed.serve.limits import Limits
from heed.serve.server import bound_socket
from heed.tasks.predictor import Predictor


def kill_worker(live: Live) -> None:
    """An exception that nothing foresees ends the worker's thread."""
    thread = live.service.worker._thread
    assert thread is not None
    assert thread.ident is not None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit))


def test_health_and_readiness(live: Live) -> None:
    assert live.get("/health").json == {"status": "ok"}
    assert live.get("/ready").json == {"status": "ok"}


def test_small_answers_are_sent_at_once() -> None:
    """Else the body of an answer would wait for its head to be acknowledged, which a client puts off by 40 ms."""

    async def option_of_a_connection() -> int:
        found: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def connected(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            found.set_result(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        with bound_socket("127.0.0.1", 0) as listener:
            async with await asyncio.start_server(connected, sock=listener):
                _, writer = await asyncio.open_connection(*listener.getsockname())
                option = await found
                writer.close()
                return option

    with ThreadPoolExecutor(1) as pool:  # in this thread the driver of a browser may have a loop running
        assert pool.submit(lambda: asyncio.run(option_of_a_connection())).result()


def test_the_description_names_every_route_and_no_422(live: Live) -> None:
    found = live.get("/spec").json
    assert found == live.get("/openapi.json").json
    assert {"/translate", "/detect", "/languages", "/v1/completions", "/api/translate", "/health"} <= found[
        "paths"
    ].keys()
    assert '"422"' not in json.dumps(found["paths"])
    page = live.get("/docs")
    assert b"/api/translate" in page.body
    assert b"https://" not in page.body, "it asks no other host"


def test_the_page_is_served_with_a_strict_policy_and_nothing_else_is(live: Live) -> None:
    index = live.get("/")
    assert index.status == 200
    assert index.headers["content-type"].startswith("text/html")
    policy = index.headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy
    assert live.get("/page/page.js").headers["content-type"].startswith("text/javascript")
    assert live.get("/page/view.css").headers["x-content-type-options"] == "nosniff"
    for name in ("nothing.js", "..%2fapp.py", "%2e%2e/app.py", "..\\app.py"):
        assert live.get(f"/page/{name}").status == 404


def test_metrics_count_and_neither_they_nor_the_log_tell_what_was_said(loaded: list[Predictor]) -> None:
    with serving(loaded, keys=["canary-key"]) as live:
        head = {"Authorization": "Bearer canary-key"}
        live.post("/translate", {**ASK, "q": "canary text ba", "api_key": "canary-key"})
        live.post("/translate?api_key=canary-key&q=canary", {})
        live.post("/v1/completions", {"model": "lm", "prompt": "canary"}, **head)
        live.post("/v1/completions", {"model": "canary", "prompt": "canary"}, **head)
        live.get("/canary")
        live.get("/page/canary")
        assert live.get("/metrics").status == 400, "it needs the key too"
        text = live.get("/metrics", **head).body.decode()
        log = live.log.getvalue()
    for name in (
        'heed_requests_total{route="/translate",status="200"} 1.0', 'heed_tokens_total{direction="out",model="en-de"}',
        "heed_request_seconds_bucket", "heed_queue_depth 0.0", "heed_step_rows_total",
        "heed_worker_heartbeat_age_seconds", "heed_truncations_total", 'heed_searches_total{model="en-de"}',
    ):  # fmt: skip
        assert name in text, name
    assert "canary" not in text
    assert "canary" not in log
    assert "127.0.0.1" not in text + log
    lines = [json.loads(line) for line in log.splitlines()]
    assert {line["event"] for line in lines} == {"request"}
    assert all(line.keys() == {"time", "level", "event", "method", "route", "status", "seconds"} for line in lines)


def test_a_dead_worker_is_told_and_started_again(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded, model = held(runs.translator)
    with serving([loaded], Limits(queue_seconds=60.0)) as live, ThreadPoolExecutor(4) as pool, model.shut():
        revive, may_live = live.service.worker.revive, threading.Event()
        monkeypatch.setattr(live.service.worker, "revive", lambda: may_live.is_set() and revive())
        busy = [pool.submit(live.post, "/translate", {**ASK, "q": f"{word} ba"}) for word in ("ce", "di", "fo")]
        until(lambda: model.is_held)
        kill_worker(live)
        model.open()
        until(lambda: live.get("/health").status == 503)
        assert live.get("/ready").status == 503
        may_live.set()
        until(lambda: live.get("/health").status == 200)
        assert {answer.result().status for answer in busy} <= {200, 500}
        assert live.post("/translate", ASK).status == 200
        assert "heed_worker_restarts_total 1.0" in live.get("/metrics").body.decode()
        assert '"worker_died"' in live.log.getvalue()


def test_a_model_that_fails_fails_its_own_requests_and_at_last_the_server(runs: Runs) -> None:
    loaded, model = held(runs.translator)
    with serving([loaded]) as live:
        model.failure = RuntimeError("secret text")
        for _ in range(5):
            answer = live.post("/translate", ASK)
            assert (answer.status, answer.json) == (500, {"error": "The model failed on this request."})
        assert live.get("/health").json["error"] == "the last searches all failed"
        assert "secret" not in live.log.getvalue()
        model.failure = None
        assert live.post("/translate", ASK).status == 200
        assert live.get("/health").status == 200


def test_what_was_admitted_is_finished_before_the_end(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heed.serve.engine.worker.STALE", 600.0)
    loaded, model = held(runs.translator)
    limits = Limits(queue_seconds=60.0, drain_seconds=600.0)
    with serving([loaded], limits) as live, ThreadPoolExecutor(40) as pool, model.shut():
        admitted = [pool.submit(live.post, "/translate", {**ASK, "q": f"ba ce {n}"}) for n in range(30)]
        until(lambda: live.service.jobs.num_admitted == 30)
        live.server.handle_exit(signal.SIGTERM, None)
        ready = live.get("/ready")
        assert (ready.status, ready.headers["retry-after"]) == (503, "2")
        late: Answer = live.post("/translate", ASK)
        assert (late.status, late.headers["retry-after"]) == (503, "2")
        assert live.get("/health").status == 200
        assert not any(answer.done() for answer in admitted)
        model.open()
        assert [answer.result().status for answer in admitted] == [200] * 30
        live.thread.join(60)
        assert not live.thread.is_alive()
        assert not live.server.force_exit


def test_draining_has_an_end(runs: Runs) -> None:
    loaded, model = held(runs.translator)
    with (
        serving([loaded], Limits(drain_seconds=0.2, seconds=600.0)) as live,
        ThreadPoolExecutor(1) as pool,
        model.shut(),
    ):
        left = pool.submit(live.post, "/translate", ASK)
        until(lambda: model.is_held)
        live.server.handle_exit(signal.SIGTERM, None)
        until(lambda: live.server.should_exit)
        assert model.is_held
        model.open()
        live.thread.join(60)
        assert not live.thread.is_alive()
        left.exception()


@pytest.mark.parametrize("path", ["/health", "/ready", "/", "/languages", "/frontend/settings", "/docs"])
def test_what_a_page_needs_first_is_open_to_all(path: str, loaded: list[Predictor]) -> None:
    with serving(loaded[:1], keys=["k"]) as live:
        assert live.get(path).status == 200
