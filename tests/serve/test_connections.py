"""Connections of clients that send or read too slowly, or are too many."""

from __future__ import annotations

import http.client
import resource
from contextlib import ExitStack

import pytest
from serving import REQUEST, connected, rest_of, serving, until

from heed.serve.connections import OTHER_FILES
from heed.serve.limits import Limits
from heed.tasks.predictor import Predictor

HALF = b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-"
WHOLE = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"


@pytest.mark.parametrize("sent", [b"", HALF], ids=["nothing", "half of the headers"])
def test_a_connection_without_a_request_is_closed(loaded: list[Predictor], sent: bytes) -> None:
    with serving(loaded[:1], Limits(header_seconds=0.3)) as live, connected(live, sent) as client:
        assert rest_of(client) == b""
        assert live.post("/translate", REQUEST).status == 200


def test_half_of_a_second_request_does_not_keep_a_connection(loaded: list[Predictor]) -> None:
    with serving(loaded[:1], Limits(header_seconds=0.3)) as live, connected(live, WHOLE + HALF) as client:
        assert rest_of(client).count(b"HTTP/1.1 200 OK") == 1


def test_a_client_that_does_not_read_its_answer_is_disconnected(loaded: list[Predictor]) -> None:
    with serving(loaded[:1], Limits(write_seconds=0.3)) as live:
        key = live.service.downloads.put("a.txt", "de", b"x" * (32 << 20))
        with connected(live, f"GET /download_file/{key} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode()) as client:
            until(lambda: len(live.server.server_state.connections) == 1)
            until(lambda: not live.server.server_state.connections)
            assert len(rest_of(client)) < 32 << 20


def test_a_long_answer_is_sent_to_a_client_that_reads_it(loaded: list[Predictor]) -> None:
    with serving(loaded[:1], Limits(write_seconds=0.3)) as live:
        key = live.service.downloads.put("a.txt", "de", b"x" * (32 << 20))
        assert len(live.get(f"/download_file/{key}").body) == 32 << 20


def test_the_oldest_connections_without_a_request_make_room_for_others(
    loaded: list[Predictor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (OTHER_FILES + 4, OTHER_FILES + 4))
    with serving(loaded[:1]) as live, ExitStack() as clients:
        used = http.client.HTTPConnection("127.0.0.1", live.port, timeout=60)
        clients.callback(used.close)
        used.request("GET", "/health")
        assert used.getresponse().read() == b'{"status":"ok"}'
        first = used.sock
        half = [clients.enter_context(connected(live, HALF)) for _ in range(8)]
        for client in half[:5]:
            assert rest_of(client) == b""
        assert live.post("/translate", REQUEST).status == 200
        assert len(live.server.server_state.connections) <= 4
        used.request("GET", "/health")
        assert used.getresponse().read() == b'{"status":"ok"}'
        assert used.sock is first, "a client that has asked before is not the first to go"


def test_a_body_that_arrives_slowly_makes_room_for_others(
    loaded: list[Predictor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (OTHER_FILES + 4, OTHER_FILES + 4))
    head = b"POST /translate HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{"
    with serving(loaded[:1]) as live, ExitStack() as clients:
        slow = [clients.enter_context(connected(live, head)) for _ in range(8)]
        assert rest_of(slow[0]) == b""
        assert live.post("/translate", REQUEST).status == 200
