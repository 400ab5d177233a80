"""Operation: health, metrics, restarts of the worker, and shutdown."""

from __future__ import annotations

import asyncio
import ctypes
import io
import json
import signal
import socket
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import pytest
import uvicorn
from serving import REQUEST, Answer, Live, Runs, held, serving, until
from toy import unchecked_shapes

from heed.serve.app import make_app
from heed.serve.engine.catalogue import Catalogue
from heed.serve.limits import Limits
from heed.serve.server import Server, bound_socket, make_server, url_of
from heed.serve.service import make_service
from heed.serve.telemetry import Log
from heed.tasks.predictor import Predictor


def kill_worker(live: Live) -> None:
    """End the worker's thread with an unexpected exception."""
    thread = live.service.worker._thread
    assert thread is not None
    assert thread.ident is not None
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(SystemExit))


def test_health_and_readiness(live: Live) -> None:
    assert live.get("/health").json == {"status": "ok"}
    assert live.get("/ready").json == {"status": "ok"}


def test_a_server_that_ends_while_its_models_load_does_not_say_that_it_is_ready() -> None:
    service: Any = SimpleNamespace(worker=SimpleNamespace(is_warm=False))
    said = list[str]()
    server = Server(uvicorn.Config("none", log_config=None), service, lambda: said.append("ready"))
    server.should_exit = True
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, server._await_models()).result()
    assert said == []


def run_slowly(
    work: Callable[[], Coroutine[Any, Any, None]], monkeypatch: pytest.MonkeyPatch, now: list[float], times: float
) -> None:
    """Run a coroutine whose pauses take no time, but so many times their length by the clock `now`.

    The pauses of servers in other threads, which earlier tests left to end, stay as they are.
    """
    sleep = asyncio.sleep

    async def run() -> None:
        own = asyncio.get_running_loop()

        async def pass_time(seconds: float) -> None:
            if asyncio.get_running_loop() is not own:
                return await sleep(seconds)
            now[0] += times * seconds
            return await sleep(0)

        monkeypatch.setattr(own, "time", lambda: now[0])
        monkeypatch.setattr(asyncio, "sleep", pass_time)
        await work()

    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, run()).result()


def test_a_warm_up_may_take_long_and_says_what_it_waits_for(monkeypatch: pytest.MonkeyPatch) -> None:
    now, written, said = [0.0], io.StringIO(), list[str]()

    class Worker:
        num_deaths = 0

        @property
        def is_warm(self) -> bool:
            return now[0] > 900

    service: Any = SimpleNamespace(
        worker=Worker(), catalogue=SimpleNamespace(warming="en-de"), log=Log(stream=written), jobs=None
    )
    server = Server(uvicorn.Config("none", log_config=None), service, lambda: said.append("ready"))
    run_slowly(server._await_models, monkeypatch, now, times=100)
    assert (said, server.failure, server.should_exit) == (["ready"], None, False)
    reports = [json.loads(line) for line in written.getvalue().splitlines()]
    assert [(each["event"], each["model"]) for each in reports] == [("warming_up", "en-de")] * 30
    assert [each["seconds"] for each in reports] == list(range(30, 901, 30))


def test_a_model_that_fails_on_its_first_sentence_ends_the_server(runs: Runs) -> None:
    loaded, model = held(runs.translator)
    model.failure = RuntimeError("no")
    service = make_service(Catalogue.of_runs([loaded]), log=Log(stream=io.StringIO()))
    with bound_socket("127.0.0.1", 0) as listener:
        server = make_server(make_app(service), service, lambda: None)
        with ThreadPoolExecutor(1) as pool:
            pool.submit(server.run, [listener]).result(60)
    assert server.failure == "a model failed on its first sentence; see the log for details."
    assert service.catalogue.warming == "en-de"


def test_small_answers_are_sent_at_once() -> None:
    """Otherwise the body waits until the client has acknowledged the headers, which it delays by 40 ms."""

    async def option_of_a_connection() -> int:
        option_value: asyncio.Future[int] = asyncio.get_running_loop().create_future()

        def connected(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            option_value.set_result(writer.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            writer.close()

        with bound_socket("127.0.0.1", 0) as listener:
            async with await asyncio.start_server(connected, sock=listener):
                _, writer = await asyncio.open_connection(*listener.getsockname())
                option = await option_value
                writer.close()
                return option

    with ThreadPoolExecutor(1) as pool:  # the driver of a browser may run a loop in this thread
        assert pool.submit(lambda: asyncio.run(option_of_a_connection())).result()


def test_the_description_names_every_route_and_no_422(live: Live) -> None:
    description = live.get("/spec").json
    assert description == live.get("/openapi.json").json
    assert {"/translate", "/detect", "/languages", "/v1/completions", "/api/translate", "/health"} <= description[
        "paths"
    ].keys()
    assert '"422"' not in json.dumps(description["paths"])
    page = live.get("/docs")
    assert b"/api/translate" in page.body
    assert b"https://" not in page.body, "it must not load anything from other hosts"


def test_only_files_of_the_page_are_served_with_a_strict_policy(live: Live) -> None:
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


def test_metrics_and_the_log_contain_no_text_key_or_address(loaded: list[Predictor]) -> None:
    with serving(loaded, keys=["canary-key"]) as live:
        head = {"Authorization": "Bearer canary-key"}
        live.post("/translate", {**REQUEST, "q": "canary text ba", "api_key": "canary-key"})
        live.post("/translate?api_key=canary-key&q=canary", {})
        live.post("/v1/completions", {"model": "lm", "prompt": "canary"}, **head)
        live.post("/v1/completions", {"model": "canary", "prompt": "canary"}, **head)
        live.get("/canary")
        live.get("/page/canary")
        assert live.get("/metrics").status == 401, "metrics need the key, too"
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


def test_a_dead_worker_is_reported_and_restarted(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded, model = held(runs.translator)
    with serving([loaded], Limits(queue_seconds=60.0)) as live, ThreadPoolExecutor(4) as pool, model.shut():
        revive, may_restart = live.service.worker.revive, threading.Event()
        monkeypatch.setattr(live.service.worker, "revive", lambda: may_restart.is_set() and revive())
        busy = [pool.submit(live.post, "/translate", {**REQUEST, "q": f"{word} ba"}) for word in ("ce", "di", "fo")]
        until(lambda: model.is_held and live.service.jobs.num_admitted == 3)
        kill_worker(live)
        model.open()
        until(lambda: live.get("/health").status == 503)
        assert live.get("/ready").status == 503
        may_restart.set()
        until(lambda: live.get("/health").status == 200)
        assert {answer.result().status for answer in busy} <= {200, 500}
        assert live.post("/translate", REQUEST).status == 200
        assert "heed_worker_restarts_total 1.0" in live.get("/metrics").body.decode()
        assert '"worker_died"' in live.log.getvalue()


def test_a_failing_model_fails_its_requests_and_after_five_the_health_check(runs: Runs) -> None:
    loaded, model = held(runs.translator)
    with serving([loaded]) as live:
        model.failure = RuntimeError("secret text")
        for _ in range(5):
            answer = live.post("/translate", REQUEST)
            assert (answer.status, answer.json) == (500, {"error": "The model failed on this request."})
        assert live.get("/health").json["error"] == "the last searches all failed"
        assert "secret" not in live.log.getvalue()
        model.failure = None
        assert live.post("/translate", REQUEST).status == 200
        assert live.get("/health").status == 200


def test_admitted_requests_are_finished_after_sigterm(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heed.serve.engine.worker.STALE", 600.0)
    loaded, model = held(runs.translator)
    limits = Limits(queue_seconds=60.0, drain_seconds=600.0)
    with serving([loaded], limits) as live, ThreadPoolExecutor(40) as pool, model.shut():
        admitted = [pool.submit(live.post, "/translate", {**REQUEST, "q": f"ba ce {n}"}) for n in range(30)]
        until(lambda: live.service.jobs.num_admitted == 30)
        live.server.handle_exit(signal.SIGTERM, None)
        ready = live.get("/ready")
        assert (ready.status, ready.headers["retry-after"]) == (503, "2")
        late: Answer = live.post("/translate", REQUEST)
        assert (late.status, late.headers["retry-after"]) == (503, "2")
        assert live.get("/health").status == 200
        assert not any(answer.done() for answer in admitted)
        model.open()
        assert [answer.result().status for answer in admitted] == [200] * 30
        live.thread.join(60)
        assert not live.thread.is_alive()
        assert not live.server.force_exit


def test_draining_has_a_time_limit(runs: Runs) -> None:
    loaded, model = held(runs.translator)
    with (
        serving([loaded], Limits(drain_seconds=0.2, seconds=600.0)) as live,
        ThreadPoolExecutor(1) as pool,
        model.shut(),
    ):
        unfinished = pool.submit(live.post, "/translate", REQUEST)
        until(lambda: model.is_held)
        live.server.handle_exit(signal.SIGTERM, None)
        assert unfinished.result(60).status == 503
        assert model.is_held
        model.open()
        live.thread.join(60)
        assert not live.thread.is_alive()


def test_draining_has_its_time_limit_on_a_busy_machine_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """There, each look at the requests comes later than it was meant to."""
    now, closed_at = [0.0], list[float]()
    jobs = SimpleNamespace(is_draining=True, num_admitted=1, close=lambda: closed_at.append(now[0]))
    service: Any = SimpleNamespace(jobs=jobs, limits=Limits(drain_seconds=20.0))
    server = Server(uvicorn.Config("none", log_config=None), service, lambda: None)
    run_slowly(server._drain, monkeypatch, now, times=20)
    [end] = closed_at
    assert 20 <= end < 22


def test_models_are_not_run_by_others_than_the_worker_while_they_load(runs: Runs) -> None:
    """Whether a model has attention is found by running it."""
    loaded, model = held(runs.translator)
    with bound_socket("127.0.0.1", 0) as listener, unchecked_shapes(), model.shut():
        service = make_service(Catalogue.of_runs([loaded]), log=Log(stream=io.StringIO()))
        server = make_server(make_app(service), service, lambda: None)
        thread = threading.Thread(target=server.run, args=([listener],), daemon=True)
        thread.start()
        live = Live(url_of(listener), service, server, thread)
        try:
            until(lambda: server.started and model.is_held)
            answer = live.ask("GET", "/api/models", None, {}, seconds=20)
            assert (answer.status, answer.headers["retry-after"]) == (503, "2")
            assert answer.json["error"]["message"] == "The server is loading its models."
            model.open()
            until(lambda: service.worker.is_warm)
            assert live.get("/api/models").json["models"][0]["attends"]
        finally:
            model.open()
            server.should_exit = True
            thread.join(60)


def test_head_is_answered_as_get_without_a_body(live: Live) -> None:
    """As checks of other programs whether a server is there, and programs that download, ask."""
    for path in ("/", "/health", "/ready", "/languages", "/page/page.js"):
        got, headers = live.get(path), live.ask("HEAD", path, None, {})
        assert (headers.status, headers.body) == (200, b"")
        assert headers.headers["content-length"] == got.headers["content-length"] == str(len(got.body))
    assert live.ask("HEAD", "/nothing", None, {}).status == 404
    refused = live.ask("HEAD", "/translate", None, {})
    assert (refused.status, refused.headers["allow"]) == (405, "POST")


def test_some_routes_need_no_key(loaded: list[Predictor]) -> None:
    with serving(loaded[:1], keys=["k"]) as live:
        for path in ("/health", "/ready", "/", "/languages", "/frontend/settings", "/docs"):
            assert live.get(path).status == 200, path
